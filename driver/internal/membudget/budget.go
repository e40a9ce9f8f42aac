// Package membudget bounds the memory of transfers and listings by one configured number of bytes.
//
// Uploads collect each part in a [Buffer], which waits for memory. What can be fetched from S3 again, such as the chunks that a download
// prefetches, lies in a [Revocable] reservation: the budget revokes it when a buffer waits. Small memory for which no transfer can wait comes out of a
// [Share], in addition to the budget.
package membudget

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

const (
	// BlockSize is the size of a block in bytes: as little as makes a thousand uploads begin within 64 MiB, and as much as a read
	// from a connection may bring.
	BlockSize = 64 << 10

	// MinLimit is the smallest limit in bytes with which uploads work: S3's smallest part.
	MinLimit = 5 << 20
)

// A Block is the unit of memory.
type Block = [BlockSize]byte

// A Budget bounds the memory in which uploads collect their parts. All file systems of a process share one.
//
// A part takes memory as its bytes come and doubles what it has. So a small file takes little, and an idle upload little more
// than came. Where no memory is left parts wait, first come, first served. Parts that hold some and wait for more could wait for
// each other. So the budget gives memory only if an order remains in which all parts can become full, one after another. This is Dijkstra's
// banker's algorithm: the size of a part is its maximum demand.
type Budget struct {
	limit int64
	arena *arena

	mu        sync.Mutex
	free      int64
	buffers   map[*Buffer]struct{} // those that hold memory
	waiting   []*waiter            // in the order they came
	revocable map[*Revocable]struct{}

	Listings     Share     // the pages of listings that are read
	Metadata     Share     // what sessions remember of files
	transfers    Share     // the larger transfer buffers
	transferPool sync.Pool // of *[transferSize]byte
}

// A waiter is a buffer that waits for more memory.
type waiter struct {
	buffer *Buffer
	bytes  int64
	ready  chan struct{} // closed when the buffer has them
}

// New returns a budget of so many bytes, rounded down to whole blocks. Below [MinLimit] no part fits.
func New(bytes int64) *Budget {
	limit := bytes / BlockSize * BlockSize
	return &Budget{
		limit:        limit,
		free:         limit,
		buffers:      map[*Buffer]struct{}{},
		arena:        newArena(),
		revocable:    map[*Revocable]struct{}{},
		Listings:     Share{limit: limit / listingShare},
		Metadata:     Share{limit: limit / metadataShare},
		transfers:    Share{limit: limit / transferShare},
		transferPool: sync.Pool{New: func() any { return new([transferSize]byte) }},
	}
}

// Limit returns how many bytes the budget has. No buffer is larger.
func (b *Budget) Limit() int64 { return b.limit }

// Used returns how many bytes buffers and reservations hold.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit - b.free
}

// Reservations is how many reservations are open.
func (b *Budget) Reservations() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.revocable)
}

// Block returns a block with arbitrary bytes. Its owner accounts for it by a buffer or a reservation.
func (b *Budget) Block() *Block { return b.arena.get() }

// Recycle takes a block back.
func (b *Budget) Recycle(block *Block) { b.arena.put(block) }

// Buffer returns a buffer, empty and without memory, for at most so many bytes.
func (b *Budget) Buffer(size int64) *Buffer {
	size = min(size, b.limit)
	return &Buffer{budget: b, size: size, maxBytes: (size + BlockSize - 1) / BlockSize * BlockSize}
}

// acquire waits until the buffer holds so many bytes more.
func (b *Budget) acquire(ctx context.Context, buffer *Buffer, bytes int64) error {
	r := &waiter{buffer: buffer, bytes: bytes, ready: make(chan struct{})}
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
		b.undo(r) // it was granted in the meantime
	}
	b.serve() // who stood back for it
	return context.Cause(ctx)
}

// undo takes back the memory of a waiter that was granted.
func (b *Budget) undo(r *waiter) {
	b.free += r.bytes
	if r.buffer.held -= r.bytes; r.buffer.held == 0 {
		delete(b.buffers, r.buffer)
	}
}

// seal says that a buffer needs no more memory. It keeps its memory until release.
func (b *Budget) seal(buffer *Buffer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	buffer.maxBytes = buffer.held
	b.serve()
}

// release takes back all that a buffer holds.
func (b *Budget) release(buffer *Buffer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += buffer.held
	buffer.held, buffer.maxBytes = 0, 0
	delete(b.buffers, buffer)
	b.serve()
}

