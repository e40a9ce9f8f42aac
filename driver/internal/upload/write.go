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
// with another buffer. A file that fits into one buffer is stored with a single request.
type Writer struct {
	name   string // as passed to Open
	key    string
	u      *Uploader
	ctx    context.Context
	cancel context.CancelCauseFunc

	owner      string                // the user that can resume the upload; empty if it cannot be resumed
	active     *journal.ActiveUpload // nil without an owner
	change     *quota.Reservation
	attributes s3object.Attributes
	rule       *s3object.Rule  // applied to attributes
	condition  s3api.Condition // on the object that the new one replaces

	resumed pending   // the upload that this one continues; without bytes if it continues none
	kept    keptBytes // bytes of the current object that stay
	endCopy func()    // ends the operation that copies the kept bytes

	kind       kind
	phase      phase
	upload     *multipart // nil for a single request
	inspection Inspection // inspection of the bytes that this session receives
	promise    *promise   // hash that the file must have; nil for none
	client     journal.ClientWait

	offset   int64             // bytes of the file so far, including resumed and kept ones
	partSize int64             // bytes of the first part
	part     *membudget.Buffer // the buffer being filled; nil before its first byte
	next     [1]byte           // holds the byte that follows a full buffer

	stored s3api.Result // the response of S3 about the published object
	err    error        // the first error; if set, Close publishes nothing
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	if len(p) == 0 && !w.phase.isOver() {
		return 0, nil
	}
	n, err := w.ReadFrom(bytes.NewReader(p))
	return int(n), err
}

// ReadFrom implements io.ReaderFrom. If r returns an error other than io.EOF, for example io.ErrUnexpectedEOF, bytes
// are missing, and Close publishes nothing. If r is a connection, a blocked Read returns when the upload ends, for
// example after Abort.
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

// fill reads r to its end, directly into the buffers.
//
// A full buffer is sent as a part only after another byte has arrived. A file that fits into one buffer therefore takes
// a single request, and S3 never holds all bytes of an interrupted upload. Otherwise a client could find that all of
// its bytes are already stored and send nothing, and no session would complete the upload.
func (w *Writer) fill(r io.Reader) (int64, error) {
	if w.phase == opened {
		if w.offset > 0 { // copy the kept bytes only if another byte follows them
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
			w.promise.received(room[:n])
			if _, err := w.inspection.Write(room[:n]); err != nil {
				return total, err
			}
		}
		if err != nil {
			return total, ignoreEOF(err)
		}
	}
}

// beginPart sends the full buffer as a part and puts the byte that follows it into a new buffer.
func (w *Writer) beginPart() error {
	if err := w.flush(); err != nil {
		return err
	}
	room, err := w.bufferSpace()
	copy(room, w.next[:])
	return err
}

// receive reads from r. If the client sends nothing for a while, another session of the owner may take over the upload.
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

// bufferSpace returns free memory of the current buffer, or of a new one. The slice is empty only if the buffer is
// full.
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

// begin adds the resumed or kept bytes to the upload, before the first byte of the client.
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

// read downloads the bytes [from, to) of an object and adds them to the upload. If the object has few other bytes, it
// reads the whole object, because S3 sends checksums only for whole objects. The SDK verifies them.
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

// flush sends the buffer as a part that is not the last one.
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

// start creates the multipart upload, because the file does not fit into one request.
func (w *Writer) start() (err error) {
	p := uploadOptions{
		key: w.key, owner: w.owner, partSize: w.partSize, kind: inParts, cancel: w.cancel, uploaded: w.kept.Key == "",
		began: time.Now(),
	}
	a := &w.attributes
	if w.u.needsStaging(w.owner != "") {
		common := w.u.Objects.Common()
		p.kind, a = stagedParts, &common
	}
	if w.owner != "" {
		p.client, p.began = &w.client, w.active.Began
	}
	if w.upload, err = w.u.createMultipart(w.ctx, w.partsContext(), p, a); err == nil {
		w.kind = p.kind
	}
	return err
}

// partsContext returns the context for sending parts. If the owner can resume the upload, parts in flight continue
// after the client disconnects.
func (w *Writer) partsContext() context.Context {
	if w.owner != "" {
		return context.WithoutCancel(w.ctx)
	}
	return w.ctx
}

// Seek implements io.Seeker. The only supported position is the end of the written bytes; for all others the error is
// errors.ErrUnsupported.
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

// Stat describes the file as Close would publish it now, including the kept bytes after the written ones.
func (w *Writer) Stat() (fs.FileInfo, error) {
	v := s3api.Version{Key: w.key, Size: max(w.offset, w.kept.end), ETag: w.stored.ETag}
	info := &file.TransferInfo{Info: file.New(w.u.Keys.Base(w.key), &v, &w.attributes), Result: w.stored}
	if w.phase == stored {
		info.VerifiedBy = w.promise.verifiedBy(&w.stored)
	}
	return info, nil
}

// Memory returns the size in bytes of the buffer being filled. The reader passed to ReadFrom may call it during a Read.
func (w *Writer) Memory() int64 { return w.part.Memory() }

// Kept reports, after Close, whether the upload was interrupted and its owner can resume it.
func (w *Writer) Kept() bool { return w.phase == interrupted }

// Abort makes the upload fail with cause, which Close and every later write return. If Close has already sent the
// request that publishes the file, Abort does nothing. It may be called concurrently with all other methods.
func (w *Writer) Abort(cause error) { w.cancel(cause) }
