package driver

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/driver/internal/endpoint"
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

const (
	// maxStretches is how many stretches of a listing may be on their way or wait.
	maxStretches = 12

	// pageEntries is how many entries S3 puts into a page, and pageMemory about what they take, in bytes.
	pageEntries = 1000
	pageMemory  = 512 << 10

	// unreadTime is how long the pages are kept that were asked for when a listing was opened, until somebody reads it: a client needs a few
	// times to and fro for its data connection.
	unreadTime = 3 * time.Second
)

// pages are the pages of a listing, of which the first is there. While one is read the next is on its way.
//
// S3 tells only with one page how to ask for the next. Where that takes long, and the directory was listed before, the listing is split into
// stretches which are asked for at the same time: each begins after some key, that need not exist any more, and ends with the one after
// which the next begins. These keys are remembered from the time before, and nothing depends on them but time: a stretch that has more than
// a page is fetched page by page, and together they are all that is listed, in order, each entry once, whatever comes and goes meanwhile.
func (a *ahead) pages(first *s3api.Page) iter.Seq2[*s3api.Page, error] {
	return func(yield func(*s3api.Page, error) bool) {
		defer a.room.release()
		defer a.close()
		if first.Limit == 0 {
			a.measure(first)
		}
		var marker marker
		marked := a.recalled || first.Took >= endpoint.SlowPage // where pages come soon nobody needs marks
		page := a.begun(first)
		for first = nil; page != nil; {
			if marked {
				marker.add(a.listing.Prefix, page)
			}
			if !yield(page, nil) {
				return
			}
			var err error
			if page, err = a.next(); err != nil {
				yield(nil, err)
				return
			}
		}
		if a.recalled || marked && a.route.stats.SplitsListings(time.Now()) {
			a.route.marks.put(markedPlace{a.bucket.Name, a.listing.Prefix}, marker.end(a.listing.Prefix))
		}
	}
}

// recall asks for all but the first page of a directory at once, where it is remembered how they lie, or returns nil. Nobody may want
// them in the end: then they are given up.
func (f *Fs) recall(l s3api.Listing, room *pageRoom) *ahead {
	if !f.bucket.Profile.SortedListings {
		return nil
	}
	m := f.route.marksOf(markedPlace{f.bucket.Name, l.Prefix}, time.Now())
	if len(m) == 0 {
		return nil
	}
	a := newAhead(f, l, room)
	a.borrower = a.memory.Reserve(a.drop)
	a.splitter, a.front = m, m[0]
	if a.extend(); len(a.stretches) == 1 { // there is no memory for any
		a.close()
		return nil
	}
	a.stretches[0].end = m[0]
	a.recalled = true
	return a
}

// begun asks for what comes after the first page, and returns what of it lies in the first stretch.
func (a *ahead) begun(first *s3api.Page) *s3api.Page {
	if a.recalled && !first.InOrder() {
		a.drop()
		a.splitter = nil
		a.setStretches([]*stretch{{}})
	}
	s := a.stretches[0]
	a.follow(s, first)
	return first.Until(s.end)
}

// ahead asks for the pages of a listing ahead of whoever reads them. Its methods are for one goroutine, but for drop.
type ahead struct {
	ctx      context.Context
	cancel   context.CancelFunc
	bucket   *s3api.Bucket
	route    *Route
	memory   *Budget
	listing  s3api.Listing
	requests sync.WaitGroup

	splitter marks  // where the stretches end that were not asked for yet; nil where the listing is not split
	front    string // where the next stretch begins
	wave     wave
	recalled bool                 // it was split from the beginning, by marks
	ended    atomic.Bool          // nothing comes after what was asked for
	room     *pageRoom            // of the page that is read and the one that follows
	borrower *membudget.Revocable // of the memory for others that wait; nil until the listing is split

	mu        sync.Mutex
	stretches []*stretch // in order; the first is read. At the end there are none
}

// A stretch is a part of a listing: what comes after one key, up to another. One that is split off was not asked for by a token, and has been
// read nothing of.
type stretch struct {
	after, end string // empty for no bound
	splitOff   bool
	cancel     context.CancelFunc // of the request for the first page of one that is split off
	borrowed   bool               // the memory for that page
	coming     <-chan arrival     // the page that is read next; nil where it is asked for when the one before was read
	token      string             // of that page then
}

// An arrival is a page or the error in its place.
type arrival struct {
	page *s3api.Page
	err  error
}

// errRecalled takes the place of a page whose memory was needed.
var errRecalled = errors.New("memory called back")

