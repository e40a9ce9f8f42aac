package file

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/base/panics"
)

const (
	// maxChunk and minChunk are the sizes of a chunk in bytes. Many of the largest take little memory; for one
	// smaller than the smallest, S3 would take longer to begin than to send it.
	maxChunk = 4 << 20
	minChunk = 1 << 20

	// budgetChunks is how many chunks a budget has room for at least.
	budgetChunks = 16
)

// A prefetcher fetches chunks of an object at the same time, each by a request of its own, and gives them out in
// order. What comes before its turn waits in a revocable reservation: when the budget revokes it, the prefetcher
// ends.
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

	mu     sync.Mutex
	chunks []*chunk // on their way, or not given out yet
	ended  bool     // the memory is no longer reserved
}

// A chunk is a range of an object on its way.
type chunk struct {
	blocks chan block // has room for all; closed when no more will come
	err    error      // why not all have come; set before that
}

// A block is bytes in memory of the budget.
type block struct {
	memory *membudget.Block
	length int
}

func (b block) bytes() []byte { return b.memory[:b.length] }

// newPrefetcher returns a prefetcher of chunks of a size, which has asked for none yet.
func newPrefetcher(r *Reader, start, size int64) *prefetcher {
	p := &prefetcher{bucket: r.bucket, version: r.version, memory: r.memory, start: start, next: start, size: size}
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
	c := &chunk{blocks: make(chan block, blocks)}
	p.chunks = append(p.chunks, c)
	p.next = to
	p.fetchers.Go(func() { p.fetch(c, from, to) })
	return true
}

// count is how many chunks are on their way or wait.
func (p *prefetcher) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.chunks)
}

// fetch brings the bytes [from, to) of the object. It returns the reserved memory of what does not come.
func (p *prefetcher) fetch(c *chunk, from, to int64) {
	defer close(c.blocks)
	r := NewRange(p.ctx, p.bucket, p.version, from, to)
	defer r.Close()
	for left := cap(c.blocks); left > 0; left-- {
		b := block{memory: p.memory.Block()}
		b.length, c.err = panics.Result(func() (int, error) {
			return io.ReadFull(r, b.memory[:min(membudget.BlockSize, to-r.offset)])
		})
		if c.err != nil {
			p.memory.Recycle(b.memory)
			p.reservation.Return(int64(left) * membudget.BlockSize)
			return
		}
		c.blocks <- b
	}
}

// errNoChunk says that the prefetcher has nothing more to give: it has ended, or no chunk is on its way.
var errNoChunk = errors.New("no chunk")

// take waits for the bytes that follow those taken before. The memory is the taker's, and no longer reserved.
func (p *prefetcher) take() (block, error) {
	for {
		c := p.first()
		if c == nil {
			return block{}, errNoChunk
		}
		b, more := <-c.blocks
		switch {
		case more && p.first() == c:
			p.reservation.Return(membudget.BlockSize)
			return b, nil
		case more: // revoke may have taken some before it
			p.discard(b)
			return block{}, errNoChunk
		case c.err != nil:
			return block{}, c.err
		}
		p.mu.Lock()
		p.chunks = p.chunks[min(1, len(p.chunks)):]
		p.mu.Unlock()
	}
}

// first is the chunk whose turn it is, nil where there is none.
func (p *prefetcher) first() *chunk {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.chunks) == 0 {
		return nil
	}
	return p.chunks[0]
}

// discard returns a block and its reserved memory.
func (p *prefetcher) discard(b block) {
	p.memory.Recycle(b.memory)
	p.reservation.Return(membudget.BlockSize)
}

// revoke ends the prefetcher and returns its memory. It drops what S3 still sends.
func (p *prefetcher) revoke() {
	p.mu.Lock()
	chunks := p.chunks
	p.chunks, p.ended = nil, true
	p.mu.Unlock()
	p.cancel()
	for _, c := range chunks {
		for b := range c.blocks {
			p.discard(b)
		}
	}
}

// close ends the prefetcher, and waits until its requests have ended.
func (p *prefetcher) close() {
	p.revoke()
	p.fetchers.Wait()
	p.reservation.Close()
}
