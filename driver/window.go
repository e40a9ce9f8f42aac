package driver

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

const (
	// maxPiece and minPiece are the sizes of a piece in bytes. Many of the largest take little memory; for one smaller than the
	// smallest, S3 would take longer to begin than to send it.
	maxPiece = 4 << 20
	minPiece = 1 << 20

	// leastPieces is how many pieces a budget has room for at least.
	leastPieces = 16
)

// A window is the pieces of an object that come at the same time, each by a request of its own, and are given out in order. What
// comes before its turn waits in borrowed memory: when that is called back, the window ends, and who reads goes on without one.
//
// Its methods are for one goroutine, but for recall.
type window struct {
	ctx      context.Context
	cancel   context.CancelFunc
	bucket   *s3api.Bucket
	memory   *Budget
	version  s3api.Version
	start    int64 // of the first piece
	next     int64 // of the piece that is asked for next
	size     int64 // of a piece
	arrived  func(n int)
	borrower *membudget.Revocable
	fetchers sync.WaitGroup

	news chan struct{} // holds one when there is something new in the first piece

	mu     sync.Mutex
	pieces []*piece
	ended  bool
}

// A piece is a range of an object on its way.
type piece struct {
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

// newWindow makes a window of pieces of a size, without a piece yet.
func newWindow(ctx context.Context, b *s3api.Bucket, memory *Budget, v s3api.Version, start, size int64, arrived func(int)) *window {
	w := &window{
		bucket: b, memory: memory, version: v, start: start, next: start, size: size, arrived: arrived,
		news: make(chan struct{}, 1),
	}
	w.ctx, w.cancel = context.WithCancel(ctx)
	w.borrower = memory.Reserve(w.recall)
	return w
}

// open asks for pieces until so many are on their way or wait, as far as there is memory.
func (w *window) open(pieces int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.ended && len(w.pieces) < pieces && w.next < w.version.Size {
		end := min(w.next+w.size, w.version.Size)
		blocks := (end - w.next + membudget.BlockSize - 1) / membudget.BlockSize
		if !w.borrower.TryTake(blocks * membudget.BlockSize) {
			return
		}
		p := &piece{}
		w.pieces = append(w.pieces, p)
		from := w.next
		w.fetchers.Go(func() { w.fetch(p, from, end, blocks) })
		w.next = end
	}
}

// pieceCount is how many pieces are on their way or wait.
func (w *window) pieceCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pieces)
}

// fetch brings the bytes [from, to) of the object, for which so many blocks were borrowed.
func (w *window) fetch(p *piece, from, to, blocks int64) {
	s := span{ctx: w.ctx, bucket: w.bucket, version: w.version, offset: from, end: to, arrived: w.arrived}
	defer s.close()
	for ; blocks > 0; blocks-- {
		b := block{memory: w.memory.Block()}
		var err error
		b.length, err = io.ReadFull(&s, b.memory[:min(membudget.BlockSize, to-s.offset)])
		if !w.put(p, b, err, blocks == 1) {
			w.memory.Recycle(b.memory)
			break
		}
	}
	if blocks > 0 {
		w.borrower.Return(blocks * membudget.BlockSize)
	}
}

// put adds a block to a piece, or returns false when nobody wants it.
func (w *window) put(p *piece, b block, err error, last bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	p.done, p.err = last || err != nil, err
	if err == nil {
		p.blocks = append(p.blocks, b)
	}
	if w.pieces[0] == p {
		select {
		case w.news <- struct{}{}:
		default:
		}
	}
	return err == nil
}

// errNoWindow says that the window has nothing more to give: it was ended, or no piece is on its way.
var errNoWindow = errors.New("no window")

// take waits for the bytes that follow those taken before. The memory is the taker's: it is no longer borrowed.
func (w *window) take() (block, error) {
	for {
		b, err := w.tryTake()
		if b.memory != nil {
			w.borrower.Return(membudget.BlockSize)
		}
		if b.memory != nil || err != nil {
			return b, err
		}
		select {
		case <-w.news:
		case <-w.ctx.Done():
			return block{}, errNoWindow
		}
	}
}

// tryTake is take, but where it would wait it returns no memory.
func (w *window) tryTake() (block, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.pieces) > 0 && w.pieces[0].done && w.pieces[0].err == nil && len(w.pieces[0].blocks) == 0 {
		w.pieces = slices.Delete(w.pieces, 0, 1)
	}
	if len(w.pieces) == 0 {
		return block{}, errNoWindow
	}
	first := w.pieces[0]
	if len(first.blocks) == 0 {
		return block{}, first.err
	}
	b := first.blocks[0]
	first.blocks = first.blocks[1:]
	return b, nil
}

// recall ends the window and gives its memory back. What S3 still sends is dropped.
func (w *window) recall() {
	w.mu.Lock()
	w.ended = true
	var blocks int64
	for _, p := range w.pieces {
		for _, b := range p.blocks {
			w.memory.Recycle(b.memory)
			blocks++
		}
	}
	w.pieces = nil
	w.mu.Unlock()
	w.cancel()
	if blocks > 0 {
		w.borrower.Return(blocks * membudget.BlockSize)
	}
}

// close ends the window, and waits until its requests have ended.
func (w *window) close() {
	w.recall()
	w.fetchers.Wait()
	w.borrower.Close()
}