func newAhead(f *Fs, l s3api.Listing, room *pageRoom) *ahead {
	l.Limit = 0
	a := &ahead{bucket: f.bucket, route: f.route, memory: f.memory, listing: l, room: room, stretches: []*stretch{{}}}
	a.ctx, a.cancel = context.WithCancel(f.ctx)
	return a
}

// close ends the requests that nobody waits for any more.
func (a *ahead) close() {
	a.cancel()
	a.drop()
	a.requests.Wait()
	if a.borrower != nil {
		a.borrower.Close()
	}
}

// ask asks for the page that follows another in a stretch, by its token. It is as large as there is room.
func (a *ahead) ask(token string) <-chan arrival {
	l := a.listing
	l.Token, l.Limit = token, a.room.take()
	return a.request(func() (*s3api.Page, error) { return a.bucket.List(a.ctx, l) })
}

// begin asks for the first page of a stretch. Where that turns out to have a little more, the second comes along with it.
func (a *ahead) begin(ctx context.Context, after, end string) <-chan arrival {
	l := a.listing
	l.After = after
	return a.request(func() (*s3api.Page, error) {
		p, err := a.bucket.List(ctx, l)
		if err != nil || p.Next == "" || end == "" || p.Last() >= end {
			return p, err
		}
		l.Token = p.Next
		second, err := a.bucket.List(ctx, l)
		if err != nil {
			return nil, err
		}
		return p.Join(second), nil
	})
}

// request makes requests for a page, and notes when nothing comes after it.
func (a *ahead) request(list func() (*s3api.Page, error)) <-chan arrival {
	coming := make(chan arrival, 1)
	a.requests.Go(func() {
		page, err := list()
		if err == nil && page.Next == "" {
			a.ended.Store(true)
		}
		coming <- arrival{page, err}
	})
	return coming
}

// next waits for the page that follows, and asks for others after it. It returns nil when there is none.
func (a *ahead) next() (*s3api.Page, error) {
	for {
		s, coming := a.current()
		if s == nil {
			return nil, nil
		}
		if coming == nil {
			coming = a.ask(s.token)
		}
		got := <-coming
		splitOff := a.arrived(s)
		switch {
		case splitOff && (got.err != nil || !got.page.InOrder()):
			a.restart(s.after)
			continue
		case got.err != nil:
			return nil, got.err
		case splitOff:
			a.judge(s, got.page)
		case a.splitter == nil && len(a.stretches) == 1 && got.page.Limit == 0:
			a.route.stats.Pages.Observe(time.Now(), got.page.Took)
		}
		a.follow(s, got.page)
		got.page.Cut(s.after, s.end)
		return got.page, nil
	}
}

// current returns the stretch that is read, nil at the end, and where its next page will be.
func (a *ahead) current() (*stretch, <-chan arrival) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.stretches) == 0 {
		return nil, nil
	}
	return a.stretches[0], a.stretches[0].coming
}

// arrived takes a page out of borrowed memory, and tells whether it is the first of a stretch that was split off.
func (a *ahead) arrived(s *stretch) (splitOff bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	splitOff = s.splitOff
	if s.splitOff = false; s.borrowed {
		s.borrowed = false
		s.cancel()
		a.borrower.Return(pageMemory)
	}
	return splitOff
}

// follow asks for what comes after a page of the stretch that is read. Where there is no room it leaves that for later.
func (a *ahead) follow(s *stretch, p *s3api.Page) {
	switch {
	case p.Next == "":
		s.end = "" // there is nothing but what the page has
		a.drop()
		a.setStretches(nil)
		return
	case !a.room.held:
		s.coming, s.token = nil, p.Next
		return
	case s.end != "" && p.Last() >= s.end:
		if a.setStretches(a.stretches[1:]); len(a.stretches) == 0 {
			a.restart(s.end)
		}
		a.extend()
		return
	}
	s.coming = a.ask(p.Next)
	a.extend()
}

func (a *ahead) setStretches(s []*stretch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stretches = s
}

// restart goes on after a key with a single stretch.
func (a *ahead) restart(after string) {
	a.drop()
	a.splitter = nil
	a.setStretches([]*stretch{{after: after, coming: a.begin(a.ctx, after, "")}})
}

// drop gives up the pages in borrowed memory that were not read yet. It may be called while another method runs.
func (a *ahead) drop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.stretches {
		if !s.borrowed {
			continue
		}
		s.cancel()
		nothing := make(chan arrival, 1)
		nothing <- arrival{err: errRecalled}
		s.coming, s.borrowed = nothing, false
		a.borrower.Return(pageMemory)
	}
}
