package listing

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/panics"
)

const (
	// maxRanges is the maximum number of key ranges of a listing that are in flight or unread.
	maxRanges = 12

	// pageEntries is the maximum number of entries of a page of S3, and pageBytes the approximate memory that they use.
	pageEntries = 1000
	pageBytes   = 512 << 10

	// unreadTime limits the time for which an open listing keeps its first pages until the client reads them. A client
	// needs a few round trips to open its data connection.
	unreadTime = 3 * time.Second
)

// pages yields the pages of a listing, beginning with first. While the client reads one page, the next is requested.
//
// A page of S3 contains the token for the next page, so pages can only be requested one after another. If S3 is far
// away and the directory was listed before, the prefetcher requests up to maxRanges key ranges in parallel instead. A
// range begins after a split point and ends with the next one. The split points come from the previous listing, and
// their keys need not exist any more. They affect only the speed: a range of more than one page takes several requests,
// and a range of few entries still takes one. Together, the ranges yield the whole listing in order, and each entry
// once.
func (f *prefetcher) pages(first *s3api.Page) iter.Seq2[*s3api.Page, error] {
	return func(yield func(*s3api.Page, error) bool) {
		defer f.close()
		var points recorder
		recorded := f.lister.Stats.Far(time.Now())
		page := f.firstPage(first)
		for first = nil; page != nil; {
			if recorded {
				points.add(f.listing.Prefix, page)
			}
			if !yield(page, nil) {
				return
			}
			var err error
			if page, err = f.next(); err != nil {
				yield(nil, err)
				return
			}
		}
		if recorded {
			f.lister.SplitPoints.put(listedPrefix{f.lister.Bucket.Name, f.listing.Prefix}, points.end(f.listing.Prefix))
		}
	}
}

// begin requests the first page. If the directory was listed before, it requests later pages in parallel.
func (f *prefetcher) begin() (*s3api.Page, error) {
	in := f.listing
	if in.Limit = f.pageMemory.take(); in.Limit == 0 {
		f.splitByPoints()
	}
	return f.lister.Bucket.List(f.ctx, in)
}

// splitByPoints requests the key ranges after the first one, if the split points are known and S3 is far away.
func (f *prefetcher) splitByPoints() {
	if !f.lister.Bucket.Profile.SortedListings || !f.lister.Stats.Far(time.Now()) {
		return
	}
	points := f.lister.SplitPoints.get(listedPrefix{f.lister.Bucket.Name, f.listing.Prefix})
	if len(points) == 0 {
		return
	}
	f.reservation = f.lister.Memory.Reserve(f.drop)
	f.points, f.nextRange = points, points[0]
	if f.requestRanges(); len(f.ranges) == 1 { // no memory for further ranges
		f.reservation.Close()
		f.points, f.reservation = nil, nil
		return
	}
	f.ranges[0].end = points[0]
	f.split = true
}

// firstPage requests the pages after the first one, and returns the part of the first page that belongs to the first
// key range.
func (f *prefetcher) firstPage(first *s3api.Page) *s3api.Page {
	if f.split && !inOrder(first) {
		f.drop()
		f.points = nil
		f.setRanges([]*keyRange{{}})
	}
	s := f.ranges[0]
	f.requestNext(s, first)
	cut(first, "", s.end)
	return first
}

// A prefetcher requests the pages of a listing in advance. Its methods, except drop, must be called by one goroutine
// only.
type prefetcher struct {
	ctx      context.Context
	cancel   context.CancelFunc
	lister   *Lister
	listing  s3api.Listing
	requests sync.WaitGroup

	points      splitPoints          // the ends of the key ranges not requested yet; nil if not split
	nextRange   string               // split point after which the next key range begins
	split       bool                 // the first page was requested together with further ranges
	ended       atomic.Bool          // the last page was requested
	pageMemory  pageMemory           // for the current and the next page
	reservation *membudget.Revocable // for further pages; nil unless split

	mu     sync.Mutex
	ranges []*keyRange // in order, beginning with the one being read; empty at the end
}

// A keyRange is the part of a listing after one key, up to and including another one.
type keyRange struct {
	after, end string             // empty for no bound
	splitOff   bool               // its first page was requested by key, not by token, and has not been read yet
	cancel     context.CancelFunc // cancels the request for the first page
	reserved   bool               // memory is reserved for the first page
	coming     <-chan pageResult  // receives the next page; nil if not requested yet
	token      string             // token of the next page
}

// A pageResult is the result of a request for a page.
type pageResult struct {
	page *s3api.Page
	err  error
}

// errRevoked is the error for a page whose memory was revoked by the budget.
var errRevoked = errors.New("memory of the page was revoked by the memory budget")

