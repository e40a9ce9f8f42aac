// Package concurrency decides how many requests move bytes between this process and an S3 server in parallel.
//
// One [Limiter] controls the requests of one direction, for all transfers of an endpoint. Each [Transfer] always has one request. Uploads wait for
// more by [Transfer.Acquire], first come, first served; downloads take more by [Transfer.TryAcquire].
//
// The limit follows PCC (Dong et al., "PCC: Re-architecting Congestion Control for Consistent High Performance", NSDI 2015): it does not model the
// server but measures the throughput of a monitor interval, probes another limit, and keeps the one with the better utility. In the starting phase
// each probe multiplies the limit, and a probe that fails is reverted. This package differs in four points:
//
//   - The limit counts requests, not bytes, and one request is enough for most servers. So the utility has a price: a higher limit must bring
//     [gain] times the throughput.
//   - It probes only while transfers wait for a request (RFC 7661 calls others application-limited), and a probe that the transfers did not use
//     has no result.
//   - After a failed probe it backs off, each time for longer, because each probe of a near server costs requests and processor time.
//   - Before a distant server it starts with the maximum, since a few round trips of probes take as long as a hundred megabytes. It probes
//     a lower limit later.
package concurrency

import (
	"context"
	"slices"
	"sync"
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

	// minInterval is how long a monitor interval takes at least, and crowdInterval where several uploads share the limit: their parts tend
	// to be answered together, and a near server that is busy answers by fits and starts.
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

	// retryDelay is how long it does not probe after a probe without a result: its transfers may have ended.
	retryDelay = 2 * time.Second

	// lookAhead is how many requests under way allow one part to be filled ahead of its turn. More would only wait in memory.
	lookAhead = 4
)

// A Limiter decides how many requests of one direction an endpoint gets at a time. It is safe for concurrent use.
type Limiter struct {
	stats *endpoint.Stats
	parts bool // bytes count by parts, when they are answered, and not as they come

	mu       sync.Mutex
	limit    int       // requests that a transfer may have which is alone
	measured bool      // the limit is no guess
	since    time.Time // when the limit was found, or the guess was made
	guessed  int64     // bytes before the guess

	transfers int // that have joined
	active    int // transfers that have requests under way
	used      int // requests under way
	ahead     int // parts filled, or being filled, of transfers that have requests under way
	queue     []*waiter
	refused   int // downloads that were refused a request, and still want it

	bytes   int64
	part    int64         // bytes of the last part; 0 for downloads
	latency time.Duration // of the last part
	backlog stopwatch     // runs while a transfer waits for another request

	interval interval
	probe    *probe
	next     time.Time     // no probe begins before
	grows    bool          // the last probe succeeded
	backoff  time.Duration // after the last failed probe, 0 after one that did not fail
}

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

