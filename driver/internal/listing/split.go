package listing

import (
	"context"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// requestRanges requests the first pages of further key ranges, up to maxRanges.
func (f *prefetcher) requestRanges() {
	for f.points != nil && len(f.ranges) < maxRanges && !f.ended.Load() {
		end, ok := f.points.after(f.nextRange)
		if !ok {
			f.points = nil // what is after the last is fetched page by page
		}
		if !ok || !f.reservation.TryTake(pageBytes) {
			return
		}
		s := &keyRange{after: f.nextRange, end: end, splitOff: true, reserved: true}
		var ctx context.Context
		ctx, s.cancel = context.WithCancel(f.ctx)
		s.coming = f.requestRange(ctx, s.after, s.end)
		f.setRanges(append(f.ranges, s))
		f.nextRange = end
	}
}

// A splitWave is key ranges that follow each other and that the prefetcher requested together.
type splitWave struct {
	ranges  int
	entries int           // on their first pages
	took    time.Duration // for these, one after another
}

// checkGain looks at the first page of a key range. It ends splitting when less than half of a wave was useful, or
// when it was not faster. The server may be busy, or may need longer to begin at a key than to continue a page. The
// statistics record that.
func (f *prefetcher) checkGain(s *keyRange, p *s3api.Page) {
	entries := upTo(p, s.end)
	w := &f.wave
	w.ranges++
	w.entries += entries
	w.took += p.Took
	if w.ranges < maxRanges {
		return
	}
	each := w.took / maxRanges * pageEntries / time.Duration(max(w.entries, 1)) // so many come at the same time
	if w.entries < maxRanges*pageEntries/2 || !f.lister.Stats.Pages.Gains(time.Now(), each) {
		f.points = nil
	}
	f.wave = splitWave{}
}