func newPrefetcher(ctx context.Context, l *Lister, prefix string) *prefetcher {
	f := &prefetcher{
		lister: l, listing: s3api.Listing{Prefix: prefix, Delimiter: s3object.Separator},
		pageMemory: pageMemory{memory: &l.Memory.Listings}, ranges: []*keyRange{{}},
	}
	f.ctx, f.cancel = context.WithCancel(ctx)
	return f
}

// close cancels the requests in flight and returns the memory.
func (f *prefetcher) close() {
	f.cancel()
	f.drop()
	f.requests.Wait()
	if f.reservation != nil {
		f.reservation.Close()
	}
	f.pageMemory.release()
}

// requestPage requests the next page of a key range by its token. If no memory is free, it requests a small page.
func (f *prefetcher) requestPage(token string) <-chan pageResult {
	l := f.listing
	l.Token, l.Limit = token, f.pageMemory.take()
	return f.request(func() (*s3api.Page, error) { return f.lister.Bucket.List(f.ctx, l) })
}

// requestRange requests the first page of a key range. If the range continues after this page, it also requests the
// second one.
func (f *prefetcher) requestRange(ctx context.Context, after, end string) <-chan pageResult {
	l := f.listing
	l.After = after
	return f.request(func() (*s3api.Page, error) {
		p, err := f.lister.Bucket.List(ctx, l)
		if err != nil || p.Next == "" || end == "" || p.Last() >= end {
			return p, err
		}
		l.Token = p.Next
		second, err := f.lister.Bucket.List(ctx, l)
		if err != nil {
			return nil, err
		}
		return join(p, second), nil
	})
}

// request calls list in a new goroutine.
func (f *prefetcher) request(list func() (*s3api.Page, error)) <-chan pageResult {
	coming := make(chan pageResult, 1)
	f.requests.Go(func() {
		page, err := panics.Result(list)
		if err == nil && page.Next == "" {
			f.ended.Store(true)
		}
		coming <- pageResult{page, err}
	})
	return coming
}

// next waits for the next page and requests later ones. It returns nil at the end.
func (f *prefetcher) next() (*s3api.Page, error) {
	for {
		s, coming := f.current()
		if s == nil {
			return nil, nil
		}
		if coming == nil {
			coming = f.requestPage(s.token)
		}
		got := <-coming
		splitOff := f.arrived(s)
		if splitOff && (got.err != nil || !inOrder(got.page)) {
			f.restart(s.after)
			continue
		}
		if got.err != nil {
			return nil, got.err
		}
		f.requestNext(s, got.page)
		cut(got.page, s.after, s.end)
		return got.page, nil
	}
}

// current returns the key range being read and the channel of its next page. The range is nil at the end.
func (f *prefetcher) current() (*keyRange, <-chan pageResult) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ranges) == 0 {
		return nil, nil
	}
	return f.ranges[0], f.ranges[0].coming
}

// arrived returns the memory of a page to the reservation, and reports whether the page is the first one of a range
// that was split off.
func (f *prefetcher) arrived(s *keyRange) (splitOff bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	splitOff = s.splitOff
	if s.splitOff = false; s.reserved {
		s.reserved = false
		s.cancel()
		f.reservation.Return(pageBytes)
	}
	return splitOff
}

// requestNext requests the page after p. If the listing has no memory, it leaves the request to next, so that only one
// page is in memory.
func (f *prefetcher) requestNext(s *keyRange, p *s3api.Page) {
	switch {
	case p.Next == "":
		s.end = "" // the listing ends with this page
		f.drop()
		f.setRanges(nil)
		return
	case !f.pageMemory.held:
		s.coming, s.token = nil, p.Next
		return
	case s.end != "" && p.Last() >= s.end:
		if f.setRanges(f.ranges[1:]); len(f.ranges) == 0 {
			f.restart(s.end)
		}
		f.requestRanges()
		return
	}
	s.coming = f.requestPage(p.Next)
	f.requestRanges()
}

func (f *prefetcher) setRanges(s []*keyRange) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ranges = s
}

// restart continues after a key with a single key range, without splitting.
func (f *prefetcher) restart(after string) {
	f.drop()
	f.points = nil
	f.setRanges([]*keyRange{{after: after, coming: f.requestRange(f.ctx, after, "")}})
}

// drop drops the unread pages in reserved memory. It may be called concurrently with all other methods.
func (f *prefetcher) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.ranges {
		if !s.reserved {
			continue
		}
		s.cancel()
		revoked := make(chan pageResult, 1)
		revoked <- pageResult{err: errRevoked}
		s.coming, s.reserved = revoked, false
		f.reservation.Return(pageBytes)
	}
}
