package driver

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/fileinfo"
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

// A reader is a file open for reading. It begins with one stream, the answer to one request for all of the object. Where S3 turns
// out to be slower than the client, a window of pieces that come at the same time takes the place of the stream.
type reader struct {
	handle
	f       *Fs
	ctx     context.Context
	cancel  context.CancelCauseFunc
	version s3api.Version
	info    *fileinfo.Info

	offset int64   // of the byte that is read next
	stream span    // goes on from offset, unless the window does
	window *window // nil while one stream is enough
	memory membudget.TransferBuffer
	rest   []byte // has come and was not read yet; in memory

	pace    pace
	waited  time.Duration // for S3
	arrived atomic.Int64  // bytes
}

func (f *Fs) openReader(name, key string, offset int64) (*reader, error) {
	ctx, cancel := context.WithCancelCause(f.ctx)
	begin := time.Now()
	v, a, body, err := f.bucket.Get(ctx, key, offset)
	if offset > 0 && errors.Is(err, fs.ErrInvalid) {
		// There is no byte at offset. Where it is the end that is no error, but few servers tell the size with the refusal.
		var headErr error
		if v, a, headErr = f.bucket.Head(ctx, key); headErr != nil || v.Size == offset {
			err = headErr
		}
	}
	if err != nil {
		cancel(nil)
		return nil, err
	}
	r := &reader{
		handle: handle{name: name, kind: syscall.EBADF},
		f:      f, ctx: ctx, cancel: cancel, version: v, offset: offset,
		info:   fileinfo.New(f.keys.Base(key), &v, &a),
		memory: f.memory.TransferBuffer(),
		pace:   pace{lesson: &f.route.downloads, most: f.opts.Streams, latency: time.Since(begin)},
	}
	f.route.downloads.guess(f.route.guess(time.Now(), f.opts.Streams))
	r.stream = r.streamFrom(offset)
	r.stream.body = body
	r.pace.start(r.reading(time.Now()))
	return r, nil
}

// streamFrom is all bytes from an offset on, not asked for yet.
func (r *reader) streamFrom(offset int64) span {
	return span{ctx: r.ctx, bucket: r.f.bucket, version: r.version, offset: offset, end: r.version.Size, arrived: r.count}
}

func (r *reader) count(n int) {
	r.arrived.Add(int64(n))
	r.f.route.arrived.Add(int64(n))
}

// Read reads the bytes that follow those read before.
func (r *reader) Read(p []byte) (int, error) {
	switch {
	case r.closed:
		return 0, r.refuse("read")
	case len(p) == 0:
		return 0, nil
	}
	if len(r.rest) == 0 && !r.inWindow() { // straight from the connection
		n, err := r.receive(p)
		r.offset += int64(n)
		return n, r.readError(err)
	}
	if err := r.next(); err != nil {
		return 0, r.readError(err)
	}
	n := copy(p, r.rest)
	r.taken(n)
	return n, nil
}

// WriteTo writes all that is left to w.
func (r *reader) WriteTo(w io.Writer) (int64, error) {
	if r.closed {
		return 0, r.refuse("read")
	}
	var written int64
	for {
		switch err := r.next(); {
		case errors.Is(err, io.EOF):
			return written, nil
		case err != nil:
			return written, r.readError(err)
		}
		n, err := w.Write(r.rest)
		written += int64(n)
		r.taken(n)
		if err != nil {
			return written, err
		}
	}
}

func (r *reader) readError(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return s3errors.PathError("read", r.name, err)
}

// next sees to it that there are bytes in rest.
func (r *reader) next() error {
	if err := context.Cause(r.ctx); err != nil {
		return err
	}
	if len(r.rest) > 0 {
		return nil
	}
	if r.inWindow() {
		begin := time.Now()
		b, err := r.window.take()
		r.measure(begin)
		if err == nil {
			r.stream.close()
			r.memory.Hold(b.memory)
			r.rest = b.bytes()
			return nil
		}
		// One stream goes on, and finds out whether what ended the window, if it did not come to its end, ends the download.
		r.closeWindow()
	}
	room := r.memory.Room(r.version.Size - r.offset)
	n, err := r.receive(room)
	r.rest = room[:n]
	return err
}

// taken says that so many bytes of rest were read.
func (r *reader) taken(n int) {
	r.rest = r.rest[n:]
	r.offset += int64(n)
}

