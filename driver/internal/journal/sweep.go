package journal

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// isGone reports whether an error means that the upload has ended or belongs to another session.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrTakenOver) || errors.Is(err, ErrNoRecord)
}

// Delete aborts the multipart upload of a record, deletes the object that a staged upload may have created, and then
// deletes the record. If the record has no upload ID, Delete aborts no upload, because any upload to that key may
// belong to other software. The error is ErrTakenOver if another session has the upload.
func (j *Journal) Delete(ctx context.Context, r *Record) error {
	if err := j.takeOver(ctx, r, ending); err != nil {
		return err
	}
	upload := r.MultipartUpload()
	completed := false
	if j.bucket.Profile.PersistentUploads && r.Upload != "" { // an abort would remove the parts of a completed object
		var err error
		if completed, err = j.bucket.IsCompleted(ctx, upload); err != nil {
			return err
		}
	}
	if r.Upload != "" && !completed {
		if err := j.bucket.AbortUpload(ctx, upload); err != nil {
			return err
		}
	}
	if r.Staged {
		if err := j.bucket.Delete(ctx, upload.Key); err != nil {
			return err
		}
	}
	return j.bucket.Delete(ctx, r.Name)
}

// removeIdle removes the upload of a record if shouldRemove returns true for it and no session works on it. It returns
// the record if it was removed, and whether it was not removed because it is in use.
func (j *Journal) removeIdle(
	ctx context.Context, listed s3api.Version, shouldRemove func(*Record) bool,
) (removed *Record, inUse bool, err error) {
	r, err := j.Read(ctx, listed)
	switch {
	case err == nil && !shouldRemove(r):
		return nil, false, nil
	case err == nil && r.inUse():
		return nil, true, nil
	case err == nil:
		err = j.Delete(ctx, r)
	}
	switch {
	case isGone(err):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	return r, false, nil
}

// RemoveOf removes an owner's interrupted uploads to a key, and reports whether it found any.
func (j *Journal) RemoveOf(ctx context.Context, owner, key string) (found bool, failed error) {
	listed, err := j.Records(ctx, owner, key)
	if err != nil {
		return false, err
	}
	for _, v := range listed {
		r, _, err := j.removeIdle(ctx, v, func(r *Record) bool { return r.Key == key })
		found, failed = found || r != nil, errors.Join(failed, err)
	}
	return found, failed
}

// clockSkew is the difference between the clocks of this server and S3 that Sweep tolerates. If the clock of this
// server is further behind, sweeps remove uploads late.
const clockSkew = time.Minute

// Sweep removes the uploads that no session has worked on for the given age, and returns their number. It leaves
// uploads alone whose session may still be alive. It also deletes objects that are not records, which do not count;
// their uploads are unknown and are left to the lifecycle rules of the bucket. A sweep makes one request for each 1,000
// records and a few for each upload that it removes.
func (j *Journal) Sweep(ctx context.Context, age time.Duration) (int, error) {
	swept := 0
	var failed error
	now := time.Now()
	for v, err := range j.bucket.Walk(ctx, j.prefix) {
		if err != nil {
			return swept, errors.Join(failed, err)
		}
		if now.Sub(v.ModTime) < age-clockSkew || j.isOpen(v.Key) { // r.age below uses the clock of S3 instead
			continue
		}
		r, err := j.Read(ctx, v)
		switch {
		case errors.Is(err, ErrNoRecord):
			err = j.bucket.Delete(ctx, v.Key)
			j.log.Warn("removed an object from the upload journal that is not a record; "+
				"a tool may have copied the bucket without its metadata", "record", v.Key, "since", v.ModTime, "err", err)
		case err != nil || r.age < age || r.inUse():
		default:
			if err = j.Delete(ctx, r); err == nil {
				swept++
				j.swept.Add(1)
				j.log.Info("abandoned upload removed", "key", r.Key, "upload", r.Upload, "since", r.ModTime)
			}
		}
		if !isGone(err) {
			failed = errors.Join(failed, err)
		}
	}
	return swept, failed
}

// IsEmpty reports whether the journal has no records and this process works on no upload.
func (j *Journal) IsEmpty(ctx context.Context) (bool, error) {
	if j.Stats().Open > 0 {
		return false, nil
	}
	page, err := j.bucket.List(ctx, s3api.Listing{Prefix: j.prefix})
	return err == nil && len(page.Versions) == 0, err
}

// isOpen reports whether this process works on the upload with this record.
func (j *Journal) isOpen(name string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.open[name] != nil
}
