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
	// maxPendingOfFile is the maximum number of records of one file that the driver reads, the latest ones first.
	maxPendingOfFile = 20

	// maxReported is the maximum number of pending uploads whose size a session remembers.
	maxReported = 1000
)

// A pending upload was interrupted, and its owner can resume it.
//
// S3 does not return the bytes of an open upload, so the parts stay in place, up to the first missing one. The bytes
// after the last whole part are in the body of the record, because S3 accepts no parts below 5 MiB except the last one.
// The position of a part follows from its number (see partSizeAt). A late part, whose session had not yet noticed that
// its client had disconnected, is therefore in the right place too.
//
// A pending upload is always at least one byte shorter than the data that its client has sent. Otherwise a client could
// find that all of its bytes are already stored and send nothing, and no session would complete the upload. A part
// therefore counts only if another byte has arrived after it. S3 may have further parts from an earlier session. They
// count once the resuming session has received their bytes again, and one more (see Journal.Resume).
type pending struct {
	journal.Record
	parts    []*s3api.Part
	end      int64                   // offset after the last part
	checksum types.ChecksumAlgorithm // checksum algorithm of the parts, if any

	ended     bool            // the file has changed since the upload began
	condition s3api.Condition // that the file has not changed since it was read here
}

// tail returns the number of bytes in the record that follow the parts. If the record has another offset, it is older
// than the parts, and its bytes do not count.
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

// inRecord returns the size of an upload that has no parts, so that all its bytes are in the record, and 0 for others.
func (p *pending) inRecord() int64 {
	if p.kind() != oneRequest {
		return 0
	}
	return p.size()
}

// A ResumeError is returned for a write at a wrong offset while an upload of this owner is pending, because the bytes
// of two uploads must not mix. It is also returned for the rest of an upload that has ended since the session learned
// of it. The owner can continue at Size, or begin a new upload with os.O_TRUNC. It wraps fs.ErrInvalid.
type ResumeError struct {
	Size    int64 // size of the pending upload, or of the file if no upload is pending
	Changed bool  // the file has changed, and no upload is pending
}

// Error implements error.
func (e *ResumeError) Error() string {
	if e.Changed {
		return fmt.Sprintf("file has changed and now has %d bytes: upload it again to replace it", e.Size)
	}
	return fmt.Sprintf(
		"an upload of this file was interrupted: resume it at offset %d, or upload the file again", e.Size)
}

// Unwrap returns an error that is both fs.ErrInvalid and EINVAL.
func (e *ResumeError) Unwrap() error { return s3error.ErrInvalid }

var _ contract.PendingError = (*ResumeError)(nil)

// ResumeOffset returns Size. It is for callers that must not import the driver, such as the package that chooses
// replies.
func (e *ResumeError) ResumeOffset() int64 { return e.Size }

// FileChanged returns Changed, for the same callers.
func (e *ResumeError) FileChanged() bool { return e.Changed }

// reported holds the sizes of the pending uploads that the client of a session knows about. An append resumes only such
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

// take returns and forgets the reported size of a pending upload, or -1 if none was reported. A report is used only
// once, when the session next opens the file for writing, even if that fails.
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

// FileSeen forgets the reported pending upload of a key. Call it when the session has learned that the file exists.
func (u *Uploader) FileSeen(key string) { u.reported.take(key) }

// Pending describes the latest interrupted upload to a key that this owner can resume, as a file of the size to resume
// at. The error is fs.ErrNotExist if no upload is pending or if the file exists. The Uploader remembers the reported
// size for the next append.
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

// resumeAt returns the pending upload that the owner can resume at an offset, or one without bytes if no upload is
// pending. The error is a ResumeError if all pending uploads have other sizes.
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
		case object.Key != "": // the client is about to send the rest of an upload that has ended
			return pending{}, &ResumeError{Size: object.Size, Changed: true}
		}
	}
	if all = slices.DeleteFunc(all, func(p *pending) bool { return p.ended }); len(all) == 0 {
		return pending{}, nil
	}
	return pending{}, &ResumeError{Size: all[0].size()}
}

// pendingUploads returns the interrupted uploads of this owner to a key, the latest first. If there are any, it also
// returns the current object, which may have ended some of them.
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

// readPending reads a record and lists the parts of its upload. It returns nil if the owner cannot resume the upload.
func (u *Uploader) readPending(ctx context.Context, key string, listed s3api.Version) (*pending, error) {
	r, err := u.Journal.Read(ctx, listed)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, journal.ErrNoRecord):
		// the upload has just ended, or the metadata of the record are lost
		return nil, nil
	case err != nil:
		return nil, err
	case r.Key != key, !r.CanResume(), u.Journal.IsChanged(r):
		return nil, nil
	case u.Inspect != nil && r.Upload != "" && !r.Staged: // it could be inspected only after it is visible
		return nil, nil
	}
	p := &pending{Record: *r}
	err = u.readParts(ctx, p)
	switch {
	case s3error.IsNoSuchUpload(err): // another session or program has completed or aborted the upload
		if err := u.Journal.Delete(ctx, r); err != nil && !errors.Is(err, journal.ErrTakenOver) {
			return nil, err
		}
		return nil, nil
	case err != nil:
		return nil, err
	}
	return p, nil
}

// readParts lists the parts of p, from the first one up to a gap or to the TailOffset of the record.
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

// resume continues the pending upload. It reads the bytes in the record first, because Journal.Resume overwrites them.
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
		// nothing to take over without a multipart upload; if two sessions resume it, each stores its own object
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
	if len(p.parts) > 0 {
		w.upload.last = &partResult{done: make(chan struct{})}
		close(w.upload.last.done)
	}
	return err
}

// endPending ends all interrupted uploads to the file, which has just been stored. The journal removes those that this
// session did not resume.
func (w *Writer) endPending() {
	w.removeResumed()
	if w.u.Owner != "" {
		w.u.Journal.Changed(w.key)
	}
}

// Remove removes this owner's interrupted uploads to a key, and reports whether it found any.
func (u *Uploader) Remove(ctx context.Context, key string) (bool, error) {
	if u.Owner == "" {
		return false, nil
	}
	return u.Journal.RemoveOf(ctx, u.Owner, key)
}