// serve gives memory to the waiting buffers, in order, where that is safe. A buffer without memory does not overtake. Otherwise small files, one
// after another, could starve a large part.
func (b *Budget) serve() {
	overtaking := false
	var order []*Buffer // of b.buffers as they are now, when it is known
	b.waiting = slices.DeleteFunc(b.waiting, func(r *waiter) bool {
		switch {
		case r.bytes > b.free, overtaking && r.buffer.held == 0:
			overtaking = true
			return false
		case r.buffer.missing() <= b.free: // it can fill at once, and then all is as it was, which was safe
		default:
			if order == nil {
				order = slices.SortedFunc(maps.Keys(b.buffers), func(a, b *Buffer) int { return cmp.Compare(a.missing(), b.missing()) })
			}
			if !fills(r, order, b.free-r.bytes) {
				overtaking = true
				return false
			}
		}
		b.free -= r.bytes
		r.buffer.held += r.bytes
		b.buffers[r.buffer] = struct{}{}
		order = nil
		close(r.ready)
		return true
	})
	b.revokeForFirst()
}

// fills reports whether the buffer of a request can become full after the grant. It may use the free bytes, and those that other buffers
// return when they are full. The buffers that miss least come first.
func fills(r *waiter, others []*Buffer, free int64) bool {
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

// A Buffer collects the bytes of one part. Its memory comes from a budget, as much as its bytes need, and returns to it by
// Release. It is an io.ReaderAt over the bytes collected.
type Buffer struct {
	budget *Budget
	size   int64  // bytes it is for
	length int64  // bytes it has
	sum    uint32 // their CRC-32C
	blocks []*Block

	// Guarded by the budget's mutex:
	held     int64 // bytes of memory
	maxBytes int64 // bytes of memory it may ask for, in all
}

func (b *Buffer) missing() int64 { return b.maxBytes - b.held }

// Full tells whether the buffer has Size bytes.
func (b *Buffer) Full() bool { return b.length == b.size }

// Len is how many bytes the buffer has.
func (b *Buffer) Len() int64 { return b.length }

// Size returns how many bytes the buffer can have.
func (b *Buffer) Size() int64 { return b.size }

// Room returns memory for the bytes that come next. It is empty only if the buffer is full.
func (b *Buffer) Room(ctx context.Context) ([]byte, error) {
	if b.length == int64(len(b.blocks))*BlockSize && !b.Full() {
		if err := b.grow(ctx); err != nil {
			return nil, err
		}
	}
	if b.Full() {
		return nil, nil
	}
	block := b.blocks[b.length/BlockSize][b.length%BlockSize:]
	return block[:min(int64(len(block)), b.size-b.length)], nil
}

func (b *Buffer) grow(ctx context.Context) error {
	if int64(len(b.blocks))*BlockSize == b.held {
		if err := b.budget.acquire(ctx, b, min(max(b.held, BlockSize), b.missing())); err != nil {
			return err
		}
	}
	b.blocks = append(b.blocks, b.budget.Block())
	return nil
}

// Filled says how many bytes the caller has put into the room. It adds them to the checksum now, while they are in the processor's cache.
func (b *Buffer) Filled(n int) {
	if n > 0 {
		from := b.length % BlockSize
		b.sum = crc32.Update(b.sum, crc32.MakeTable(crc32.Castagnoli), b.blocks[b.length/BlockSize][from:from+int64(n)])
		b.length += int64(n)
	}
}

// FillFrom reads from r until the buffer is full or r ends, which is an error.
func (b *Buffer) FillFrom(ctx context.Context, r io.Reader) error {
	for !b.Full() {
		room, err := b.Room(ctx)
		if err != nil {
			return err
		}
		n, err := r.Read(room)
		b.Filled(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// Checksum is the sum as S3 writes it.
func (b *Buffer) Checksum() *string {
	text := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, b.sum))
	return &text
}

// Body is what a request sends; it can be sent again.
func (b *Buffer) Body() *Body { return &Body{reader: io.NewSectionReader(b, 0, b.length)} }

// A Body reads a buffer.
type Body struct {
	reader *io.SectionReader
	read   atomic.Int64
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	n, err := b.reader.Read(p)
	b.read.Add(int64(n))
	return n, err
}

// Seek implements io.Seeker.
func (b *Body) Seek(offset int64, whence int) (int64, error) {
	at, err := b.reader.Seek(offset, whence)
	if err == nil {
		b.read.Store(at)
	}
	return at, err
}

// Sent tells whether all of the buffer has been read.
func (b *Body) Sent() bool { return b.read.Load() == b.reader.Size() }

// ReadAt implements io.ReaderAt.
func (b *Buffer) ReadAt(p []byte, offset int64) (int, error) {
	n := 0
	for n < len(p) && offset < b.length {
		block := b.blocks[offset/BlockSize][offset%BlockSize:]
		m := copy(p[n:], block[:min(int64(len(block)), b.length-offset)])
		n += m
		offset += int64(m)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Seal says that no more bytes will come.
func (b *Buffer) Seal() { b.budget.seal(b) }

// Release returns the memory. The buffer must not be used after it.
func (b *Buffer) Release() {
	for _, block := range b.blocks {
		b.budget.Recycle(block)
	}
	b.blocks, b.length, b.sum = nil, 0, 0
	b.budget.release(b)
}
