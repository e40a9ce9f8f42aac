package driver

import (
	"context"
	"time"

	"github.com/babelftp/babelftp/driver/internal/endpoint"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// measure asks for something that takes no time but that of the way, where nobody has of late: whether there is some object. It asks a
// few times, because the shortest answer counts.
func (a *ahead) measure(p *s3api.Page) {
	const times = 3
	key := p.Last()
	if p.Next == "" || key == "" || p.Took < endpoint.SlowPage || a.route.stats.RTT(time.Now()) > 0 {
		return
	}
	a.requests.Go(func() {
		for range times {
			_, _, _ = a.bucket.Head(a.ctx, key)
		}
	})
}

// extend asks for the first pages of as many stretches as there may be.
func (a *ahead) extend() {
	for a.splitter != nil && len(a.stretches) < maxStretches && !a.ended.Load() {
		end, ok := a.splitter.after(a.front)
		if !ok {
			a.splitter = nil // what is after the last is fetched page by page
		}
		if !ok || !a.borrower.TryTake(pageMemory) {
			return
		}
		s := &stretch{after: a.front, end: end, splitOff: true, borrowed: true}
		var ctx context.Context
		ctx, s.cancel = context.WithCancel(a.ctx)
		s.coming = a.begin(ctx, s.after, s.end)
		a.setStretches(append(a.stretches, s))
		a.front = end
	}
}

// A wave is some stretches in a row.
type wave struct {
	stretches int
	entries   int           // on their first pages
	took      time.Duration // for these, one after another
}

// judge looks at the first page of a stretch. It ends splitting when less than half of a wave was of use, and when that was not faster: the
// server has its hands full, or finds it harder to begin somewhere than to go on with a page. The latter is for the statistics to know.
func (a *ahead) judge(s *stretch, p *s3api.Page) {
	entries, _ := p.UpTo(s.end)
	w := &a.wave
	w.stretches++
	w.entries += entries
	w.took += p.Took
	if w.stretches < maxStretches {
		return
	}
	each := w.took / maxStretches * pageEntries / time.Duration(max(w.entries, 1)) // so many come at the same time
	if w.entries < maxStretches*pageEntries/2 || !a.route.stats.Pages.Gains(time.Now(), each) {
		a.splitter = nil
	}
	a.wave = wave{}
}
