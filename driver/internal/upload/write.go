package upload

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/driver/internal/journal"
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/quota"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/contract"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// A Writer is a file open for writing. It collects bytes in a buffer, sends the full buffer as a part, and continues
// with another buffer. A file that fits into one buffer becomes an object by one request.
type Writer struct {
	name   string // that it was opened with
	key    string
	u      *Uploader
	ctx    context.Context
	cancel context.CancelCauseFunc

	owner      string        // the user that can resume the upload; empty for none
	open       *journal.Open // nil without an owner
	change     *quota.Reservation
	attributes s3object.Attributes
	condition  s3api.Condition // on the object that this one replaces

	resumed pending // the upload that this one continues; it has no bytes if there is none
	kept    kept    // the object of which bytes stay
	endCopy func()  // ends the operation that the copy of these bytes is

	kind       kind
	phase      phase
	upload     *multipart // of the parts
	inspection Inspection // of the parts that the client has sent to this session
	client     journal.ClientWait

	offset   int64             // bytes so far
	partSize int64             // bytes of the first part
	part     *membudget.Buffer // that is being filled; nil before its first byte
	next     [1]byte           // after a full buffer

	stored s3api.Result // what S3 said of the object that is there in the end
	err    error        // the first; Close publishes nothing then
}

// Write appends to what was written.
func (w *Writer) Write(p []byte) (int, error) {
	if len(p) == 0 && !w.phase.isOver() {
		return 0, nil
	}
	n, err := w.ReadFrom(bytes.NewReader(p))
	return int(n), err
}

// ReadFrom writes all bytes of r. An error of r other than io.EOF means that bytes are missing, also
// io.ErrUnexpectedEOF. Close publishes nothing then. When the upload ends, by Abort for example, a waiting Read of r
// ends too, if r is a connection.
func (w *Writer) ReadFrom(r io.Reader) (int64, error) {
	if w.phase.isOver() {
		return 0, s3error.PathError("write", w.name, fs.ErrClosed)
	}
	if w.err != nil {
		return 0, s3error.PathError("write", w.name, w.err)
	}
	if conn, ok := r.(contract.ReadDeadliner); ok {
		stop := context.AfterFunc(w.ctx, func() { _ = conn.SetReadDeadline(time.Now()) })
		defer stop()
	}
	n, err := w.fill(r)
	if err != nil {
		w.err = w.cause(err)
		return n, s3error.PathError("write", w.name, w.err)
	}
	return n, nil
}

// fill reads r to its end, straight into the buffers.
//
// A full buffer becomes a part only when another byte has come. So a file that fits into one buffer is one request.
// And S3 never holds all bytes of an interrupted upload. A client that found all of its file there would send no
// more, and no session would complete it.
func (w *Writer) fill(r io.Reader) (int64, error) {
	if w.phase == opened {
		if w.offset > 0 { // the bytes that stay are copied only when another byte follows them
			first := make([]byte, 1)
			if _, err := io.ReadFull(r, first); err != nil {
				return 0, ignoreEOF(err)
			}
			r = io.MultiReader(bytes.NewReader(first), r)
		}
		if err := w.begin(); err != nil {
			return 0, err
		}
	}
	var total int64
	for {
		full, room := w.part.Full(), w.next[:]
		if !full {
			var err error
			if room, err = w.bufferSpace(); err != nil {
				return total, err
			}
		}
		n, err := w.receive(r, room)
		if n > 0 && full {
			if err := w.beginPart(); err != nil {
				return total, err
			}
		}
		if n > 0 {
			w.part.Filled(n)
			w.offset += int64(n)
			total += int64(n)
			if _, err := w.inspection.Write(room[:n]); err != nil {
				return total, err
			}
		}
		if err != nil {
			return total, ignoreEOF(err)
		}
	}
}

// beginPart sends the full buffer as a part, and puts the byte that has come after it into another buffer.
func (w *Writer) beginPart() error {
	if err := w.flush(); err != nil {
		return err
	}
	room, err := w.bufferSpace()
	copy(room, w.next[:])
	return err
}

