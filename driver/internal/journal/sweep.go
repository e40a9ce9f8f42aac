package journal

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// isGone reports whether an error means that an upload has ended, or belongs to another session.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrTakenOver) || errors.Is(err, ErrNoRecord)
}

// Delete aborts the multipart upload that a record names, or deletes the object that a staged one has made. Then it
// deletes the record. It aborts none if the record names none, because other software may have begun each upload to
// that key. The error is ErrTakenOver if another session has the upload.
func (j *Journal) Delete(ctx context.Context, r *Record) error {
	if err := j.takeOver(ctx, r, ending); err != nil {
		return err
	}
	upload := r.MultipartUpload()
	completed := false
	if j.bucket.Profile.PersistentUploads && r.Upload != "" { // to abort it would remove the parts of the object
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

// removeIdle removes an upload that should end, and on which no session works. It returns the record if it did, and
// whether a session works on it.
func (j *Journal) removeIdle(
	ctx context.Context, listed s3api.Version, ends func(*Record) bool,
) (removed *Record, inUse bool, err error) {
	r, err := j.Read(ctx, listed)
	switch {
	case err == nil && !ends(r):
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

// RemoveOf removes an owner's interrupted uploads to a key, and reports whether there was one.
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

// clockSkew is by how much the clocks of this server and of S3 may differ before a sweep removes an upload late.
const clockSkew = time.Minute

// Sweep removes the uploads on which no session has worked for the duration age, and returns how many. An upload whose
// server may still live stays. Objects that are not records are deleted too, and do not count. The upload of such an
// object is not known, so it is left to the bucket's lifecycle rules. A sweep makes one request for each 1,000 records,
// and a few for each upload that it removes.
func (j *Journal) Sweep(ctx context.Context, age time.Duration) (int, error) {
	swept := 0
	var failed error
	now := time.Now()
	for v, err := range j.bucket.Walk(ctx, j.prefix) {
		if err != nil {
			return swept, errors.Join(failed, err)
		}
		if now.Sub(v.ModTime) < age-clockSkew || j.isOpen(v.Key) { // compared by the clock of S3 below
			continue
		}
		r, err := j.Read(ctx, v)
		switch {
		case errors.Is(err, ErrNoRecord):
			err = j.bucket.Delete(ctx, v.Key)
			j.log.Warn("object in the upload journal that is not a record removed; "+
				"has a tool moved the bucket and lost the metadata?", "record", v.Key, "since", v.ModTime, "err", err)
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

// IsEmpty reports whether no session works on an upload, and S3 has no record.
func (j *Journal) IsEmpty(ctx context.Context) (bool, error) {
	if j.Stats().Open > 0 {
		return false, nil
	}
	page, err := j.bucket.List(ctx, s3api.Listing{Prefix: j.prefix})
	return err == nil && len(page.Versions) == 0, err
}

// isOpen reports whether this process works on the upload of a record.
func (j *Journal) isOpen(name string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.open[name] != nil
}
