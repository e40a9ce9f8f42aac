package listing

import (
	"context"
	"time"

	"github.com/babelftp/babelftp/driver/internal/endpoint"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// measure measures the round trip where no request has recently: it asks whether there is some object, which takes S3 no time. It asks a
// few times, because the shortest answer counts.
func (a *prefetcher) measure(p *s3api.Page) {
	const times = 3
	key := p.Last()
	if p.Next == "" || key == "" || p.Took < endpoint.SlowPage || a.lister.Stats.RTT(time.Now()) > 0 {
		return
	}
	a.requests.Go(func() {
		for range times {
			_, _, _ = a.lister.Bucket.Head(a.ctx, key)
		}
	})
}

// extend asks for the first pages of as many key ranges as there may be.
func (a *prefetcher) extend() {
	for a.points != nil && len(a.ranges) < maxRanges && !a.ended.Load() {
		end, ok := a.points.after(a.front)
		if !ok {
			a.points = nil // what is after the last is fetched page by page
		}
		if !ok || !a.reservation.TryTake(pageBytes) {
			return
		}
		s := &keyRange{after: a.front, end: end, splitOff: true, reserved: true}
		var ctx context.Context
		ctx, s.cancel = context.WithCancel(a.ctx)
		s.coming = a.begin(ctx, s.after, s.end)
		a.setRanges(append(a.ranges, s))
		a.front = end
	}
}

// A splitWave is key ranges that follow each other and that the prefetcher requested together.
type splitWave struct {
	ranges  int
	entries int           // on their first pages
	took    time.Duration // for these, one after another
}

// judge looks at the first page of a key range. It ends splitting when less than half of a wave was useful, or when it was not faster. The
// server may be busy, or may need longer to begin at a key than to continue a page. The statistics record that.
func (a *prefetcher) judge(s *keyRange, p *s3api.Page) {
	entries := upTo(p, s.end)
	w := &a.wave
	w.ranges++
	w.entries += entries
	w.took += p.Took
	if w.ranges < maxRanges {
		return
	}
	each := w.took / maxRanges * pageEntries / time.Duration(max(w.entries, 1)) // so many come at the same time
	if w.entries < maxRanges*pageEntries/2 || !a.lister.Stats.Pages.Gains(time.Now(), each) {
		a.points = nil
	}
	a.wave = splitWave{}
}
