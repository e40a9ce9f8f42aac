package upload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/driver/internal/journal"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/contract"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

const (
	// maxPendingOfFile is how many records of one file the driver reads, the youngest.
	maxPendingOfFile = 20

	// maxReported is how many offsets of pending uploads a session remembers.
	maxReported = 1000
)

// A pending upload was interrupted, and its owner can resume it.
//
// S3 returns no bytes of an open upload. So the parts stay as they are, up to the first missing one. The body of the
// record holds the bytes after the last whole part. They could not be a part, because S3 takes only a last part below
// 5 MiB. The number of a part says where it begins (partSizeAt). So a late part, whose session did not know that its
// client had disconnected, is at the right place too.
//
// A pending upload is always at least a byte shorter than what its client has sent. A client that found all of its
// file there would send no more, and no session would complete the upload. So a part counts only when a byte has come
// after it. S3 may have others of an earlier session: these count when the session that resumes the upload has got
// their bytes again, and one more (Journal.Resume).
type pending struct {
	journal.Record
	parts    []*s3api.Part
	end      int64                   // the offset after the last part
	checksum types.ChecksumAlgorithm // of the parts, empty for none

	ended     bool            // the key has changed since
	condition s3api.Condition // that the key still has what S3 has just shown
}

// tail returns how many bytes follow the parts. A record with another offset is older than these parts, and its bytes
// do not count.
func (p *pending) tail() int64 {
	if p.TailOffset != p.end {
		return 0
	}
	return p.TailSize
}

func (p *pending) size() int64 { return p.end + p.tail() }

// kind returns the kind of the upload.
func (p *pending) kind() kind {
	switch {
	case p.Upload == "":
		return oneRequest
	case p.Staged:
		return stagedParts
	}
	return inParts
}

// inRecord returns how many bytes the upload has if all of them are in its record, and none are in parts.
func (p *pending) inRecord() int64 {
	if p.kind() != oneRequest {
		return 0
	}
	return p.size()
}

// A ResumeError refuses to write to a file at a wrong offset while an upload of this owner is pending. It also
// refuses the rest of an upload that has ended since the session was shown it. The owner can go on at Size, or begin
// a new upload with os.O_TRUNC. The bytes of two uploads must not mix. It is an fs.ErrInvalid.
type ResumeError struct {
	Size    int64 // bytes that S3 holds of the pending upload, or of the file if there is none
	Changed bool  // the file has changed, and no upload is pending
}

// Error implements error.
func (e *ResumeError) Error() string {
	if e.Changed {
		return fmt.Sprintf("this file has changed meanwhile, and has %d bytes: upload it again to replace it", e.Size)
	}
	return fmt.Sprintf(
		"an upload of this file was interrupted: resume it at offset %d, or upload the file again", e.Size)
}

// Unwrap returns an fs.ErrInvalid.
func (e *ResumeError) Unwrap() error { return s3error.ErrInvalid }

var _ contract.PendingError = (*ResumeError)(nil)

// ResumeOffset returns Size. It is for callers that import no driver, such as the one that chooses a reply.
func (e *ResumeError) ResumeOffset() int64 { return e.Size }

// FileChanged returns Changed, for the same callers.
func (e *ResumeError) FileChanged() bool { return e.Changed }

// reported holds the sizes of pending uploads that the driver has reported to a session. An append resumes only such
// an upload.
type reported struct {
	mu    sync.Mutex
	sizes map[string]int64 // by key
}

func (r *reported) set(key string, size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sizes == nil || len(r.sizes) >= maxReported {
		r.sizes = map[string]int64{}
	}
	r.sizes[key] = size
}

// take returns and forgets the reported size of a pending upload, -1 where there is none. A report counts only for
// the next time that the session opens the file for writing, whether or not that succeeds.
func (r *reported) take(key string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	size, known := r.sizes[key]
	if !known {
		return -1
	}
	delete(r.sizes, key)
	return size
}

// FileSeen forgets the pending upload of a key that the driver has reported: the session knows since that the file
// exists.
func (u *Uploader) FileSeen(key string) { u.reported.take(key) }

// Pending describes the latest interrupted upload to a key that this owner can resume. The error is fs.ErrNotExist if
// there is none, or if the file exists. The Uploader remembers the reported size for the next append.
func (u *Uploader) Pending(ctx context.Context, key string) (*file.Info, error) {
	all, object, err := u.pendingUploads(ctx, key)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(p *pending) bool { return p.ended })
	if len(all) == 0 || object.Key != "" {
		return nil, fs.ErrNotExist
	}
	p := all[0]
	u.reported.set(key, p.size())
	return file.New(
		u.Keys.Base(key), &s3api.Version{Key: key, Size: p.size(), ModTime: p.ModTime}, &s3object.Attributes{}), nil
}

