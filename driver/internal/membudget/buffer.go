package membudget

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"io"
	"sync/atomic"
)

// A Buffer collects the bytes of one part. Its memory comes from a budget, as much as its bytes need, and returns to
// it by Release. It is an io.ReaderAt over the bytes collected. A nil Buffer has no bytes and takes none.
type Buffer struct {
	budget *Budget
	size   int64  // bytes it is for
	length int64  // bytes it has
	sum    uint32 // their CRC-32C
	blocks []*Block
	first  bool // the first block is of the share for first blocks

	// Guarded by the budget's mutex:
	held     int64 // bytes of memory
	maxBytes int64 // bytes of memory it may ask for, in all
}

func (b *Buffer) missing() int64 { return b.maxBytes - b.held }

// Full reports whether the buffer has all bytes that it is for.
func (b *Buffer) Full() bool { return b != nil && b.length == b.size }

// Len returns how many bytes the buffer has.
func (b *Buffer) Len() int64 {
	if b == nil {
		return 0
	}
	return b.length
}

// Memory returns how many bytes of memory the buffer takes.
func (b *Buffer) Memory() int64 {
	if b == nil {
		return 0
	}
	return int64(len(b.blocks)) * BlockSize
}

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

// grow gets the next block. The first one comes from its own share, if that has one left. So a file of one block
// waits for no large one. When the buffer grows beyond it, all of its memory is that of the pools.
func (b *Buffer) grow(ctx context.Context) error {
	have := int64(len(b.blocks)) * BlockSize
	switch {
	case have == 0 && len(b.budget.pools) > 1 && b.budget.first.TryTake(BlockSize):
		b.first = true
	case have >= b.held:
		if err := b.budget.acquire(ctx, b, min(max(2*have, BlockSize)-b.held, b.missing())); err != nil {
			return err
		}
		b.returnFirst()
	}
	b.blocks = append(b.blocks, b.budget.Block())
	return nil
}

func (b *Buffer) returnFirst() {
	if b.first {
		b.first = false
		b.budget.first.Return(BlockSize)
	}
}

// Filled says how many bytes the caller has put into the room. It adds them to the checksum now, while they are in
// the processor's cache.
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

// Checksum returns the checksum of the bytes as S3 writes it, nil for a nil Buffer.
func (b *Buffer) Checksum() *string {
	if b == nil {
		return nil
	}
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
	for n < len(p) && offset < b.Len() {
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
func (b *Buffer) Seal() {
	if b != nil {
		b.budget.seal(b)
	}
}

// Release returns the memory. The buffer must not be used after it.
func (b *Buffer) Release() {
	if b == nil {
		return
	}
	for _, block := range b.blocks {
		b.budget.Recycle(block)
	}
	b.blocks, b.length, b.sum = nil, 0, 0
	b.returnFirst()
	b.budget.release(b)
}
