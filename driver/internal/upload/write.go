package upload

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/attributes"
	"github.com/babelftp/babelftp/driver/internal/download"
	"github.com/babelftp/babelftp/driver/internal/fileinfo"
	"github.com/babelftp/babelftp/driver/internal/journal"
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/openfile"
	"github.com/babelftp/babelftp/driver/internal/quota"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

// commitTimeout bounds the request that makes an upload visible. S3 may take minutes to put many parts together.
const commitTimeout = 10 * time.Minute

// A Writer is a file open for writing. It collects what comes in a buffer, sends the buffer as a part when it is full and goes on
// with another. What fits into one buffer becomes an object by one request.
type Writer struct {
	openfile.Handle
	u      *Uploader
	ctx    context.Context
	cancel context.CancelCauseFunc

	key         string
	attributes  attributes.Attributes
	condition   s3api.Condition // of what is replaced
	kept        s3api.Version   // the object of which the first bytes are kept; no key when there is none
	keep        int64           // how many bytes
	resumed     *pending        // the upload that this one goes on with, nil when there is none
	resumable   bool            // whether the owner can resume the upload when it is interrupted
	exclusive   bool            // whether there must be no object
	reservation quota.Reservation
	opened      time.Time
	older       chan []s3api.Version // the records that end with this upload, once they are found; nil without an owner

	begun    bool               // what is kept is in its place
	offset   int64              // bytes that the object will have so far
	partSize int64              // bytes of the first part
	upload   *multipart         // nil until a buffer was full and more came
	part     *membudget.Buffer  // nil until there is something for it
	next     [1]byte            // what follows a full buffer
	client   journal.ClientWait // since when the upload waits for bytes
	err      error              // the first; nothing is published then
}

// Open opens a file for writing, with the flags of os.OpenFile, whose object will hold its first offset bytes and then what is written. The end of
// ctx ends the upload.
func (u *Uploader) Open(ctx context.Context, name, key string, flag int, offset int64) (*Writer, error) {
	var (
		create    = flag&os.O_CREATE != 0
		exclusive = create && flag&os.O_EXCL != 0 || u.NoOverwrite
		whole     = flag&os.O_APPEND != 0
		keeps     = flag&os.O_TRUNC == 0 && (whole || offset > 0)
	)
	w := &Writer{
		Handle: openfile.Handle{FileName: name, Unsupported: syscall.EBADF}, u: u, key: key,
		attributes: u.Objects.OfFile(name),
		condition:  s3api.Condition{Absent: exclusive},
		exclusive:  exclusive,
		opened:     time.Now(),
		partSize:   u.PartSize,
	}
	w.resumable = u.Owner != ""
	seen := u.reported.take(key)
	if keeps && !whole {
		var err error
		if w.resumed, err = u.resumeAt(ctx, key, offset); err != nil {
			return nil, err
		}
	}
	if w.resumed != nil {
		keeps, create = false, true // what has come comes from the upload
		w.partSize, w.offset = w.resumed.PartSize, offset
	}
	if keeps || exclusive || !create {
		v, a, err := u.Bucket.Head(ctx, key)
		switch {
		case errors.Is(err, fs.ErrNotExist) && create && whole:
			if err := w.appendToNothing(ctx, seen); err != nil {
				return nil, err
			}
		case errors.Is(err, fs.ErrNotExist) && create && !keeps: // the file begins empty
		case err != nil:
			return nil, err
		case exclusive:
			return nil, fs.ErrExist
		case keeps:
			if whole {
				offset = v.Size
			}
			if offset > v.Size {
				return nil, s3errors.ErrInvalid
			}
			w.kept, w.keep, w.offset, w.resumable = v, offset, offset, false
			w.partSize = u.partSizeFor(offset)
			w.attributes, w.condition = a, s3api.Condition{ETag: v.ETag}
			w.attributes.ForgetMTime()
			u.Objects.Inherit(&w.attributes)
			if err := u.Bucket.ReadTags(ctx, key, &w.attributes); err != nil {
				return nil, err
			}
		}
	}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.reservation = quota.Reservation{Quotas: u.Quotas}
	switch {
	case w.kept.Key != "":
		w.reservation.Replaced = quota.Exactly(w.kept.Size)
	case w.condition.Absent:
		w.reservation.Replaced = quota.Exactly(0)
	default:
		w.reservation.Replaced = u.Quotas.SizeOf(w.ctx, u.Bucket, key)
	}
	if err := w.reservation.Open(w.ctx); err != nil {
		w.cancel(err)
		return nil, err
	}
	w.findPending()
	return w, nil
}

