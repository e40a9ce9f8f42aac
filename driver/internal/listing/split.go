package listing

import "context"

// requestRanges requests the first pages of further key ranges, up to maxRanges and as far as memory is free.
func (f *prefetcher) requestRanges() {
	for f.points != nil && len(f.ranges) < maxRanges && !f.ended.Load() {
		end, ok := f.points.after(f.nextRange)
		if !ok {
			f.points = nil // entries after the last split point are requested page by page
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
