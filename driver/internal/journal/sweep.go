package journal

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// Delete aborts the multipart upload that a record names, or deletes the object that a staged one has made. Then it
// deletes the record. It aborts none where the record names none: no other upload to that key is certain to be the one
// that the record was made for. The error is ErrTakenOver if another session has the upload.
//
// An upload that is not settled yet can be resumed no more, and a later sweep removes it.
func (j *Journal) Delete(ctx context.Context, r *Record) error {
	_, err := j.remove(ctx, r)
	return err
}

// remove is Delete, and tells whether S3 has completed the upload.
func (j *Journal) remove(ctx context.Context, r *Record) (completed bool, err error) {
	before := *r
	if !before.Settled() && before.state == stateEnding {
		return false, nil
	}
	if err := j.takeOver(ctx, r, stateEnding); err != nil || !before.Settled() {
		return false, err
	}
	completed, err = j.IsCompleted(ctx, &before)
	if err == nil && !completed && r.Upload != "" {
		err = j.bucket.AbortUpload(ctx, r.MultipartUpload())
	}
	if err == nil && completed {
		err = j.deleteStaged(ctx, r)
	}
	if err != nil {
		return completed, err
	}
	return completed, j.bucket.Delete(ctx, r.Name)
}

// IsCompleted looks whether the object of an upload is there, if a session may have asked S3 to complete it.
func (j *Journal) IsCompleted(ctx context.Context, r *Record) (bool, error) {
	if r.Upload == "" || !r.mayBeCompleted() {
		return false, nil
	}
	return j.bucket.IsCompleted(ctx, r.MultipartUpload())
}

// deleteStaged deletes the object that a staged upload has made.
func (j *Journal) deleteStaged(ctx context.Context, r *Record) error {
	if !r.Staged {
		return nil
	}
	return j.bucket.Delete(ctx, r.MultipartUpload().Key)
}

// Forget deletes the record of an upload that is complete, or does not exist any more. The error is ErrTakenOver if
// another session has the upload.
func (j *Journal) Forget(ctx context.Context, r *Record) error {
	if err := j.takeOver(ctx, r, stateEnding); err != nil {
		return err
	}
	if err := j.deleteStaged(ctx, r); err != nil {
		return err
	}
	return j.bucket.Delete(ctx, r.Name)
}

// DeleteIdle removes the uploads on which no session works, and tells whether it removed one, and whether one is in
// use.
func (j *Journal) DeleteIdle(ctx context.Context, records []s3api.Version) (removed, inUse bool, failed error) {
	for _, v := range records {
		r, err := j.Read(ctx, v)
		if err == nil && r.inUse() {
			inUse = true
			continue
		}
		if err == nil {
			err = j.Delete(ctx, r)
		}
		switch {
		case err == nil:
			removed = true
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrTakenOver), errors.Is(err, ErrNoRecord):
		default:
			failed = errors.Join(failed, err)
		}
	}
	return removed, inUse, failed
}

// clockSkew is by how much the clocks of this server and of S3 may differ before a sweep removes an upload late.
const clockSkew = time.Minute

// Sweep removes the uploads on which no session has worked for the duration age, and returns how many. An upload whose
// server may still live, or that S3 may yet complete, stays for ten minutes at least. Objects that are no records go
// too, and do not count. A sweep takes one request for each 1,000 records, and four or five for each upload that it
// removes.
func (j *Journal) Sweep(ctx context.Context, age time.Duration) (int, error) {
	swept := 0
	var failed error
	now := time.Now()
	for v, err := range j.bucket.Walk(ctx, j.prefix) {
		if err != nil {
			return swept, err
		}
		if now.Sub(v.ModTime) < age-clockSkew || j.isOpen(v.Key) { // sweep checks the age again by the clock of S3
			continue
		}
		ended, err := j.sweep(ctx, v, age)
		failed = errors.Join(failed, err)
		if ended {
			swept++
			j.swept.Add(1)
		}
	}
	return swept, failed
}

// sweep removes an upload unless a session has worked on it since.
func (j *Journal) sweep(ctx context.Context, listed s3api.Version, age time.Duration) (bool, error) {
	r, err := j.read(ctx, listed)
	switch {
	case errors.Is(err, fs.ErrNotExist): // another server was faster
		return false, nil
	case err != nil:
		return false, err
	case r.age < age, r.inUse():
		return false, nil
	case r.state == "":
		return false, j.removeBroken(ctx, r)
	case !r.Settled():
		return false, nil
	}
	since := r.ModTime
	switch err := j.Delete(ctx, r); {
	case errors.Is(err, ErrTakenOver):
		return false, nil
	case err != nil:
		return false, err
	}
	j.log.Info("abandoned upload removed", "key", r.Key, "upload", r.Upload, "since", since)
	return true, nil
}

// removeBroken deletes an object that is no record. Which upload it belonged to is not known, so that one is left to
// the bucket's lifecycle rules.
func (j *Journal) removeBroken(ctx context.Context, r *Record) error {
	if err := j.bucket.Delete(ctx, r.Name); err != nil {
		return err
	}
	j.log.Warn(
		"object in the upload journal that is not a record removed; has a tool moved the bucket and lost the metadata?",
		"record", r.Name, "since", r.ModTime)
	return nil
}

// isOpen tells whether this process works on the upload of a record.
func (j *Journal) isOpen(name string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.open[name] != nil
}
