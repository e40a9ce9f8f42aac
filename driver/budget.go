package driver

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// blockSize is what a buffer takes at a time: as little as makes a thousand uploads begin within 64 MiB, and as much as a read
// from a connection may bring.
const blockSize = 64 << 10

// A Budget bounds the memory in which uploads collect their parts. It is meant to be shared by all file systems of a process.
//
// A part takes memory as its bytes come, doubling what it has, so that a small file takes little and an idle upload little more
// than came. Where there is none left parts wait, first come, first served. Parts that hold some and wait for more could wait for
// each other; so memory is given only where an order remains in which all parts can fill, one after another. This is Dijkstra's
// banker's algorithm, the size of a part being its claim.
type Budget struct {
	limit  int64
	blocks *blocks

	mu      sync.Mutex
	free    int64
	parts   map[*buffer]struct{} // those that hold memory
	waiting []*request           // in the order they came

	borrowers map[*borrower]struct{}
	transits  int64 // that are large
	listings  int64 // that have large pages
	seen      int64 // files that sessions remember

	transitPool sync.Pool // of *[transitSize]byte
}

// A request is a buffer that waits to hold more bytes.
type request struct {
	buffer *buffer
	bytes  int64
	ready  chan struct{} // closed when the buffer has them
}

// NewBudget returns a budget of so many bytes, and of 5 MiB at least, S3's smallest part. No part is larger than the budget, and an
// object has 10,000 parts at most: 256 MiB are enough for objects of 1 TiB, 4 GiB for S3's largest, 5 TiB.
func NewBudget(bytes int64) *Budget {
	limit := max(bytes, minPartSize) / blockSize * blockSize
	return &Budget{
		limit:       limit,
		free:        limit,
		parts:       map[*buffer]struct{}{},
		blocks:      newBlocks(),
		borrowers:   map[*borrower]struct{}{},
		transitPool: sync.Pool{New: func() any { return new([transitSize]byte) }},
	}
}

// buffer returns a buffer, empty and without memory, for at most so many bytes.
func (b *Budget) buffer(size int64) *buffer {
	size = min(size, b.limit)
	return &buffer{budget: b, size: size, claim: (size + blockSize - 1) / blockSize * blockSize}
}

// acquire waits until the buffer holds so many bytes more.
func (b *Budget) acquire(ctx context.Context, buffer *buffer, bytes int64) error {
	r := &request{buffer: buffer, bytes: bytes, ready: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, r)
	b.serve()
	b.mu.Unlock()
	select {
	case <-r.ready:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, r); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	} else {
		b.takeBack(r) // it was granted meanwhile
	}
	b.serve() // who stood back for it
	return context.Cause(ctx)
}

// takeBack undoes a request that was granted.
func (b *Budget) takeBack(r *request) {
	b.free += r.bytes
	if r.buffer.held -= r.bytes; r.buffer.held == 0 {
		delete(b.parts, r.buffer)
	}
}

// settle ends what a buffer may ask for: it keeps what it holds until release.
func (b *Budget) settle(buffer *buffer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	buffer.claim = buffer.held
	b.serve()
}

// release takes back all that a buffer holds.
func (b *Budget) release(buffer *buffer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += buffer.held
	buffer.held, buffer.claim = 0, 0
	delete(b.parts, buffer)
	b.serve()
}

// serve gives memory to those who wait, in order, where that is safe. A part that holds none does not overtake: else small files,
// one after another, could keep a large part from ever filling.
func (b *Budget) serve() {
	overtaking := false
	var order []*buffer // of b.parts as they are now, when it is known
	b.waiting = slices.DeleteFunc(b.waiting, func(r *request) bool {
		switch {
		case r.bytes > b.free, overtaking && r.buffer.held == 0:
			overtaking = true
			return false
		case r.buffer.missing() <= b.free: // it can fill at once, and then all is as it was, which was safe
		default:
			if order == nil {
				order = slices.SortedFunc(maps.Keys(b.parts), func(a, b *buffer) int { return cmp.Compare(a.missing(), b.missing()) })
			}
			if !fills(r, order, b.free-r.bytes) {
				overtaking = true
				return false
			}
		}
		b.free -= r.bytes
		r.buffer.held += r.bytes
		b.parts[r.buffer] = struct{}{}
		order = nil
		close(r.ready)
		return true
	})
	b.recall()
}