// receive reads from r. While the client sends nothing, another session of the owner may take the upload over.
func (w *Writer) receive(r io.Reader, p []byte) (int, error) {
	w.client.Begin()
	n, err := r.Read(p)
	w.client.End()
	if n > 0 && w.kind != oneRequest {
		if err := w.upload.entry.ConfirmHolder(w.ctx); err != nil {
			return 0, err
		}
	}
	return n, err
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// bufferSpace returns memory for the bytes at offset. The slice is empty only if the buffer is full.
func (w *Writer) bufferSpace() ([]byte, error) {
	if w.part == nil {
		if w.kind != oneRequest {
			if err := w.upload.waitToFill(); err != nil {
				return nil, err
			}
		}
		w.part = w.u.Memory.Buffer(w.u.partSizeAt(w.partSize, w.offset))
	}
	return w.part.Room(w.ctx)
}

// begin makes the bytes that stay the head of the upload, by resume or by copyHead.
func (w *Writer) begin() error {
	if w.phase != opened {
		return nil
	}
	w.phase = live
	switch {
	case w.resumed.size() > 0:
		return w.resume()
	case w.kept.head > 0:
		return w.copyHead()
	}
	return nil
}

// read adds the bytes [from, to) of an object to the upload. If the object has little more, it reads the whole
// object, because S3 sends a checksum of whole objects only. The SDK compares it.
func (w *Writer) read(v s3api.Version, from, to int64) error {
	begin, end := from, to
	if v.Size-(to-from) < w.u.SmallestPart {
		begin, end = 0, max(v.Size, to)
	}
	object := file.NewRange(w.ctx, w.u.Bucket, v, begin, end)
	defer object.Close()
	_, err := io.CopyN(io.Discard, object, from-begin)
	if err == nil {
		_, err = w.fill(io.LimitReader(object, to-from))
	}
	if err == nil {
		_, err = io.Copy(io.Discard, object)
	}
	return err
}

// flush sends the buffer as a part, which is not the last one.
func (w *Writer) flush() error {
	if err := w.change.Grow(w.ctx, w.offset); err != nil {
		return err
	}
	if w.kind == oneRequest {
		if err := w.beginInspection(); err != nil {
			return err
		}
		if err := w.start(); err != nil {
			return err
		}
	}
	if err := w.upload.send(w.part, w.part.Release); err != nil {
		return err
	}
	w.upload.entry.ByteAfter(w.offset)
	w.part = nil
	return nil
}

// start creates the multipart upload, when the bytes are more than one request sends.
func (w *Writer) start() (err error) {
	p := uploadOptions{
		key: w.key, owner: w.owner, partSize: w.partSize, kind: inParts, cancel: w.cancel, uploaded: w.kept.Key == "",
		began: time.Now(),
	}
	a := &w.attributes
	if w.u.stages(w.owner != "") {
		common := w.u.Objects.Common()
		p.kind, a = stagedParts, &common
	}
	if w.owner != "" {
		p.client, p.began = &w.client, w.open.Began
	}
	if w.upload, err = w.u.createMultipart(w.ctx, w.partsContext(), p, a); err == nil {
		w.kind = p.kind
	}
	return err
}

// partsContext returns the context of the parts in flight. If the owner can resume the upload, they continue after the
// client disconnects.
func (w *Writer) partsContext() context.Context {
	if w.owner != "" {
		return context.WithoutCancel(w.ctx)
	}
	return w.ctx
}

// Seek finds the end of the written bytes, by any whence. For any other offset the error is errors.ErrUnsupported.
func (w *Writer) Seek(offset int64, whence int) (int64, error) {
	if w.phase.isOver() {
		return 0, s3error.PathError("seek", w.name, fs.ErrClosed)
	}
	if whence != io.SeekStart {
		offset += w.offset
	}
	if offset != w.offset {
		return 0, s3error.PathError("seek", w.name, errors.ErrUnsupported)
	}
	return offset, nil
}

// Stat describes the file as Close would publish it now: bytes that stay after the written ones count too.
func (w *Writer) Stat() (fs.FileInfo, error) {
	v := s3api.Version{Key: w.key, Size: max(w.offset, w.kept.end), ETag: w.stored.ETag}
	return &file.TransferInfo{Info: file.New(w.u.Keys.Base(w.key), &v, &w.attributes), Result: w.stored}, nil
}

// Memory returns how many bytes of memory the part takes that is being filled. The reader of ReadFrom may ask it
// during a Read.
func (w *Writer) Memory() int64 { return w.part.Memory() }

// Kept reports after Close whether the upload was interrupted, and its owner can resume it.
func (w *Writer) Kept() bool { return w.phase == interrupted }

// Abort ends the upload: Close publishes nothing, and every write and Close return cause. If Close has already asked
// S3 to publish, Abort does nothing.
func (w *Writer) Abort(cause error) { w.cancel(cause) }
