package download

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/panics"
)

const (
	// maxChunk and minChunk are the sizes of a chunk in bytes. Many of the largest take little memory; for one smaller than the
	// smallest, S3 would take longer to begin than to send it.
	maxChunk = 4 << 20
	minChunk = 1 << 20

	// budgetChunks is how many chunks a budget has room for at least.
	budgetChunks = 16
)

// A prefetcher fetches chunks of an object at the same time, each by a request of its own, and gives them out in order. What
// comes before its turn waits in a revocable reservation: when the budget revokes it, the prefetcher ends.
//
// Its methods are for one goroutine, but for revoke.
type prefetcher struct {
	ctx         context.Context
	cancel      context.CancelFunc
	bucket      *s3api.Bucket
	version     s3api.Version
	memory      *membudget.Budget
	reservation *membudget.Revocable
	start       int64 // of the first chunk
	next        int64 // of the chunk that is asked for next
	size        int64 // of a chunk
	fetchers    sync.WaitGroup

	news chan struct{} // holds one when there is something new in the first chunk

	mu     sync.Mutex
	chunks []*chunk
	ended  bool
}

// A chunk is a range of an object on its way.
type chunk struct {
	blocks []block // that have come and were not given out yet
	done   bool    // no more will come
	err    error   // why not all have
}

// A block is bytes in memory of the budget.
type block struct {
	memory *membudget.Block
	length int
}

func (b block) bytes() []byte { return b.memory[:b.length] }

// newPrefetcher returns a prefetcher of chunks of a size, which has asked for none yet.
func newPrefetcher(r *Reader, start, size int64) *prefetcher {
	p := &prefetcher{
		bucket: r.bucket, version: r.version, memory: r.memory, start: start, next: start, size: size,
		news: make(chan struct{}, 1),
	}
	p.ctx, p.cancel = context.WithCancel(r.ctx)
	p.reservation = r.memory.Reserve(p.revoke)
	return p
}

// open asks for the next chunk, or returns false where there is no memory.
func (p *prefetcher) open() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	from, to := p.next, min(p.next+p.size, p.version.Size)
	blocks := (to - from + membudget.BlockSize - 1) / membudget.BlockSize
	if p.ended || !p.reservation.TryTake(blocks*membudget.BlockSize) {
		return false
	}
	c := &chunk{}
	p.chunks = append(p.chunks, c)
	p.next = to
	p.fetchers.Go(func() { p.fetch(c, from, to, blocks) })
	return true
}

// count is how many chunks are on their way or wait.
func (p *prefetcher) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.chunks)
}

// fetch brings the bytes [from, to) of the object, for which so many blocks are reserved.
func (p *prefetcher) fetch(c *chunk, from, to, blocks int64) {
	r := NewRange(p.ctx, p.bucket, p.version, from, to)
	defer r.Close()
	for ; blocks > 0; blocks-- {
		b := block{memory: p.memory.Block()}
		err := panics.Catch(func() (err error) {
			b.length, err = io.ReadFull(r, b.memory[:min(membudget.BlockSize, to-r.offset)])
			return err
		})
		if !p.put(c, b, err, blocks == 1) {
			p.memory.Recycle(b.memory)
			break
		}
	}
	if blocks > 0 {
		p.reservation.Return(blocks * membudget.BlockSize)
	}
}

// put adds a block to a chunk, or returns false after an error and when the prefetcher has ended.
func (p *prefetcher) put(c *chunk, b block, err error, last bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	c.done, c.err = last || err != nil, err
	if err == nil {
		c.blocks = append(c.blocks, b)
	}
	if p.chunks[0] == c {
		select {
		case p.news <- struct{}{}:
		default:
		}
	}
	return err == nil
}

// errNoChunk says that the prefetcher has nothing more to give: it has ended, or no chunk is on its way.
var errNoChunk = errors.New("no chunk")

// take waits for the bytes that follow those taken before. The memory is the taker's, and no longer reserved.
func (p *prefetcher) take() (block, error) {
	for {
		b, err := p.tryTake()
		if b.memory != nil {
			p.reservation.Return(membudget.BlockSize)
		}
		if b.memory != nil || err != nil {
			return b, err
		}
		select {
		case <-p.news:
		case <-p.ctx.Done():
			return block{}, errNoChunk
		}
	}
}

// tryTake is take, but where it would wait it returns no memory.
func (p *prefetcher) tryTake() (block, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.chunks) > 0 && p.chunks[0].done && p.chunks[0].err == nil && len(p.chunks[0].blocks) == 0 {
		p.chunks = slices.Delete(p.chunks, 0, 1)
	}
	if len(p.chunks) == 0 {
		return block{}, errNoChunk
	}
	first := p.chunks[0]
	if len(first.blocks) == 0 {
		return block{}, first.err
	}
	b := first.blocks[0]
	first.blocks = first.blocks[1:]
	return b, nil
}

// revoke ends the prefetcher and returns its memory. It drops what S3 still sends.
func (p *prefetcher) revoke() {
	p.mu.Lock()
	p.ended = true
	var blocks int64
	for _, c := range p.chunks {
		for _, b := range c.blocks {
			p.memory.Recycle(b.memory)
			blocks++
		}
	}
	p.chunks = nil
	p.mu.Unlock()
	p.cancel()
	if blocks > 0 {
		p.reservation.Return(blocks * membudget.BlockSize)
	}
}

// close ends the prefetcher, and waits until its requests have ended.
func (p *prefetcher) close() {
	p.revoke()
	p.fetchers.Wait()
	p.reservation.Close()
}
