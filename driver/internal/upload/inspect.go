package upload

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/contract"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// An Inspection inspects the bytes of one file, for example with a virus scanner. It must be used by one goroutine
// only.
type Inspection interface {
	// Write sends bytes to the inspector. It blocks until the inspector has accepted them. If it fails, Verdict returns
	// the same error.
	io.Writer
	// Verdict must be called after the last byte. It returns nil if the inspector accepts the file, an error that wraps
	// fs.ErrInvalid if the inspector rejects it, and another error if the inspection failed.
	Verdict() error
	// Close ends the inspection and releases its resources.
	Close()
}

// noInspection accepts everything. It is used without an inspector, and until the inspection starts.
type noInspection struct{}

func (noInspection) Write(p []byte) (int, error) { return len(p), nil }
func (noInspection) Verdict() error              { return nil }
func (noInspection) Close()                      {}

// needsStaging reports whether a multipart upload has to create a hidden object below the reserved prefix, which S3
// copies to the file after the verdict. Staging costs four requests and a copy. It is necessary if a session may resume
// the upload, because S3 does not return the bytes of an open upload to the inspector. It is also necessary if rejected
// files go to the quarantine, because S3 completes an upload only under its own key.
func (u *Uploader) needsStaging(resumable bool) bool {
	return u.Inspect != nil && u.Journal != nil && (resumable || u.Quarantine != "")
}

// beginInspection starts the inspection with the bytes in the buffer. A larger file is then inspected while it arrives.
// A file that fits into one buffer is inspected only when it is complete, so a slow client does not block the
// inspector.
func (w *Writer) beginInspection() error {
	if w.u.Inspect == nil {
		return nil
	}
	w.part.Seal()
	w.inspection = w.u.Inspect(w.ctx, w.name)
	_, err := io.Copy(w.inspection, io.NewSectionReader(w.part, 0, w.part.Len()))
	return err
}

// verdict checks the promised hash, and waits for the verdict of the inspector on the whole file. It makes no request
// to S3. For a staged upload that an earlier session began, it returns nil, because inspectObject inspects the staged
// object later.
func (w *Writer) verdict() error {
	if err := w.promise.check(); err != nil {
		return err
	}
	if w.kind == oneRequest {
		if err := w.beginInspection(); err != nil {
			return err
		}
	}
	return w.inspection.Verdict()
}

// commitStaged creates the hidden object of a staged upload and copies it to the file if the inspector accepts it. If
// this session has received all bytes, the verdict comes first, so that S3 never creates an object from a rejected
// file. Once the staged object exists, the upload cannot be resumed any more, and Close removes the object.
func (w *Writer) commitStaged() error {
	if err := w.u.BeforeCommit(w.ctx); err != nil {
		return err
	}
	verdict := w.verdict()
	if verdict != nil && !w.quarantines(verdict) {
		return verdict
	}
	if err := w.upload.entry.ConfirmHolder(w.ctx); err != nil {
		return err
	}
	w.phase = committing
	_, err := w.upload.complete(w.ctx, s3api.Condition{}, w.isOwn)
	if w.phase = w.phase.settled(err, live, assembled); err != nil {
		return err
	}
	w.owner = ""
	staged, _, err := w.u.Bucket.Head(w.ctx, w.upload.upload.Key)
	if err == nil && staged.Size != w.offset {
		err = s3error.ErrNoResult
	}
	if err == nil && w.resumed.Upload != "" {
		verdict = w.inspectObject(staged)
	}
	switch {
	case err != nil:
		return err
	case w.quarantines(verdict):
		return w.quarantine(verdict, func(ctx context.Context, key string) error {
			_, err := w.u.copyByParts(ctx, staged, w.attributes.Unlocked(), key, s3api.Condition{}, func() {})
			return err
		})
	case verdict != nil:
		return verdict
	}
	w.change.Send(w.offset)
	w.stored, err = w.u.copyByParts(
		w.ctx, staged, &w.attributes, w.key, w.condition, func() { w.phase = copying })
	if w.phase = w.phase.settled(err, assembled, stored); err == nil {
		w.upload.abort(assembled)
	}
	return err
}

// inspectObject downloads an object and inspects it.
func (w *Writer) inspectObject(v s3api.Version) error {
	if w.u.Inspect == nil { // the upload began before the inspector was removed from the configuration
		return nil
	}
	inspection := w.u.Inspect(w.ctx, w.name)
	defer inspection.Close()
	object := file.NewRange(w.ctx, w.u.Bucket, v, 0, v.Size)
	defer object.Close()
	if _, err := io.Copy(inspection, object); err != nil {
		return err
	}
	return inspection.Verdict()
}

// quarantines reports whether a file with this verdict has to be stored in the quarantine.
func (w *Writer) quarantines(verdict error) bool {
	return w.u.Quarantine != "" && errors.Is(verdict, fs.ErrInvalid)
}

// quarantineBuffer stores a rejected file that fits into one buffer in the quarantine, if one is configured, and
// returns the verdict. For multipart uploads it only returns the verdict.
func (w *Writer) quarantineBuffer(verdict error) error {
	if w.kind != oneRequest || !w.quarantines(verdict) {
		return verdict
	}
	return w.quarantine(verdict, func(ctx context.Context, key string) error {
		_, err := w.putAs(ctx, key, w.attributes.Unlocked(), s3api.Condition{})
		return err
	})
}

// quarantine calls store with the key of a rejected file in the quarantine, and returns the verdict. It continues if
// the client disconnects.
func (w *Writer) quarantine(verdict error, store func(ctx context.Context, key string) error) error {
	ctx, done := context.WithTimeout(context.WithoutCancel(w.ctx), commitTimeout)
	defer done()
	key := w.u.quarantineKey(w.key)
	if err := store(ctx, key); err != nil {
		w.u.Log.Warn("rejected file could not be stored in the quarantine",
			"bucket", w.u.Bucket.Name, "key", w.key, "quarantine", key, "err", err)
		return verdict
	}
	return &quarantinedError{verdict, w.u.Bucket.URI(key)}
}

// A quarantinedError is the verdict on a file that was stored in the quarantine.
type quarantinedError struct {
	verdict error
	uri     string
}

func (e *quarantinedError) Error() string { return e.verdict.Error() + " (quarantine: " + e.uri + ")" }

func (e *quarantinedError) Unwrap() error { return e.verdict }

var _ contract.QuarantinedError = (*quarantinedError)(nil)

// QuarantineURI returns the URI of the file. It is for callers that must not import the driver.
func (e *quarantinedError) QuarantineURI() string { return e.uri }

// quarantineKey returns the key of a rejected file in the quarantine: the prefix, the time, a random name, and the
// original key. If the result would be too long, only the end of the original key is used.
func (u *Uploader) quarantineKey(key string) string {
	prefix := u.Quarantine + time.Now().UTC().Format("20060102T150405Z-") + rand.Text() + s3object.Separator
	if room := s3object.MaxKeyBytes - len(prefix); len(key) > room {
		key = strings.ToValidUTF8(key[len(key)-max(room, 0):], "")
	}
	return prefix + key
}
