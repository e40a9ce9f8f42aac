package concurrency

import (
	"time"

	"github.com/babelftp/babelftp/driver/internal/endpoint"
)

const (
	// growth is how many times as many requests a probe gives a transfer that is alone. To double them would take twice as many probes, and a
	// large object on a distant server has come in the meantime.
	growth = 4

	// gain is how many times the throughput a higher limit must bring.
	gain = 1.3

	// backlogged is the share of an interval for which transfers must wait to probe more. A client that is faster by gain waits for so long.
	backlogged = 1 - 1/gain

	// minInterval is the minimum duration of a monitor interval, and crowdInterval that where several uploads share the limit. The server
	// tends to answer the parts of several uploads together, and a busy near server answers in bursts.
	minInterval   = 50 * time.Millisecond
	crowdInterval = 700 * time.Millisecond

	// crowdRounds is how often as many parts as are under way must be answered in that interval.
	crowdRounds = 2

	// settling is how long after a change of the limit nothing is measured, at least.
	settling = 5 * time.Millisecond

	// guessRounds is how often all requests under way must be answered before a limit that was not measured is probed downwards. Most uploads end
	// before, and to the others it is a small part.
	guessRounds = 16

	// firstBackoff is how long the limiter does not probe after a failed probe, the first time. It is short, because a measurement may go wrong.
	firstBackoff = 500 * time.Millisecond

	// retryDelay is the first back-off after a probe without a result: its transfers may have ended.
	retryDelay = 2 * time.Second
)

// An interval is what is measured of a monitor interval.
type interval struct {
	begin    time.Time
	bytes    int64         // before it
	backlog  time.Duration // before it
	used     int           // the most requests under way in it
	active   int           // the most transfers that had some
	settling bool          // the limit has just changed
}

// A probe is a limit that is tried.
type probe struct {
	guess   int           // before, where it was not measured
	limit   int           // before, for all transfers
	rate    float64       // before, in bytes a second
	latency time.Duration // before
	begin   time.Time
	bytes   int64 // before it
}

// A stopwatch adds up times.
type stopwatch struct {
	total time.Duration
	begin time.Time // zero while it stands still
}

func (w *stopwatch) run(now time.Time, runs bool) {
	switch {
	case runs && w.begin.IsZero():
		w.begin = now
	case !runs && !w.begin.IsZero():
		w.total, w.begin = w.at(now), time.Time{}
	}
}

func (w *stopwatch) at(now time.Time) time.Duration {
	if w.begin.IsZero() {
		return w.total
	}
	return w.total + now.Sub(w.begin)
}

// guess begins anew: with all requests before a distant server, or with one.
func (l *Limiter) guess(now time.Time, most int) {
	l.limit, l.measured, l.since, l.probe = 1, false, now, nil
	if l.stats.Far(now) {
		l.limit = most
	}
	l.backoff, l.next, l.guessed = 0, now, l.bytes
	l.begin(now, false)
}

// begin begins a monitor interval, or one in which a new limit settles.
func (l *Limiter) begin(now time.Time, settling bool) {
	l.interval = interval{begin: now, bytes: l.bytes, backlog: l.backlog.at(now), used: l.used, active: l.active, settling: settling}
}

// adjust ends a monitor interval when it has been long enough.
func (l *Limiter) adjust(now time.Time) {
	if !l.measured && l.probe == nil && l.limit > 1 && !l.stats.Far(now) {
		l.guess(now, 1) // the server seemed distant but was only busy
	}
	if l.succeeds(now) {
		l.finish(now, l.limit, true)
		return
	}
	i, elapsed := &l.interval, now.Sub(l.interval.begin)
	bytes, crowd := l.bytes-i.bytes, l.parts && i.active > 1
	need, rounds := max(minInterval, l.latency), int64(1)
	if crowd {
		need, rounds = crowdInterval, crowdRounds
	}
	if i.settling {
		need = max(settling, l.latency+l.latency/growth)
		if l.parts { // chunks that came while the first was read would count as throughput
			rounds--
		}
	}
	if elapsed < need || bytes < rounds*l.part*int64(i.used) {
		return
	}
	rate := float64(bytes) / elapsed.Seconds()
	limited := i.used+1 >= l.capacity(l.active) // a part more is being filled
	limit := l.capacity(l.active) - l.active + 1
	switch {
	case i.settling:
		l.begin(now, false)
	case l.probe != nil:
		l.judge(now, rate, limited)
	case !l.measured && l.limit > 1 && limited && l.parts && l.bytes-l.guessed >= guessRounds*l.part*int64(i.used):
		l.try(now, rate, max(limit/growth, 1))
	case l.backlog.at(now)-i.backlog >= time.Duration(backlogged*float64(elapsed)) && !now.Before(l.next):
		sharers := max(i.active, 1)
		if l.grows && !l.parts { // so many parts more would take too much memory
			sharers = 1
		}
		l.try(now, rate, limit+max((growth-1)*i.used/sharers, (i.used+1)/2))
	default:
		l.begin(now, false)
	}
}

// try begins a probe.
func (l *Limiter) try(now time.Time, rate float64, limit int) {
	l.probe = &probe{guess: l.limit, limit: l.capacity(l.active) - l.active + 1, rate: rate, latency: l.latency, begin: now, bytes: l.bytes}
	l.limit = limit
	l.begin(now, true)
	l.serve(now)
}

// judge ends a probe.
func (l *Limiter) judge(now time.Time, rate float64, limited bool) {
	low, high := l.probe.rate, rate
	if l.limit < l.probe.limit {
		low, high = high, low
	}
	switch {
	case l.limit > l.probe.limit && !limited: // the transfers did not use it
		l.finish(now, l.probe.limit, false)
	case high >= gain*low:
		l.finish(now, max(l.limit, l.probe.limit), true)
	default:
		l.finish(now, min(l.limit, l.probe.limit), true)
	}
}

// succeeds tells whether the probe of a single upload has shown its worth already, which may end before it settles. The last part may have been
// answered together with the one after it.
func (l *Limiter) succeeds(now time.Time) bool {
	p := l.probe
	if p == nil || l.limit < p.limit || !l.parts || l.interval.active > 1 || now.Sub(p.begin) < p.latency {
		return false
	}
	return float64(l.bytes-p.bytes-l.part) >= gain*p.rate*now.Sub(p.begin).Seconds()
}

// finish ends a probe with a limit. Without a result the limit stays what it was.
func (l *Limiter) finish(now time.Time, limit int, result bool) {
	l.grows = result && limit > l.probe.limit
	if l.grows {
		l.backoff = 0
	} else {
		first := firstBackoff
		if !result {
			first = retryDelay
		}
		l.backoff = min(max(growth*l.backoff, first), endpoint.MaxBackoff)
		l.next = now.Add(l.backoff)
	}
	switch {
	case result:
		l.measured, l.since = true, now
	case !l.measured:
		limit = l.probe.guess
	}
	reduced := limit < l.limit
	l.limit, l.probe = limit, nil
	l.begin(now, reduced)
}
