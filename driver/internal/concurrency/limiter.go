// Package concurrency decides how many requests move bytes between this process and an S3 server in parallel.
//
// One [Limiter] controls the requests of one direction, for all transfers of an endpoint. Each [Transfer] always has one request. Uploads wait for
// more by [Transfer.Acquire], first come, first served; downloads take more by [Transfer.TryAcquire].
//
// The limit follows PCC (Dong et al., "PCC: Re-architecting Congestion Control for Consistent High Performance", NSDI 2015). It has no
// model of the server. It measures the throughput of a monitor interval, probes another limit, and keeps the one with the better utility. In the
// starting phase each probe multiplies the limit, and a probe that fails is reverted. This package differs in four points:
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

// lookAhead is how many requests under way allow one part to be filled ahead of its turn. More would only wait in memory.
const lookAhead = 4

// A Limiter decides how many requests of one direction an endpoint gets in parallel. It is safe for concurrent use.
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
	part    int64         // bytes of the last part or chunk
	latency time.Duration // of the last part
	backlog stopwatch     // runs while a transfer waits for another request

	interval interval
	probe    *probe
	next     time.Time     // no probe begins before
	grows    bool          // the last probe succeeded
	backoff  time.Duration // after the last failed probe, 0 after one that did not fail
}

// A waiter is a transfer that waits for another request.
type waiter struct {
	transfer *Transfer
	filled   bool          // it waits to send a part, and not to fill one
	granted  chan struct{} // closed when it may
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

// TryAcquire takes a request for a chunk of so many bytes without waiting, or returns false where the transfer may have no more for now. Where several downloads want more,
// each gets its share.
func (t *Transfer) TryAcquire(chunk int64) bool {
	l := t.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	share := l.capacity(l.active) / max(l.active, 1)
	granted := l.limit > 1 && l.free(t) > 0 && (t.used <= share || l.refused == 0 || t.refused && l.refused == 1)
	if granted {
		l.part = chunk
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

// Received counts bytes of a download as its client gets them.
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

// ReleasePart ends a request that began to send a part at the time begin. The server has stored so many bytes, 0 after an error.
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
	backlog := l.refused > 0
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
