package driver

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// firstRest is how long nobody tries again whether more requests at once are worth it, after they were not; each further time
	// restGrowth times as long, up to lastRest. The first is short, because a measurement may go wrong.
	firstRest  = 500 * time.Millisecond
	restGrowth = 4
	lastRest   = 5 * time.Minute

	// experimentTime is how long an experiment keeps others from beginning one: its client may have stopped to read.
	experimentTime = 2 * time.Second

	// slowPage is how long a page of a listing takes where it may be worth it to split listings, and farAway the shortest answer of
	// a server that is not near. A near one that is slow has its hands full, and several pages at once do not come sooner.
	slowPage = 40 * time.Millisecond
	farAway  = 20 * time.Millisecond

	// splitReward is how many times as fast a listing must become by being split.
	splitReward = 1.5

	// splitRest is how long nobody splits a listing after it was not worth it, the first time.
	splitRest = 30 * time.Second

	// routeMemory is how long it counts what an answer took: a server may move, or have been out of breath.
	routeMemory = time.Minute

	// guessMemory is how long a soon answer counts against the guess that a server is far away: one that is near may be busy for long.
	guessMemory = time.Hour

	// pagingInertia is one part of how many by which a longer time for a page counts.
	pagingInertia = 8
)

// A Route is what file systems have learned of the way to an S3 server: how many requests at a time it rewards, how far away it
// is, how long a page of a listing takes, and which keys they have written. Share one among all file systems of a server, so that each need not learn it again.
type Route struct {
	downloads lesson
	uploads   queue
	listings  paging
	marks     bookmarks

	arrived atomic.Int64 // bytes of all downloads

	writes writeLog

	easy answers // to requests that need little work
	all  answers // to whatever may be answered soon by a server that is near
}

// NewRoute returns the route to a server of which nothing is known yet.
func NewRoute() *Route {
	return &Route{easy: answers{memory: routeMemory}, all: answers{memory: guessMemory}, writes: writeLog{seed: maphash.MakeSeed()}}
}

// Answered notes how long an answer took to a request that was made for something else than files, such as to see whether a bucket is there.
func (r *Route) Answered(took time.Duration) { r.all.note(time.Now(), took) }

// answered notes how long an answer took to begin that needs little work.
func (r *Route) answered(now time.Time, took time.Duration) {
	r.easy.note(now, took)
	r.all.note(now, took)
}

// distance is how long an answer takes that needs little work, 0 where there was none of late.
func (r *Route) distance(now time.Time) time.Duration { return r.easy.shortest(now) }

// guess is how many requests at a time to begin with, most or one, where nobody has tried: a connection to a server that is far away brings
// less than there is for the transfer, and meanwhile a few trials would take as long as to move a hundred megabytes.
func (r *Route) guess(now time.Time, most int) int {
	if r.all.shortest(now) >= farAway {
		return most
	}
	return 1
}

// sender enters an upload.
func (r *Route) sender(most int) *sender { return r.uploads.sender(most, r.guess(time.Now(), most)) }

// answers are how long a server takes to answer.
type answers struct {
	memory time.Duration // how long an answer counts, or up to twice as long

	mu    sync.Mutex
	least [2]time.Duration // in the present stretch of memory and in the one before, 0 where there were none
	since time.Time
}

// note adds an answer.
func (a *answers) note(now time.Time, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if age := now.Sub(a.since); age > a.memory {
		if age > 2*a.memory {
			a.least[0] = 0
		}
		a.least = [2]time.Duration{0, a.least[0]}
		a.since = now
	}
	a.least[0] = shorter(a.least[0], took)
}

// shortest is the shortest answer of late, 0 where there was none.
func (a *answers) shortest(now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.since) > 2*a.memory {
		return 0
	}
	return shorter(a.least[0], a.least[1])
}

// shorter is the shorter of two times, of which 0 is none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// splits tells whether it may be worth it to split a listing.
func (r *Route) splits(now time.Time) bool {
	return r.distance(now) >= farAway && r.listings.slow(now)
}

// marksOf are those of a directory whose listing may be worth splitting.
func (r *Route) marksOf(place markedPlace, now time.Time) marks {
	if r.listings.rests(now) {
		return nil
	}
	return r.marks.at(place)
}

// A lesson is how many requests at a time were worth it. Those who use the same route learn it from each other: one at a time tries
// more, and after a failure nobody does for a while.
type lesson struct {
	mu      sync.Mutex
	width   int // known to be worth it, or guessed; 0 stands for 1
	known   bool
	trying  time.Time // until then somebody tries more
	resting rest      // in which nobody does
}

// try returns to how many requests at a time somebody may go on who has so many, and whether that is an experiment. It is the same
// number when it is not the time for more. An experiment is so much wider, and nobody may have more than most.
func (l *lesson) try(now time.Time, width, wider, most int) (_ int, experiment bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case width >= most:
		return width, false
	case width < l.width:
		return min(l.width, most), false
	case now.Before(l.trying) || l.resting.lasts(now):
		return width, false
	}
	l.trying = now.Add(experimentTime)
	return min(wider, most), true
}

// guess says how many requests at a time to begin with, and returns with how many: so many, or what is known.
func (l *lesson) guess(width int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known {
		l.width = width
	}
	return l.width
}

// isGuess tells whether nobody knows yet what is worth it.
func (l *lesson) isGuess() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.known
}

// rewarded says that so many requests at a time were worth it.
func (l *lesson) rewarded(width int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.width, l.known, l.trying = max(l.width, width), true, time.Time{}
	l.resting.length = 0
}

// failed says that more than so many were not.
func (l *lesson) failed(now time.Time, width int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.width, l.known, l.trying = width, true, time.Time{}
	l.resting.begin(now, firstRest)
}

// A rest is a time in which nobody tries again what was not worth it.
type rest struct {
	until  time.Time
	length time.Duration // of the last one, 0 where something was worth it since
}

// begin begins a rest that is longer than the last one was, and takes so long if it is the first.
func (r *rest) begin(now time.Time, first time.Duration) {
	r.length = min(max(restGrowth*r.length, first), lastRest)
	r.until = now.Add(r.length)
}

func (r *rest) lasts(now time.Time) bool { return now.Before(r.until) }

// paging is what is known of listings: how long a page takes that a token asks for while nothing else is asked for, and whether those
// that take long are worth splitting.
type paging struct {
	mu      sync.Mutex
	took    time.Duration
	known   time.Time // when it was seen last
	resting rest
}

// paged notes how long a page took. A shorter time counts at once and a longer one little by little: the server may have had other
// work to do.
func (p *paging) paged(now time.Time, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.After(p.known.Add(routeMemory)) || took < p.took {
		p.took = took
	} else {
		p.took += (took - p.took) / pagingInertia
	}
	p.known = now
}

// slow tells whether pages take so long that to split a listing may be worth it.
func (p *paging) slow(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.took >= slowPage && now.Before(p.known.Add(routeMemory)) && !p.resting.lasts(now)
}

// rests tells whether nobody shall split a listing for a while.
func (p *paging) rests(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resting.lasts(now)
}

// rewards tells whether it was worth it to split a listing, by the time for each page that came. If not, nobody does for a while.
func (p *paging) rewards(now time.Time, each time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if float64(p.took) < splitReward*float64(each) {
		p.resting.begin(now, splitRest)
		return false
	}
	p.resting.length = 0
	return true
}