// appendToNothing begins a file by appending to it, or resumes the upload of which the session has seen so many bytes. A client that appends
// to a missing file does not expect to resume it later, so an interrupted one is not kept. No other session may begin the file meanwhile.
func (w *Writer) appendToNothing(ctx context.Context, seen int64) (err error) {
	w.resumed, err = w.u.resumeAt(ctx, w.key, seen)
	switch {
	case err != nil:
		return err
	case w.resumed != nil:
		w.partSize, w.offset = w.resumed.PartSize, w.resumed.size()
	default:
		w.resumable = false
		w.condition.Absent = true
	}
	return nil
}

// Write appends to what was written.
func (w *Writer) Write(p []byte) (int, error) {
	if len(p) == 0 && !w.Closed {
		return 0, nil
	}
	n, err := w.ReadFrom(bytes.NewReader(p))
	return int(n), err
}

// WriteString is Write of a string.
func (w *Writer) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// WriteAt is Write where offset is the end of what was written, and fails with errors.ErrUnsupported elsewhere.
func (w *Writer) WriteAt(p []byte, offset int64) (int, error) {
	if _, err := w.Seek(offset, io.SeekStart); err != nil {
		return 0, err
	}
	return w.Write(p)
}

// ReadFrom writes all that r has. An error of r other than io.EOF, io.ErrUnexpectedEOF for one, means that bytes are missing:
// nothing will be published. What ends the upload, Abort for one, also ends a Read of r that waits, if r is a connection.
func (w *Writer) ReadFrom(r io.Reader) (int64, error) {
	if w.Closed {
		return 0, w.Refuse("write")
	}
	if w.err != nil {
		return 0, s3errors.PathError("write", w.FileName, w.err)
	}
	if conn, ok := r.(interface{ SetReadDeadline(t time.Time) error }); ok {
		stop := context.AfterFunc(w.ctx, func() { _ = conn.SetReadDeadline(time.Now()) })
		defer stop()
	}
	n, err := w.fill(r)
	if err != nil {
		w.err = w.cause(err)
		return n, s3errors.PathError("write", w.FileName, w.err)
	}
	return n, nil
}

