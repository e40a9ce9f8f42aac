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

// commitTimeout bounds the request that makes an upload visible. S3 may take minutes to assemble many parts.
const commitTimeout = 10 * time.Minute

// A Writer is a file open for writing. It collects bytes in a buffer, sends the full buffer as a part, and continues with another buffer.
// A file that fits into one buffer becomes an object by one request.
type Writer struct {
	openfile.Handle
	u      *Uploader
	ctx    context.Context
	cancel context.CancelCauseFunc

	key        string
	attributes attributes.Attributes
	condition  s3api.Condition // on the object that this one replaces
	head       s3api.Version   // the object whose first bytes stay; no key when there is none
	headSize   int64           // how many bytes of it stay

	resumed     *pending // the upload that this one continues, nil when there is none
	etag        string   // of the new object
	resumable   bool     // whether the owner can resume the upload when it is interrupted
	exclusive   bool     // whether there must be no object
	reservation quota.Reservation
	opened      time.Time

	// older gets the records of the interrupted uploads that end when Close publishes this file. It is nil without an owner.
	older chan []s3api.Version

	begun    bool              // whether begin has been called
	offset   int64             // bytes so far
	partSize int64             // bytes of the first part
	upload   *multipart        // nil until more than a buffer has come
	part     *membudget.Buffer // nil until bytes come
	next     [1]byte           // after a full buffer
	client   journal.ClientWait
	err      error // the first; Close publishes nothing then
}

