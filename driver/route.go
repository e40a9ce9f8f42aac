package driver

import (
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
)

// A Route is what file systems have learned of the way to an S3 server: how many requests at a time it rewards. Share one among all file systems of a server, so that each need not learn it again.
type Route struct {
	downloads lesson

	arrived atomic.Int64 // bytes of all downloads
}

// NewRoute returns the route to a server of which nothing is known yet.
func NewRoute() *Route { return &Route{} }

// A lesson is how many requests at a time were worth it. Those who use the same route learn it from each other: one at a time tries
// more, and after a failure nobody does for a while.
type lesson struct {
	mu      sync.Mutex
	width   int       // known to be worth it; 0 stands for 1
	trying  time.Time // until then somebody tries more
	resting time.Time // until then nobody does
	rest    time.Duration
}

// try returns to how many requests at a time somebody may go on who has so many, and whether that is an experiment. It is the same
// number when it is not the time for more.
func (l *lesson) try(now time.Time, width, most int) (wider int, experiment bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case width >= most:
		return width, false
	case width < l.width:
		return min(l.width, most), false
	case now.Before(l.trying) || now.Before(l.resting):
		return width, false
	}
	l.trying = now.Add(experimentTime)
	return min(width*growth, most), true
}

// rewarded says that so many requests at a time were worth it.
func (l *lesson) rewarded(width int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.width = max(l.width, width)
	l.rest = 0
}

// failed says that more than so many were not.
func (l *lesson) failed(now time.Time, width int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.width = width
	l.rest = min(max(restGrowth*l.rest, firstRest), lastRest)
	l.resting = now.Add(l.rest)
}

// tried ends an experiment, whatever came of it.
func (l *lesson) tried() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trying = time.Time{}
}