// fill reads r to its end, straight into the buffers.
//
// A full buffer becomes a part when a byte has come that follows it. So a file that fits into one is one request, and of a broken
// upload S3 never holds all that its client has sent: a client that asks how much there is, and finds all of it, sends no more, and
// nobody would complete the file.
func (w *Writer) fill(r io.Reader) (int64, error) {
	if !w.begun {
		if w.keep > 0 || w.resumed != nil {
			// Nothing is put in its place as long as nothing follows it.
			first := make([]byte, 1)
			if _, err := io.ReadFull(r, first); err != nil {
				return 0, eofIsEnd(err)
			}
			r = io.MultiReader(bytes.NewReader(first), r)
		}
		if err := w.begin(); err != nil {
			return 0, err
		}
	}
	var total int64
	for {
		var n int
		var err error
		if w.part != nil && w.part.Full() {
			n, err = w.receive(r, w.next[:])
			if n > 0 {
				if sendErr := w.flush(); sendErr != nil {
					return total, sendErr
				}
				room, roomErr := w.room()
				if roomErr != nil {
					return total, roomErr
				}
				copy(room, w.next[:])
			}
		} else {
			room, roomErr := w.room()
			if roomErr != nil {
				return total, roomErr
			}
			n, err = w.receive(r, room)
		}
		if n > 0 {
			w.part.Filled(n)
			w.offset += int64(n)
			total += int64(n)
		}
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// receive reads from r. Another session of the owner may take the upload over while the client sends nothing.
func (w *Writer) receive(r io.Reader, p []byte) (int, error) {
	w.client.Begin()
	n, err := r.Read(p)
	w.client.End()
	if n > 0 && w.upload != nil {
		if err := w.upload.entry.Hold(w.ctx); err != nil {
			return 0, err
		}
	}
	return n, err
}

func eofIsEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// room returns memory for the bytes at offset. It is empty only if the buffer is full.
func (w *Writer) room() ([]byte, error) {
	if w.part == nil {
		if w.upload != nil {
			if err := w.upload.await(); err != nil {
				return nil, err
			}
		}
		w.part = w.u.Memory.Buffer(w.u.partSizeAt(w.partSize, w.offset))
	}
	return w.part.Room(w.ctx)
}

// begin puts what is kept in its place: what S3 holds of a broken upload stays where it is, S3 copies what is long enough for a
// part, the rest is read into the first.
func (w *Writer) begin() error {
	if w.begun {
		return nil
	}
	w.begun = true
	switch {
	case w.resumed != nil:
		return w.resume()
	case w.keep == 0:
		return nil
	}
	return w.keepHead()
}

// read fills in the first length bytes of an object. Where not much more follows it reads that too: only of a whole object does S3 tell a
// checksum, which the SDK compares.
func (w *Writer) read(v s3api.Version, length int64) error {
	end := length
	if v.Size-length < s3api.MinPartSize {
		end = max(v.Size, length)
	}
	head := download.NewRange(w.ctx, w.u.Bucket, v, 0, end)
	defer head.Close()
	_, err := w.fill(io.LimitReader(head, length))
	if err == nil {
		_, err = io.Copy(io.Discard, head)
	}
	return err
}

// flush sends the buffer as a part.
func (w *Writer) flush() error {
	if err := w.reservation.Grow(w.ctx, w.offset); err != nil {
		return err
	}
	if w.upload == nil {
		if err := w.start(); err != nil {
			return err
		}
	}
	if err := w.upload.send(w.part, w.part.Release); err != nil {
		return err
	}
	w.part = nil
	return nil
}

func (w *Writer) start() (err error) {
	p := uploadPlan{key: w.key, partSize: w.partSize, lost: w.cancel, uploaded: w.kept.Key == ""}
	if w.resumable {
		p.owner, p.client = w.u.Owner, &w.client
	}
	w.upload, err = w.u.createMultipart(w.ctx, w.partsContext(), p, &w.attributes)
	return err
}

// partsContext is that of the parts on their way. Where the upload can be resumed they go on when the client has gone.
func (w *Writer) partsContext() context.Context {
	if w.resumable {
		return context.WithoutCancel(w.ctx)
	}
	return w.ctx
}

// Seek finds the end of what was written, whichever way that is asked for, and fails with errors.ErrUnsupported for any other
// place.
func (w *Writer) Seek(offset int64, whence int) (int64, error) {
	if w.Closed {
		return 0, w.Refuse("seek")
	}
	if whence != io.SeekStart {
		offset += w.offset
	}
	if offset != w.offset {
		return 0, s3errors.PathError("seek", w.FileName, errors.ErrUnsupported)
	}
	return offset, nil
}

// Truncate does nothing for the size that the file has, and fails with errors.ErrUnsupported for any other.
func (w *Writer) Truncate(size int64) error {
	if w.Closed {
		return w.Refuse("truncate")
	}
	if size != w.offset {
		return s3errors.PathError("truncate", w.FileName, errors.ErrUnsupported)
	}
	return nil
}

// Stat describes the file as far as it is written.
func (w *Writer) Stat() (fs.FileInfo, error) {
	v := s3api.Version{Key: w.key, Size: w.offset}
	return fileinfo.New(w.u.Keys.Base(w.key), &v, &w.attributes), nil
}

// Abort ends writing: nothing will be published, and what writes or will write, and Close, returns cause. When S3 has already
// been asked to publish, it does nothing.
func (w *Writer) Abort(cause error) { w.cancel(cause) }

// Close publishes what was written, unless writing failed or was aborted. When it returns nil S3 has confirmed the object. When it
// does not there is no trace of the file but what its owner can resume, with one exception: S3 was asked to publish, its answer did
// not arrive, and a look at the object got none either or came too early, so that the object, complete, may be there.
func (w *Writer) Close() error {
	if w.Closed {
		return w.Refuse("close")
	}
	w.Closed = true
	err := w.err
	if err == nil {
		err = w.finish()
	}
	err = w.cause(err)
	w.reservation.End(w.offset, err == nil)
	switch {
	case err == nil:
		w.removeOlder("")
	case w.resumed != nil && !w.begun: // nothing has come, and it can be resumed as before
	case w.resumable && canResumeAfter(err):
		w.interrupt()
	default:
		w.drop()
	}
	if w.part != nil {
		w.part.Release()
	}
	w.cancel(nil)
	return s3errors.PathError("close", w.FileName, err)
}

// finish publishes the file.
func (w *Writer) finish() error {
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	switch {
	case w.begun:
	case w.kept.Key != "" && w.keep == w.kept.Size:
		return nil // the object is as it shall be
	case w.resumed != nil:
		return &ResumeError{Size: w.offset} // it always lacks a byte at least
	}
	if err := w.begin(); err != nil {
		return err
	}
	if err := w.reservation.Grow(w.ctx, w.offset); err != nil {
		return err
	}
	if w.upload == nil {
		return w.commit(w.put)
	}
	if w.part != nil && w.part.Len() > 0 {
		if w.part.Full() && w.resumable { // nobody shall take the last part for one that others follow
			if err := w.upload.entry.Bound(w.ctx, w.offset-w.part.Len()); err != nil {
				return err
			}
		}
		if err := w.upload.send(w.part, func() {}); err != nil { // what is in it may yet have to be kept
			return err
		}
	}
	if err := w.upload.wait(); err != nil {
		return err
	}
	return w.commit(func(ctx context.Context) (string, error) {
		if err := w.upload.entry.Hold(ctx); err != nil {
			return "", err
		}
		c, err := w.u.Bucket.Precondition(ctx, w.key, w.condition, w.u.Bucket.Profile.ConditionalComplete)
		if err != nil {
			return "", err
		}
		return w.upload.complete(ctx, w.offset, c)
	})
}

// commit lets publish make the object visible, if the session still wants it.
//
// That request is not cancelled with the session: once it is sent S3 may do it whatever happens here, and only the answer tells.
// It carries the whole file, so that there is nothing wrong with an object that appears after its client has gone.
func (w *Writer) commit(publish func(context.Context) (etag string, err error)) error {
	if err := w.u.BeforeCommit(w.ctx); err != nil {
		return err
	}
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(w.ctx), commitTimeout)
	defer done()
	_, err := publish(ctx)
	if w.exclusive {
		return w.condition.Failed(err)
	}
	return err
}

// put makes an object of what is in the buffer.
func (w *Writer) put(ctx context.Context) (etag string, err error) {
	c, err := w.u.Bucket.Precondition(ctx, w.key, w.condition, w.u.Bucket.Profile.ConditionalPut)
	if err != nil {
		return "", err
	}
	if w.part == nil {
		return w.u.Bucket.Put(ctx, w.key, &w.attributes, c, bytes.NewReader(nil), nil)
	}
	w.part.Seal()
	return w.u.Bucket.Put(ctx, w.key, &w.attributes, c, io.NewSectionReader(w.part, 0, w.part.Len()), w.part.Checksum())
}

// cause prefers the reason for which writing was ended to the error that shows it.
func (w *Writer) cause(err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(w.ctx); cause != nil {
		return cause
	}
	return err
}
