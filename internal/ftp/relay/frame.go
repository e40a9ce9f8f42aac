package relay

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// A frame is a header of four bytes, the kind and the length, and so many bytes of data. These are the kinds.
const (
	frameData      = 1 + iota
	frameEnd       // no more data: their sender has closed its side.
	frameTaken     // from the owner: a session takes the connection.
	frameDelivered // from the relay: the client's side has everything up to the end.
	// from the relay: the client's side has something more. From the owner: it lives, and says so again and again.
	frameProgress
	frameReceived // from the owner: it has the whole upload, so the client may ignore the data that follow.
)

const (
	frameHeader = 4
	// maxFrame is the most data of a frame in bytes.
	maxFrame = 256 << 10
)

// errCut reports a relay that has ended without the frame that ends the data. It is no EOF, so that nothing takes it
// for the end of a file.
var errCut = errors.New("the relay between replicas was cut")

var errFrame = errors.New("no frame of a relay")

// putHeader writes the header of a frame.
func putHeader(b []byte, kind byte, length int) {
	binary.BigEndian.PutUint32(b, uint32(kind)<<24|uint32(length))
}

// parseHeader reads the header of a frame.
func parseHeader(b []byte) (kind byte, length int, err error) {
	h := binary.BigEndian.Uint32(b)
	kind, length = byte(h>>24), int(h&0xffffff)
	if kind < frameData || kind > frameReceived || length > maxFrame || (length > 0) != (kind == frameData) {
		return 0, 0, errFrame
	}
	return kind, length, nil
}

// cut replaces the end of the bytes, which is not the end of the data.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

// A frameWriter writes frames for several goroutines. After an error all that follow fail, because a frame may be
// incomplete.
type frameWriter struct {
	conn  net.Conn
	mu    sync.Mutex
	first byte // the kind of the frame that goes before all others, 0 for none
	last  byte // the kind of the frame that goes after all others, 0 for none
	err   error
}

// begin writes the frame that goes before all others.
func (w *frameWriter) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writeFirst()
}

// writeFirst is begin. The mutex is locked.
func (w *frameWriter) writeFirst() error {
	if w.first == 0 {
		return nil
	}
	kind := w.first
	w.first = 0
	_, err := w.writeFrame(kind, nil)
	return err
}

// write writes data frames, or one frame of another kind. It returns how many bytes of the data were written.
func (w *frameWriter) write(kind byte, data []byte) (written int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.writeFirst(); err != nil {
		return 0, err
	}
	for first := true; first || len(data) > 0; first = false {
		n, err := w.writeFrame(kind, data[:min(len(data), maxFrame)])
		written += n
		if err != nil {
			return written, err
		}
		data = data[n:]
	}
	return written, nil
}

// progress writes a frame that says that something has moved, unless another one is being written. The zero deadline
// is none. The error is one after which no frame is written any more.
func (w *frameWriter) progress(deadline time.Time) error {
	if !w.mu.TryLock() {
		return nil
	}
	defer w.mu.Unlock()
	_ = w.conn.SetWriteDeadline(deadline)
	_, err := w.writeFrame(frameProgress, nil)
	return err
}

// writeFrame writes one frame. The mutex is locked.
func (w *frameWriter) writeFrame(kind byte, data []byte) (written int, err error) {
	if w.err != nil {
		return 0, w.err
	}
	header := make([]byte, frameHeader)
	putHeader(header, kind, len(data))
	frame := net.Buffers{header, data}
	sent, err := frame.WriteTo(w.conn)
	if w.err = err; err == nil && kind == w.last {
		w.err = net.ErrClosed
	}
	return max(0, int(sent)-frameHeader), err
}
