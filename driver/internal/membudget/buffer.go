package membudget

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"io"
	"sync/atomic"
)

// A Buffer collects the bytes of one part. It gets memory from the budget as needed, and returns it with Release. It is
// an io.ReaderAt for the collected bytes. A nil Buffer is empty and uses no memory.
type Buffer struct {
	budget *Budget
	size   int64  // capacity in bytes
	length int64  // bytes collected so far
	sum    uint32 // CRC-32C of these bytes
	blocks []*Block
	first  bool // the first block belongs to the share for first blocks

	// Guarded by the mutex of the budget:
	held     int64 // bytes of memory
	maxBytes int64 // maximum bytes of memory
}

func (b *Buffer) missing() int64 { return b.maxBytes - b.held }

// Full reports whether the buffer is full. It returns false for a nil Buffer.
func (b *Buffer) Full() bool { return b != nil && b.length == b.size }

// Len returns the number of collected bytes.
func (b *Buffer) Len() int64 {
	if b == nil {
		return 0
	}
	return b.length
}

// Memory returns the number of bytes of memory that the buffer uses.
func (b *Buffer) Memory() int64 {
	if b == nil {
		return 0
	}
	return int64(len(b.blocks)) * BlockSize
}

// Room returns memory for the next bytes. It waits until memory is free. The slice is empty only if the buffer is full.
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

// grow adds a block. The first block comes from the share for first blocks, if the share has one left, so that a file
// of one block does not wait for large ones. When the buffer grows further, all of its memory comes from the pools.
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

// Filled must be called after the caller has put n bytes into the slice returned by Room. It updates the checksum
// immediately, while the bytes are in the processor cache.
func (b *Buffer) Filled(n int) {
	if n > 0 {
		from := b.length % BlockSize
		b.sum = crc32.Update(b.sum, crc32.MakeTable(crc32.Castagnoli), b.blocks[b.length/BlockSize][from:from+int64(n)])
		b.length += int64(n)
	}
}

// FillFrom reads from r until the buffer is full. If r ends before, it returns the error of r, such as io.EOF.
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

// Checksum returns the CRC-32C of the bytes in the format of S3, or nil for a nil Buffer.
func (b *Buffer) Checksum() *string {
	if b == nil {
		return nil
	}
	text := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, b.sum))
	return &text
}

// Body returns a request body with the bytes of the buffer. A request that is repeated can seek to its beginning.
func (b *Buffer) Body() *Body { return &Body{reader: io.NewSectionReader(b, 0, b.length)} }

// A Body is an io.ReadSeeker for the bytes of a buffer.
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

// Sent reports whether all bytes have been read.
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

// Seal must be called after the last byte. The budget can then use the memory that the buffer would still have needed.
func (b *Buffer) Seal() {
	if b != nil {
		b.budget.seal(b)
	}
}

// Release returns the memory. The buffer must not be used afterwards.
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