// resumeAt returns the upload that the owner can resume at an offset, and one without bytes if none is pending. The
// error is a ResumeError if uploads are pending at other offsets only.
func (u *Uploader) resumeAt(ctx context.Context, key string, offset int64) (pending, error) {
	all, object, err := u.pendingUploads(ctx, key)
	if err != nil {
		return pending{}, err
	}
	for _, p := range all {
		switch {
		case p.size() != offset:
		case !p.ended:
			return *p, nil
		case object.Key != "": // its client sends the rest of an upload that has ended
			return pending{}, &ResumeError{Size: object.Size, Changed: true}
		}
	}
	if all = slices.DeleteFunc(all, func(p *pending) bool { return p.ended }); len(all) == 0 {
		return pending{}, nil
	}
	return pending{}, &ResumeError{Size: all[0].size()}
}

// pendingUploads finds the interrupted uploads to a key of this owner, the latest first. If there are any, it returns
// the object of the key too, which may have ended some of them.
func (u *Uploader) pendingUploads(ctx context.Context, key string) (all []*pending, object s3api.Version, err error) {
	if u.Owner == "" || u.Keys.IsRoot(key) {
		return nil, object, nil
	}
	records, err := u.Journal.Records(ctx, u.Owner, key)
	if err != nil {
		return nil, object, err
	}
	slices.SortFunc(records, func(a, b s3api.Version) int { return b.ModTime.Compare(a.ModTime) })
	for _, v := range records[:min(len(records), maxPendingOfFile)] {
		p, err := u.readPending(ctx, key, v)
		if err != nil {
			return nil, object, err
		}
		if p != nil && p.size() > 0 {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil, object, nil
	}
	object, state, age, err := u.Bucket.State(ctx, key)
	for _, p := range all {
		p.ended, p.condition = p.EndedBy(&object, state, age), object.Unchanged()
	}
	return all, object, err
}

// readPending reads a record of a key and finds the parts of its upload. It returns nil for an upload that the owner
// cannot resume.
func (u *Uploader) readPending(ctx context.Context, key string, listed s3api.Version) (*pending, error) {
	r, err := u.Journal.Read(ctx, listed)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, journal.ErrNoRecord):
		// it ended a moment ago, or its metadata are lost
		return nil, nil
	case err != nil:
		return nil, err
	case r.Key != key, !r.CanResume(), u.Journal.IsChanged(r):
		return nil, nil
	case u.Inspect != nil && r.Upload != "" && !r.Staged: // its bytes can be read only when they have the name
		return nil, nil
	}
	p := &pending{Record: *r}
	err = u.readParts(ctx, p)
	switch {
	case s3error.IsNoSuchUpload(err): // another session or program has completed or aborted it
		if err := u.Journal.Delete(ctx, r); err != nil && !errors.Is(err, journal.ErrTakenOver) {
			return nil, err
		}
		return nil, nil
	case err != nil:
		return nil, err
	}
	return p, nil
}

// readParts finds the parts that follow each other from the first on, up to the TailOffset of the record.
func (u *Uploader) readParts(ctx context.Context, p *pending) error {
	if p.Upload == "" {
		return nil
	}
	a, err := u.Bucket.ListParts(ctx, p.MultipartUpload(), func(found s3api.Part) bool {
		end := p.end + found.Size
		if found.Number != int32(len(p.parts)+1) || found.Size != u.partSizeAt(p.PartSize, p.end) ||
			!p.CountsPart(end) {
			return false
		}
		p.parts, p.end = append(p.parts, &found), end
		return true
	})
	if a == s3object.Algorithm || a == u.Objects.Checksum {
		p.checksum = a
	}
	return err
}

// resume continues a pending upload. It reads the bytes of the record first, because Journal.Resume overwrites them.
func (w *Writer) resume() error {
	p := &w.resumed
	w.offset = p.end
	if p.tail() > 0 {
		body := w.u.Journal.Body(p.Record)
		if err := w.read(body, 0, p.tail()); err != nil {
			return err
		}
	}
	if p.kind() == oneRequest {
		// without parts there is no upload to take over: two sessions that resume it each make their own object
		return nil
	}
	e, err := w.u.Journal.Resume(w.ctx, p.Record, p.end, &w.client, w.cancel)
	if e == nil {
		return err
	}
	of := p.MultipartUpload()
	of.Checksum = p.checksum
	w.upload = w.u.multipart(w.ctx, w.partsContext(), of, p.PartSize)
	w.kind, w.upload.entry = p.kind(), e
	w.upload.parts, w.upload.number, w.upload.bytes = p.parts, int32(len(p.parts)), p.end
	w.upload.taken.Store(len(p.parts) > 0)
	return err
}

// endPending ends the interrupted uploads to this file, which is stored. The journal removes those of which this
// session does not know.
func (w *Writer) endPending() {
	w.removeResumed()
	if w.u.Owner != "" {
		w.u.Journal.Changed(w.key)
	}
}

// Remove removes this owner's interrupted uploads to a key, and reports whether there was one.
func (u *Uploader) Remove(ctx context.Context, key string) (bool, error) {
	if u.Owner == "" {
		return false, nil
	}
	return u.Journal.RemoveOf(ctx, u.Owner, key)
}
