package driver

import (
	"context"
	"time"

	"github.com/babelftp/babelftp/driver/internal/endpoint"
	"github.com/babelftp/babelftp/driver/internal/keys"
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

// split ends the stretch that is read, which has had no end, where others can begin, or returns false where that is not worth it, or where a
// listing that begins after a key is not all that comes after it.
//
// No key of them has a slash behind the prefix, because servers differ in whether they list the directory in which a listing begins.
func (a *ahead) split(s *stretch, p *s3api.Page) bool {
	if a.unsplittable || !a.bucket.Profile.SortedListings || a.listing.Delimiter != keys.Separator || !a.route.stats.SplitsListings(time.Now()) || !p.InOrder() {
		return false
	}
	guesses := newSplitter(a.listing, p)
	if guesses == nil {
		return false
	}
	end, ok := guesses.after(p.Last())
	if !ok {
		return false
	}
	return a.divide(s, guesses, end)
}

// divide ends a stretch, which has had no end, and begins those after it, or returns false where there is no memory for any.
func (a *ahead) divide(s *stretch, d divider, end string) bool {
	if a.borrower == nil {
		a.borrower = a.memory.Reserve(a.drop)
	}
	a.splitter, a.front = d, end
	a.extend()
	if len(a.stretches) == 1 {
		return false
	}
	s.end = end
	return true
}

// extend asks for the first pages of as many stretches as there may be.
func (a *ahead) extend() {
	for a.splitter != nil && len(a.stretches) < maxStretches && !a.ended.Load() {
		end, ok := a.splitter.after(a.front)
		if !ok || !a.borrower.TryTake(pageMemory) {
			a.splitter = nil // what is after the last is fetched page by page
			return
		}
		s := &stretch{after: a.front, end: end, guessed: true, borrowed: true}
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

// judge looks at the first page of a stretch. Where the guess was no good, it learns to guess from there on: the keys may be others than
// where the listing began.
//
// It ends splitting when less than half of a wave was of use, and when that was not faster: the server has its hands full, or finds it
// harder to begin somewhere than to go on with a page. The latter is for the route to know.
func (a *ahead) judge(s *stretch, p *s3api.Page) {
	entries, whole := p.UpTo(s.end)
	if a.splitter != nil && p.Next != "" && (entries < pageEntries/2 || !whole) {
		if better := newSplitter(a.listing, p); better != nil {
			a.splitter = better
		}
	}
	w := &a.wave
	w.stretches++
	w.entries += entries
	w.took += p.Took
	if w.stretches < maxStretches {
		return
	}
	each := w.took / maxStretches * pageEntries / time.Duration(max(w.entries, 1)) // so many come at the same time
	if w.entries < maxStretches*pageEntries/2 || !a.route.stats.Pages.Gains(time.Now(), each) {
		a.splitter, a.unsplittable = nil, true
	}
	a.wave = wave{}
}
