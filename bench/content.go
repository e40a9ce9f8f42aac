package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
)

const (
	// period is the number of bytes after which the content repeats. It is not a multiple of any part or
	// buffer size, so that the check notices swapped parts.
	period = 16<<20 - 3
	// stretch is the number of contiguous bytes available at every offset.
	stretch = rawThreshold
)

// content holds the bytes of all files. They are random, so that they cannot be compressed.
type content []byte

func newContent() content {
	c := make(content, period+stretch)
	_, _ = rand.NewChaCha8([32]byte{}).Read(c[:period]) // it never fails
	copy(c[period:], c[:stretch])
	return c
}

// at returns up to length contiguous bytes starting at offset.
func (c content) at(offset, length int64) []byte {
	from := offset % period
	return c[from : from+min(length, stretch)]
}

// The sizes of single writes to and reads from a connection.
const (
	writeSize = 256 << 10
	readSize  = 256 << 10
)

// send writes a file of this size.
func (c content) send(w io.Writer, size int64) error {
	for offset := int64(0); offset < size; {
		n, err := w.Write(c.at(offset, min(writeSize, size-offset)))
		if err != nil {
			return err
		}
		offset += int64(n)
	}
	return nil
}

// check reads a file, or the part of a file that starts at offset, and compares it with the content.
func (c content) check(r io.Reader, offset, length int64) error {
	buffer := make([]byte, min(length, readSize)+1) // one more, to detect excess bytes
	for end := offset + length; ; {
		n, err := r.Read(buffer)
		for rest := buffer[:n]; len(rest) > 0; {
			want := c.at(offset, int64(len(rest)))
			if !bytes.Equal(rest[:len(want)], want) {
				return fmt.Errorf("wrong bytes after offset %d", offset)
			}
			rest, offset = rest[len(want):], offset+int64(len(want))
		}
		if errors.Is(err, io.EOF) && offset != end {
			return fmt.Errorf("%d bytes, not %d", length-(end-offset), length)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