// Open opens a file for writing, with the flags of os.OpenFile. The new object will begin with the first offset bytes of the present one. The
// end of ctx ends the upload.
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
		keeps, create = false, true // the first bytes come from the upload
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
		case keeps && seen >= 0 && (whole || offset == seen): // another session has stored it, and the client sends only the rest of its own
			return nil, &ResumeError{Size: v.Size}
		case keeps:
			if whole {
				offset = v.Size
			}
			if offset > v.Size {
				return nil, s3errors.ErrInvalid
			}
			w.head, w.headSize, w.offset, w.resumable = v, offset, offset, false
			w.partSize = u.partSizeFor(offset)
			w.attributes, w.condition = a, s3api.Condition{ETag: v.ETag}
			w.attributes.RemoveMTime()
			u.Objects.Inherit(&w.attributes)
			if err := u.Bucket.ReadTags(ctx, key, &w.attributes); err != nil {
				return nil, err
			}
		}
	}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.reservation = quota.Reservation{Quotas: u.Quotas}
	switch {
	case w.head.Key != "":
		w.reservation.Replaced = quota.Exactly(w.head.Size)
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

// appendToNothing appends to a missing file: it resumes the upload that the driver has reported with seen bytes, or begins the file. A client
// that begins a file so does not expect to resume it, so the driver keeps nothing of an interrupted one. In both cases no other session may
// store the file meanwhile.
func (w *Writer) appendToNothing(ctx context.Context, seen int64) (err error) {
	w.resumed, err = w.u.resumeAt(ctx, w.key, seen)
	switch {
	case err != nil:
		return err
	case w.resumed != nil:
		w.partSize, w.offset = w.resumed.PartSize, w.resumed.size()
	case seen > 0: // another session has removed it, and the client sends only the rest of the file
		return &ResumeError{Size: 0}
	default:
		w.resumable = false
	}
	w.condition.Absent = true
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

// WriteAt is Write if offset is the end of the written bytes. Otherwise the error is errors.ErrUnsupported.
func (w *Writer) WriteAt(p []byte, offset int64) (int, error) {
	if _, err := w.Seek(offset, io.SeekStart); err != nil {
		return 0, err
	}
	return w.Write(p)
}

// ReadFrom writes all bytes of r. An error of r other than io.EOF means that bytes are missing, also io.ErrUnexpectedEOF. Close publishes
// nothing then. When the upload ends, by Abort for example, a waiting Read of r ends too, if r is a connection.
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
// A full buffer becomes a part only when another byte has come. So a file that fits into one buffer is one request. And S3 never holds all
// bytes of an interrupted upload. A client that found all of its file there would send no more, and no session would complete it.
func (w *Writer) fill(r io.Reader) (int64, error) {
	if !w.begun {
		if w.headSize > 0 || w.resumed != nil {
			// The bytes that stay are copied only when another byte follows them.
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
		var n int
		var err error
		if w.part != nil && w.part.Full() {
			n, err = w.receive(r, w.next[:])
			if n > 0 {
				if sendErr := w.flush(); sendErr != nil {
					return total, sendErr
				}
				room, roomErr := w.bufferSpace()
				if roomErr != nil {
					return total, roomErr
				}
				copy(room, w.next[:])
			}
		} else {
			room, roomErr := w.bufferSpace()
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

// receive reads from r. While the client sends nothing, another session of the owner may take the upload over.
func (w *Writer) receive(r io.Reader, p []byte) (int, error) {
	w.client.Begin()
	n, err := r.Read(p)
	w.client.End()
	if n > 0 && w.upload != nil {
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
		if w.upload != nil {
			if err := w.upload.waitToFill(); err != nil {
				return nil, err
			}
		}
		w.part = w.u.Memory.Buffer(w.u.partSizeAt(w.partSize, w.offset))
	}
	return w.part.Room(w.ctx)
}

// begin makes the bytes that stay the head of the upload, by resume or by keepHead.
func (w *Writer) begin() error {
	if w.begun {
		return nil
	}
	w.begun = true
	switch {
	case w.resumed != nil:
		return w.resume()
	case w.headSize == 0:
		return nil
	}
	return w.copyHead()
}

// read adds the first length bytes of an object to the upload. If little more follows, it reads the whole object, because S3 sends a checksum
// of whole objects only. The SDK compares it.
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
	p := uploadOptions{key: w.key, partSize: w.partSize, cancel: w.cancel, uploaded: w.head.Key == ""}
	if w.resumable {
		p.owner, p.client = w.u.Owner, &w.client
	}
	w.upload, err = w.u.createMultipart(w.ctx, w.partsContext(), p, &w.attributes)
	return err
}

// partsContext returns the context of the parts under way. If the owner can resume the upload, they continue after the client disconnects.
func (w *Writer) partsContext() context.Context {
	if w.resumable {
		return context.WithoutCancel(w.ctx)
	}
	return w.ctx
}

// Seek finds the end of the written bytes, by any whence. For any other offset the error is errors.ErrUnsupported.
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

// Truncate does nothing if the file has this size. Otherwise the error is errors.ErrUnsupported.
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
	v := s3api.Version{Key: w.key, Size: w.offset, ETag: w.etag}
	return fileinfo.New(w.u.Keys.Base(w.key), &v, &w.attributes), nil
}

// Abort ends the upload: Close publishes nothing, and every write and Close return cause. If Close has already asked S3 to publish, Abort
// does nothing.
func (w *Writer) Abort(cause error) { w.cancel(cause) }

// Close publishes the file, unless writing failed or was aborted. When it returns nil, S3 has confirmed the object. After an error the bucket
// has at most an interrupted upload that the owner can resume. There is one exception: the answer to the request that publishes is lost, and
// a look at the object shows nothing. Then the complete object may be there.
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
	case w.resumed != nil && !w.begun: // no byte has come, and the owner can resume the upload as before
	case w.resumable && canResumeAfter(err):
		w.interrupt()
	default:
		w.discard()
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
	case w.head.Key != "" && w.headSize == w.head.Size:
		return nil // the object stays as it is
	case w.resumed != nil:
		return &ResumeError{Size: w.offset} // the pending upload lacks at least a byte
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
		if w.part.Full() && w.resumable { // a session that resumes the upload must not continue after the last part
			if err := w.upload.entry.BoundParts(w.ctx, w.offset-w.part.Len()); err != nil {
				return err
			}
		}
		if err := w.upload.send(w.part, func() {}); err != nil { // done does not release the buffer: interrupt may need its bytes
			return err
		}
	}
	if err := w.upload.wait(); err != nil {
		return err
	}
	return w.commit(func(ctx context.Context) (string, error) {
		if err := w.upload.entry.ConfirmHolder(ctx); err != nil {
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
// The end of the session does not cancel this request, because S3 may perform it anyway, and only the answer tells. The client has sent the
// whole file, so the object is right even if the client has disconnected.
func (w *Writer) commit(publish func(context.Context) (etag string, err error)) error {
	if err := w.u.BeforeCommit(w.ctx); err != nil {
		return err
	}
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(w.ctx), commitTimeout)
	defer done()
	var err error
	w.etag, err = publish(ctx)
	if w.exclusive {
		return w.condition.Failed(err)
	}
	return err
}

// put makes an object of the bytes in the buffer.
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

// cause returns why the upload was ended, if it was. Otherwise it returns err.
func (w *Writer) cause(err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(w.ctx); cause != nil {
		return cause
	}
	return err
}
