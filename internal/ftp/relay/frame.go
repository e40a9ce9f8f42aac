package relay

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Kinds of frames. A frame has a header of four bytes, with the kind and the length, and that many bytes of data.
const (
	frameData      = 1 + iota
	frameEnd       // end of the data: the sender has closed its side
	frameTaken     // from the owner: a session has taken the connection
	frameDelivered // from the relay: the client has received everything
	// from the relay: the client has received more data; from the owner: it is alive, sent repeatedly
	frameProgress
	frameReceived // from the owner: the upload is complete, so the client may ignore later data
)

const (
	frameHeader = 4
	// maxFrame is the maximum length of the data in a frame.
	maxFrame = 256 << 10
)

// errCut reports a relay that ended without an end frame. It is not an EOF, so that it is never taken for the end
// of a file.
var errCut = errors.New("the relay between replicas was cut")

var errFrame = errors.New("invalid relay frame")

// putHeader encodes the header of a frame.
func putHeader(b []byte, kind byte, length int) {
	binary.BigEndian.PutUint32(b, uint32(kind)<<24|uint32(length))
}

// parseHeader decodes the header of a frame.
func parseHeader(b []byte) (kind byte, length int, err error) {
	h := binary.BigEndian.Uint32(b)
	kind, length = byte(h>>24), int(h&0xffffff)
	if kind < frameData || kind > frameReceived || length > maxFrame || (length > 0) != (kind == frameData) {
		return 0, 0, errFrame
	}
	return kind, length, nil
}

// cut replaces EOF by errCut, because the end of the stream is not the end of the data.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

// A frameWriter writes frames from several goroutines. After an error all later writes fail, because a frame may
// be incomplete.
type frameWriter struct {
	conn  net.Conn
	mu    sync.Mutex
	first byte // kind of the first frame, or 0
	last  byte // kind of the last frame, or 0
	err   error
}

// begin writes the first frame.
func (w *frameWriter) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writeFirst()
}

// writeFirst writes the first frame unless it was written. The mutex must be locked.
func (w *frameWriter) writeFirst() error {
	if w.first == 0 {
		return nil
	}
	kind := w.first
	w.first = 0
	_, err := w.writeFrame(kind, nil)
	return err
}

// write writes data frames, or one frame of another kind. It returns how many bytes of data were written.
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

// progress writes a progress frame, unless another frame is being written. A zero deadline means no deadline.
// After an error no more frames can be written.
func (w *frameWriter) progress(deadline time.Time) error {
	if !w.mu.TryLock() {
		return nil
	}
	defer w.mu.Unlock()
	_ = w.conn.SetWriteDeadline(deadline)
	_, err := w.writeFrame(frameProgress, nil)
	return err
}

// writeFrame writes one frame. The mutex must be locked.
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