// fills tells whether the buffer of a request can fill once it has what it asked for and free bytes are left: with these and
// what the others give back when they fill before it, those first that miss least.
func fills(r *request, others []*buffer, free int64) bool {
	missing := r.buffer.missing() - r.bytes
	for _, other := range others {
		if missing <= free || other.missing() > free {
			break
		}
		if other != r.buffer {
			free += other.held
		}
	}
	return missing <= free
}

// A buffer collects the bytes of one part. Its memory comes from a budget, as much as its bytes need, and returns to it by
// release. It is an io.ReaderAt over the bytes collected.
type buffer struct {
	budget *Budget
	size   int64  // bytes it is for
	length int64  // bytes it has
	sum    uint32 // their CRC-32C
	blocks []*[blockSize]byte

	// Guarded by the budget's mutex:
	held  int64 // bytes of memory
	claim int64 // bytes of memory it may ask for, in all
}

func (b *buffer) missing() int64 { return b.claim - b.held }
func (b *buffer) full() bool     { return b.length == b.size }

// room returns memory for the bytes that come next. It is empty only if the buffer is full.
func (b *buffer) room(ctx context.Context) ([]byte, error) {
	if b.length == int64(len(b.blocks))*blockSize && !b.full() {
		if err := b.grow(ctx); err != nil {
			return nil, err
		}
	}
	if b.full() {
		return nil, nil
	}
	block := b.blocks[b.length/blockSize][b.length%blockSize:]
	return block[:min(int64(len(block)), b.size-b.length)], nil
}

func (b *buffer) grow(ctx context.Context) error {
	if int64(len(b.blocks))*blockSize == b.held {
		if err := b.budget.acquire(ctx, b, min(max(b.held, blockSize), b.missing())); err != nil {
			return err
		}
	}
	b.blocks = append(b.blocks, b.budget.block())
	return nil
}

// filled says how many bytes were put into the room. They are summed up now, while they are in the processor's cache.
func (b *buffer) filled(n int) {
	if n > 0 {
		from := b.length % blockSize
		b.sum = crc32.Update(b.sum, crc32.MakeTable(crc32.Castagnoli), b.blocks[b.length/blockSize][from:from+int64(n)])
		b.length += int64(n)
	}
}

// checksum is the sum as S3 writes it.
func (b *buffer) checksum() *string {
	text := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, b.sum))
	return &text
}

// body is what a request sends; it can be sent again.
func (b *buffer) body() *body { return &body{reader: io.NewSectionReader(b, 0, b.length)} }

// A body reads a buffer, and knows whether all of it has been read.
type body struct {
	reader *io.SectionReader
	read   atomic.Int64
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.reader.Read(p)
	b.read.Add(int64(n))
	return n, err
}

// Seek implements io.Seeker.
func (b *body) Seek(offset int64, whence int) (int64, error) {
	at, err := b.reader.Seek(offset, whence)
	if err == nil {
		b.read.Store(at)
	}
	return at, err
}

func (b *body) sent() bool { return b.read.Load() == b.reader.Size() }

// ReadAt implements io.ReaderAt.
func (b *buffer) ReadAt(p []byte, offset int64) (int, error) {
	n := 0
	for n < len(p) && offset < b.length {
		block := b.blocks[offset/blockSize][offset%blockSize:]
		m := copy(p[n:], block[:min(int64(len(block)), b.length-offset)])
		n += m
		offset += int64(m)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// settle says that no more bytes will come.
func (b *buffer) settle() { b.budget.settle(b) }

// release gives the memory back; the buffer is of no use any more.
func (b *buffer) release() {
	for _, block := range b.blocks {
		b.budget.recycle(block)
	}
	b.blocks, b.length, b.sum = nil, 0, 0
	b.budget.release(b)
}
