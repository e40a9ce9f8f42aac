package driver

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/driver/internal/clients"
	"github.com/babelftp/babelftp/driver/internal/endpoint"
)

// A Route is what file systems have learned of the way to an S3 server: how many requests at a time it rewards, how far away it
// is, how long a page of a listing takes, and which keys they have written. Share one among all file systems of a server, so that each need not learn it again.
type Route struct {
	downloads lesson
	uploads   queue
	stats     *endpoint.Stats
	marks     bookmarks

	arrived atomic.Int64 // bytes of all downloads

	writes *clients.WriteLog
}

// NewRoute returns the route to a server of which nothing is known yet.
func NewRoute() *Route {
	return &Route{stats: &endpoint.Stats{}, writes: clients.NewWriteLog()}
}

// Answered notes how long an answer took to a request that was made for something else than files, such as to see whether a bucket is there.
func (r *Route) Answered(took time.Duration) { r.stats.ObserveAny(time.Now(), took) }

// guess is how many requests at a time to begin with, most or one, where nobody has tried: a connection to a server that is far away brings
// less than there is for the transfer, and meanwhile a few trials would take as long as to move a hundred megabytes.
func (r *Route) guess(now time.Time, most int) int {
	if r.stats.Far(now) {
		return most
	}
	return 1
}

// sender enters an upload.
func (r *Route) sender(most int) *sender { return r.uploads.sender(most, r.guess(time.Now(), most)) }

// marksOf are those of a directory whose listing may be worth splitting.
func (r *Route) marksOf(place markedPlace, now time.Time) marks {
	if r.stats.Pages.BacksOff(now) {
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
	trying  time.Time        // until then somebody tries more
	resting endpoint.Backoff // in which nobody does
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
	case now.Before(l.trying) || l.resting.Active(now):
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
	l.resting.Reset()
}

// failed says that more than so many were not.
func (l *lesson) failed(now time.Time, width int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.width, l.known, l.trying = width, true, time.Time{}
	l.resting.Begin(now, firstRest)
}

// firstRest is how long nobody tries again whether more requests at once are worth it, after they were not. It is short, because a
// measurement may go wrong.
const firstRest = 500 * time.Millisecond

// experimentTime is how long an experiment keeps others from beginning one: its client may have stopped to read.
const experimentTime = 2 * time.Second