// A waiter is a transfer that waits for another request.
type waiter struct {
	transfer *Transfer
	filled   bool          // it waits to send a part, and not to fill one
	granted  chan struct{} // closed when it may
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

// ForUploads returns a limiter of the parts that are sent to an endpoint.
func ForUploads(stats *endpoint.Stats) *Limiter { return &Limiter{stats: stats, parts: true} }

// ForDownloads returns a limiter of the requests by which an endpoint sends objects.
func ForDownloads(stats *endpoint.Stats) *Limiter { return &Limiter{stats: stats} }

// Join enters a transfer that may have so many requests under way, until Leave.
func (l *Limiter) Join(most int) *Transfer {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.transfers++; l.transfers == 1 {
		l.begin(now, true)
	}
	if l.limit == 0 || now.Sub(l.since) > endpoint.MaxBackoff {
		l.guess(now, most)
	}
	return &Transfer{limiter: l, most: most}
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

// A Transfer is an upload or a download.
type Transfer struct {
	limiter *Limiter
	most    int

	// Guarded by the limiter's mutex:
	used    int
	ahead   bool // it fills a part, or has, while others are under way
	refused bool // it wants another request
	left    bool
}

// Leave ends a transfer that has no request under way. It may be called again.
func (t *Transfer) Leave() {
	l := t.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.left {
		return
	}
	t.left = true
	now := time.Now()
	l.refuse(t, now, false)
	if l.transfers--; l.transfers == 0 && l.probe != nil {
		l.finish(now, l.probe.limit, false) // it has no result yet
	}
}

// WaitToFill waits until the next part is worth filling, because its turn is near. It returns false when one of the contexts ends first.
func (t *Transfer) WaitToFill(ctx, until context.Context) bool { return t.wait(ctx, until, false) }

// Acquire waits for a request. It returns false when one of the contexts ends first.
func (t *Transfer) Acquire(ctx, until context.Context) bool { return t.wait(ctx, until, true) }

func (t *Transfer) wait(ctx, until context.Context, filled bool) bool {
	l, w := t.limiter, &waiter{transfer: t, filled: filled, granted: make(chan struct{})}
	l.mu.Lock()
	l.queue = append(l.queue, w)
	l.serve(time.Now())
	l.mu.Unlock()
	select {
	case <-w.granted:
		return true
	case <-ctx.Done():
	case <-until.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, w); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	} else if filled {
		l.add(t, -1) // it was granted meanwhile
	}
	l.setAhead(t, false)
	l.serve(time.Now())
	return false
}

// Start takes a request without waiting: the first of a download.
func (t *Transfer) Start() {
	t.limiter.mu.Lock()
	defer t.limiter.mu.Unlock()
	t.limiter.add(t, 1)
}

// TryAcquire takes a request without waiting, or returns false where the transfer may have no more for now. Where several downloads want more,
// each gets its share.
func (t *Transfer) TryAcquire() bool {
	l := t.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	share := l.capacity(l.active) / max(l.active, 1)
	granted := l.limit > 1 && l.free(t) > 0 && (t.used <= share || l.refused == 0 || t.refused && l.refused == 1)
	if granted {
		l.add(t, 1)
	}
	l.refuse(t, time.Now(), !granted)
	return granted
}

// Suffice says that the transfer wants no more requests than it has.
func (t *Transfer) Suffice() {
	t.limiter.mu.Lock()
	defer t.limiter.mu.Unlock()
	t.limiter.refuse(t, time.Now(), false)
}

// Limit is how many requests the transfer may have if it is alone.
func (t *Transfer) Limit() int {
	t.limiter.mu.Lock()
	defer t.limiter.mu.Unlock()
	return min(t.limiter.limit, t.most)
}

// Received counts bytes of a download as they come.
func (t *Transfer) Received(bytes int) {
	l := t.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.bytes += int64(bytes)
	l.latency = l.stats.RTT(now)
	l.adjust(now)
}

// Release ends a request of a download.
func (t *Transfer) Release() {
	t.limiter.mu.Lock()
	defer t.limiter.mu.Unlock()
	t.limiter.add(t, -1)
}

// ReleasePart ends a request that began to send a part at a time. The server has stored so many bytes, 0 after an error.
func (t *Transfer) ReleasePart(begin time.Time, bytes int64) {
	l, now := t.limiter, time.Now()
	took := now.Sub(begin)
	if bytes > 0 && took < endpoint.FarAway {
		l.stats.ObserveAny(now, took)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes > 0 {
		l.bytes += bytes
		l.part, l.latency = bytes, took
		l.adjust(now)
	}
	l.add(t, -1)
	l.serve(now)
}

// add counts a request that begins or ends.
func (l *Limiter) add(t *Transfer, n int) {
	before := t.used
	t.used += n
	l.used += n
	switch {
	case before == 0:
		l.active++
	case t.used == 0:
		l.active--
	}
	if n > 0 || t.used == 0 {
		l.setAhead(t, false)
	}
	l.interval.used, l.interval.active = max(l.interval.used, l.used), max(l.interval.active, l.active)
}

func (l *Limiter) setAhead(t *Transfer, ahead bool) {
	switch {
	case ahead && !t.ahead:
		l.ahead++
	case t.ahead && !ahead:
		l.ahead--
	}
	t.ahead = ahead
}

func (l *Limiter) refuse(t *Transfer, now time.Time, refused bool) {
	switch {
	case refused && !t.refused:
		l.refused++
	case t.refused && !refused:
		l.refused--
	}
	t.refused = refused
	l.backlog.run(now, l.refused > 0)
}

// capacity is how many requests so many transfers may have. Each has one, and they share what the limit allows besides. A guess holds for each download;
// parts would take too much memory.
func (l *Limiter) capacity(transfers int) int {
	if !l.measured && l.probe == nil && !l.parts {
		return l.limit * transfers
	}
	return l.limit - 1 + transfers
}

// free is how many more requests a transfer may have now.
func (l *Limiter) free(t *Transfer) int {
	transfers := l.active
	if t.used == 0 {
		transfers++
	}
	return max(min(l.capacity(transfers)-l.used, t.most-t.used), 0)
}

// serve grants requests to those who have waited longest, and first to filled parts.
func (l *Limiter) serve(now time.Time) {
	backlog := false
	for _, filled := range []bool{true, false} {
		l.queue = slices.DeleteFunc(l.queue, func(w *waiter) bool {
			t := w.transfer
			free := l.free(t)
			switch {
			case w.filled != filled:
				return false
			case filled && free > 0:
				l.add(t, 1)
			case !filled && t.used == 0:
			case !filled && l.ahead < free+max(l.used/lookAhead, 1):
				l.setAhead(t, true)
			default:
				backlog = backlog || filled && t.used < t.most
				return false
			}
			close(w.granted)
			return true
		})
	}
	l.backlog.run(now, backlog)
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
		need, rounds = max(settling, l.latency+l.latency/growth), rounds-1
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
	switch {
	case !result:
		l.next = now.Add(retryDelay)
	case l.grows:
		l.backoff = 0
	default:
		l.backoff = min(max(growth*l.backoff, firstBackoff), endpoint.MaxBackoff)
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