// receive reads from the stream. It reads something, or returns an error.
func (r *reader) receive(p []byte) (int, error) {
	if r.stream.offset != r.offset {
		r.stream.close()
		r.stream = r.streamFrom(r.offset)
	}
	if r.window != nil {
		p = p[:min(int64(len(p)), r.window.start-r.offset)]
	}
	for {
		begin := time.Now()
		n, err := r.stream.Read(p)
		r.measure(begin)
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// inWindow tells whether the next byte comes by the window.
func (r *reader) inWindow() bool { return r.window != nil && r.offset >= r.window.start }

// measure notes that the reader has waited for S3, and lets the pace decide how many streams there shall be.
func (r *reader) measure(begin time.Time) {
	now := time.Now()
	r.waited += now.Sub(begin)
	switch {
	case r.window == nil:
		r.pace.look(r.reading(now))
		if r.pace.width > 1 {
			r.openWindow(now)
		}
	case r.window.next == r.version.Size: // there is nothing left to decide
		r.pace.stop()
	default:
		r.refill()
		r.pace.look(r.reading(now))
		r.refill()
	}
}

// openWindow lets pieces come besides the stream, which goes on to where they begin.
func (r *reader) openWindow(now time.Time) {
	at := r.stream.offset
	size := min(max((r.version.Size-at)/int64(r.pace.width), minPiece), maxPiece, r.f.memory.Limit()/leastPieces)
	if at+size < r.version.Size {
		r.window = newWindow(r.ctx, r.f.bucket, r.f.memory, r.version, at+size, size, r.count)
		r.refill()
		if r.window.pieceCount() > 0 {
			return
		}
		r.window.close()
		r.window = nil
	}
	r.pace.rest(r.reading(now), 1)
}

// refill asks for pieces where there are fewer than the pace wants.
func (r *reader) refill() {
	switch {
	case r.pace.width == 1: // the window ends with the pieces that it has
	case r.inWindow():
		r.window.open(r.pace.width)
	default:
		r.window.open(r.pace.width - 1)
	}
}

func (r *reader) reading(now time.Time) reading {
	v := reading{at: now, waited: r.waited, own: r.arrived.Load(), all: r.f.route.arrived.Load(), wider: growth * r.pace.width}
	if r.window != nil {
		v.streams = r.window.pieceCount()
	}
	if !r.inWindow() {
		v.streams++
	}
	return v
}

// closeWindow goes on with one stream, for a while at least.
func (r *reader) closeWindow() {
	if r.window == nil {
		return
	}
	r.window.close()
	r.window = nil
	r.pace.rest(r.reading(time.Now()), 1)
}

// ReadAt reads from an offset, by a request of its own. It neither moves the offset of Read nor minds other calls at the same
// time.
func (r *reader) ReadAt(p []byte, offset int64) (int, error) {
	if r.closed {
		return 0, r.refuse("read")
	}
	if offset < 0 {
		return 0, s3errors.PathError("read", r.name, s3errors.ErrInvalid)
	}
	v := r.version
	part := span{ctx: r.ctx, bucket: r.f.bucket, version: v, offset: offset, end: min(offset+int64(len(p)), v.Size)}
	defer part.close()
	n := 0
	for n < len(p) {
		m, err := part.Read(p[n:])
		n += m
		if errors.Is(err, io.EOF) {
			return n, io.EOF
		}
		if err != nil {
			return n, s3errors.PathError("read", r.name, err)
		}
	}
	return n, nil
}

// Seek sets where Read goes on. It makes no request, and where the offset is the present one it changes nothing at all.
func (r *reader) Seek(offset int64, whence int) (int64, error) {
	if r.closed {
		return 0, r.refuse("seek")
	}
	switch whence {
	case io.SeekCurrent:
		offset += r.offset
	case io.SeekEnd:
		offset += r.version.Size
	}
	if offset < 0 || whence < io.SeekStart || whence > io.SeekEnd {
		return 0, s3errors.PathError("seek", r.name, s3errors.ErrInvalid)
	}
	if offset != r.offset {
		r.closeWindow()
		r.rest, r.offset = nil, offset
	}
	return offset, nil
}

// Stat describes the version of the object that is read.
func (r *reader) Stat() (fs.FileInfo, error) { return r.info, nil }

// Abort ends reading: what reads or will read, and Close, returns cause.
func (r *reader) Abort(cause error) { r.cancel(cause) }

// Close gives the connection back, where all was read, or ends it.
func (r *reader) Close() error {
	if r.closed {
		return r.refuse("close")
	}
	r.closed = true
	err := context.Cause(r.ctx)
	r.stream.close()
	r.cancel(nil)
	r.closeWindow()
	r.pace.stop()
	r.memory.Release()
	return s3errors.PathError("close", r.name, err)
}
