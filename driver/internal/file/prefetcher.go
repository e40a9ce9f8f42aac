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
	// maxChunk and minChunk limit the size of a chunk in bytes. Larger chunks would take too much memory if there are
	// many. For smaller ones, S3 would take longer to begin a response than to send it.
	maxChunk = 4 << 20
	minChunk = 1 << 20

	// budgetChunks is the minimum number of chunks that must fit into a memory budget.
	budgetChunks = 16
)

// A prefetcher requests several chunks of an object at the same time and returns them in order. Chunks that arrive
// early are held in a revocable reservation: if the budget revokes it, the prefetcher ends.
//
// Only one goroutine may call its methods, except for revoke.
type prefetcher struct {
	ctx         context.Context
	cancel      context.CancelFunc
	bucket      *s3api.Bucket
	version     s3api.Version
	memory      *membudget.Budget
	reservation *membudget.Revocable
	start       int64 // offset of the first chunk
	next        int64 // offset of the next chunk to request
	size        int64 // size of a chunk
	fetchers    sync.WaitGroup

	mu     sync.Mutex
	chunks []*chunk // requested, and not completely taken yet
	ended  bool     // the memory has been released
}

// A chunk is a range of an object that was requested.
type chunk struct {
	blocks chan block // has room for all blocks; closed after the last one
	err    error      // why blocks are missing; set before blocks is closed
}

// A block is a buffer from the memory budget with some bytes in it.
type block struct {
	memory *membudget.Block
	length int
}

func (b block) bytes() []byte { return b.memory[:b.length] }

// newPrefetcher returns a prefetcher with this chunk size. It sends no request yet.
func newPrefetcher(r *Reader, start, size int64) *prefetcher {
	p := &prefetcher{bucket: r.bucket, version: r.version, memory: r.memory, start: start, next: start, size: size}
	p.ctx, p.cancel = context.WithCancel(r.ctx)
	p.reservation = r.memory.Reserve(p.revoke)
	return p
}

// open requests the next chunk. It returns false if the budget is exhausted.
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

// count returns the number of chunks that are in flight or have unread blocks.
func (p *prefetcher) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.chunks)
}

// fetch reads the bytes [from, to) of the object into blocks. If it fails, it returns the reserved memory for the
// missing blocks.
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

// errNoChunk reports that the prefetcher has nothing to return, because it has ended or no chunk was requested.
var errNoChunk = errors.New("no chunk")

// take waits for the next block. Its memory then belongs to the caller and not to the reservation.
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
		case more: // revoke may have discarded earlier blocks
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

// first returns the chunk to read next, or nil.
func (p *prefetcher) first() *chunk {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.chunks) == 0 {
		return nil
	}
	return p.chunks[0]
}

// discard releases a block and its reserved memory.
func (p *prefetcher) discard(b block) {
	p.memory.Recycle(b.memory)
	p.reservation.Return(membudget.BlockSize)
}

// revoke ends the prefetcher and releases its memory. It discards data that S3 is still sending.
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

// close ends the prefetcher and waits for its requests to end.
func (p *prefetcher) close() {
	p.revoke()
	p.fetchers.Wait()
	p.reservation.Close()
}
