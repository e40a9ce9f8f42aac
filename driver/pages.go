package driver

import (
	"context"
	"iter"
	"sync"
)

// pages are the pages of a listing, of which the first is there. While one is read the next is on its way: two are held at most.
func (b *bucket) pages(ctx context.Context, l listing, first *page) iter.Seq2[*page, error] {
	return func(yield func(*page, error) bool) {
		if first.next == "" {
			yield(first, nil)
			return
		}
		a := newAhead(ctx, b, l)
		defer a.close()
		for next := first; ; {
			var coming <-chan arrival
			if next.next != "" {
				coming = a.ask(next.next)
			}
			if !yield(next, nil) || coming == nil {
				return
			}
			got := <-coming
			if got.err != nil {
				yield(nil, got.err)
				return
			}
			next = got.page
		}
	}
}

// ahead asks for the pages of a listing ahead of whoever reads them.
type ahead struct {
	ctx      context.Context
	cancel   context.CancelFunc
	bucket   *bucket
	listing  listing
	requests sync.WaitGroup
}

// An arrival is a page or the error in its place.
type arrival struct {
	page *page
	err  error
}

func newAhead(ctx context.Context, b *bucket, l listing) *ahead {
	a := &ahead{bucket: b, listing: l}
	a.ctx, a.cancel = context.WithCancel(ctx)
	return a
}

// close ends the requests that nobody waits for any more.
func (a *ahead) close() {
	a.cancel()
	a.requests.Wait()
}

// ask asks for the page of a token. Its answer always comes.
func (a *ahead) ask(token string) <-chan arrival {
	l := a.listing
	l.token = token
	coming := make(chan arrival, 1)
	a.requests.Go(func() {
		page, err := a.bucket.list(a.ctx, l)
		coming <- arrival{page, err}
	})
	return coming
}
