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

// An Inspection judges the bytes of one file. It is for one goroutine.
type Inspection interface {
	// Write waits until the inspector has taken the bytes. Its error is that of Verdict.
	io.Writer
	// Verdict says that the file is whole, and returns nil if it is accepted. The error is an fs.ErrInvalid if it is
	// refused, and another one if it could not be judged.
	Verdict() error
	// Close ends the judgement.
	Close()
}

// unjudged is the inspection of bytes that no inspector gets, or gets later.
type unjudged struct{}

func (unjudged) Write(p []byte) (int, error) { return len(p), nil }
func (unjudged) Verdict() error              { return nil }
func (unjudged) Close()                      {}

// stages reports whether a multipart upload makes an object below the reserved prefix, which S3 copies after the
// verdict.
// That costs four requests and a copy. It must, where a session may resume the upload, because S3 returns no bytes of
// an open upload. It also must where a refused file goes elsewhere, because S3 completes an upload under its own key
// only.
func (u *Uploader) stages(resumable bool) bool {
	return u.Inspect != nil && u.Journal != nil && (resumable || u.Quarantine != "")
}

// beginInspection sends the first part to the inspector. The next bytes follow as they come. A file of one buffer is
// sent when the client has sent all: so a slow client makes no inspector wait.
func (w *Writer) beginInspection() error {
	if w.u.Inspect == nil {
		return nil
	}
	w.part.Seal()
	w.inspection = w.u.Inspect(w.ctx, w.name)
	_, err := io.Copy(w.inspection, io.NewSectionReader(w.part, 0, w.part.Len()))
	return err
}

// verdict waits for the verdict on the whole file, and makes no request to S3. It returns nil for staged parts that an
// earlier session has begun, which judge reads from S3.
func (w *Writer) verdict() error {
	if w.kind == oneRequest {
		if err := w.beginInspection(); err != nil {
			return err
		}
	}
	return w.inspection.Verdict()
}

// commitStaged makes the object of a staged upload, which no user sees, and copies it to the file when the inspector
// has accepted all of it. An upload of which the inspector has got all bytes is judged first, so that S3 never makes an
// object of a refused one. Once there is an object, no session can resume the upload, and Close removes what there is.
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
	w.phase = asked
	_, err := w.upload.complete(w.ctx, s3api.Condition{}, w.isOurs)
	if w.phase = w.phase.settled(err, live, assembled); err != nil {
		return err
	}
	w.owner = ""
	staged, _, err := w.u.Bucket.Head(w.ctx, w.upload.upload.Key)
	if err == nil && staged.Size != w.offset {
		err = s3error.ErrNoResult
	}
	if err == nil && w.resumed.Upload != "" {
		verdict = w.judge(staged)
	}
	switch {
	case err != nil:
		return err
	case w.quarantines(verdict):
		return w.quarantine(verdict, func(ctx context.Context, key string) error {
			_, err := w.u.copyByParts(ctx, staged, &w.attributes, key, s3api.Condition{}, func() {})
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

// judge has a stored object judged.
func (w *Writer) judge(v s3api.Version) error {
	if w.u.Inspect == nil { // it was begun while there was an inspector
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

// quarantines reports whether a file with this verdict is stored in the quarantine.
func (w *Writer) quarantines(verdict error) bool {
	return w.u.Quarantine != "" && errors.Is(verdict, fs.ErrInvalid)
}

// quarantineBuffer stores a refused file of one buffer in the quarantine, if there is one, and returns the verdict. It
// also gets the verdicts on uploads that are not staged, which have none.
func (w *Writer) quarantineBuffer(verdict error) error {
	if w.kind != oneRequest || !w.quarantines(verdict) {
		return verdict
	}
	return w.quarantine(verdict, func(ctx context.Context, key string) error {
		_, err := w.putAs(ctx, key, s3api.Condition{})
		return err
	})
}

// quarantine lets store put a refused file into the quarantine, and returns the verdict. It goes on when the client has
// gone.
func (w *Writer) quarantine(verdict error, store func(ctx context.Context, key string) error) error {
	ctx, done := context.WithTimeout(context.WithoutCancel(w.ctx), commitTimeout)
	defer done()
	key := w.u.quarantineKey(w.key)
	if err := store(ctx, key); err != nil {
		w.u.Log.Warn("refused file could not be stored in the quarantine",
			"bucket", w.u.Bucket.Name, "key", w.key, "quarantine", key, "err", err)
		return verdict
	}
	return &quarantinedError{verdict, w.u.Bucket.URI(key)}
}

// A quarantinedError is the verdict on a file that is in the quarantine.
type quarantinedError struct {
	verdict error
	uri     string
}

func (e *quarantinedError) Error() string { return e.verdict.Error() + " (quarantine: " + e.uri + ")" }

func (e *quarantinedError) Unwrap() error { return e.verdict }

var _ contract.QuarantinedError = (*quarantinedError)(nil)

// QuarantineURI is where the file is. It is for callers that import no driver.
func (e *quarantinedError) QuarantineURI() string { return e.uri }

// quarantineKey is where a refused file goes: below the time and a random name, its key, or the end of a long one.
func (u *Uploader) quarantineKey(key string) string {
	prefix := u.Quarantine + time.Now().UTC().Format("20060102T150405Z-") + rand.Text() + s3object.Separator
	if most := s3object.MaxKeyBytes - len(prefix); len(key) > most {
		key = strings.ToValidUTF8(key[len(key)-max(most, 0):], "")
	}
	return prefix + key
}
