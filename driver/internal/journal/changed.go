package journal

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/panics"
)

const (
	// maxPending is the maximum number of interrupted uploads of an owner. When there are more, the oldest are removed.
	maxPending = 100

	// readConcurrency is the number of records that are read in parallel.
	readConcurrency = 32
)

// Changed must be called after a session has stored, moved or removed the objects of keys. A key that ends with a slash
// includes all keys that begin with it. Changed makes no request: RemoveChanged removes the interrupted uploads to
// these keys later.
func (j *Journal) Changed(keys ...string) { j.changes.add(keys...) }

// Begin registers an upload of a session of this process, so that the session notices changes of the key. The caller
// must call End on the result.
func (j *Journal) Begin(key string, began time.Time) *ActiveUpload {
	return j.changes.begin(key, began)
}

// IsChanged reports whether a session of this process has changed the key of an upload, or a directory above it, since
// the upload began.
func (j *Journal) IsChanged(r *Record) bool {
	j.changes.mu.Lock()
	defer j.changes.mu.Unlock()
	return j.changes.since(r.Key, r.Began)
}

// RemoveChanged removes the interrupted uploads to keys that sessions of this process have changed, regardless of their
// owner. It also removes the oldest uploads of owners that have too many. Call it every few seconds. If nothing has
// changed, it makes no request. Otherwise it makes one request for each 1,000 records and a few for each upload that it
// removes.
func (j *Journal) RemoveChanged(ctx context.Context) error {
	changed := map[string]bool{} // by the prefix of the names of records
	for _, key := range j.changes.below(j.root, 0) {
		changed[j.recordsOf(key)] = true
	}
	j.mu.Lock()
	limits := j.limits
	j.limits = map[string]int64{}
	j.mu.Unlock()
	if len(changed)+len(limits) == 0 {
		return nil
	}
	var failed error
	wait := false // some session is still working on an upload to a changed key
	limited := map[string][]s3api.Version{}
	for v, err := range j.bucket.Walk(ctx, j.prefix) {
		if err != nil {
			failed = errors.Join(failed, err)
			break
		}
		if j.isOpen(v.Key) { // its session notices the change itself, see ActiveUpload
			continue
		}
		owner, _ := ownerOf(v.Key)
		if _, exists := limits[owner]; exists {
			limited[owner] = append(limited[owner], v)
		}
		if isBelow(v.Key, changed) {
			_, inUse, err := j.removeIdle(ctx, v, j.IsChanged)
			wait, failed = wait || inUse, errors.Join(failed, err)
		}
	}
	for owner, records := range limited {
		failed = errors.Join(failed, j.trim(ctx, records, limits[owner]))
	}
	if failed == nil && !wait {
		j.changes.below(j.root, rememberFor)
	}
	return failed
}

// isBelow reports whether the name of a record is below one of the directories, at any depth.
func isBelow(record string, directories map[string]bool) bool {
	for dir := path.Dir(record); dir != "."; dir = path.Dir(dir) {
		if directories[dir+s3object.Separator] {
			return true
		}
	}
	return false
}

// trim removes the interrupted uploads of an owner that exceed the limits, the oldest first, and keeps only the latest
// upload to each key.
func (j *Journal) trim(ctx context.Context, listed []s3api.Version, maxBytes int64) error {
	records, err := j.readAll(ctx, listed)
	if err != nil {
		return err
	}
	records = slices.DeleteFunc(records, (*Record).inUse)
	slices.SortFunc(records, func(a, b *Record) int {
		return cmp.Or(b.ModTime.Compare(a.ModTime), cmp.Compare(b.Name, a.Name))
	})
	keys, bytes := map[string]bool{}, int64(0)
	for _, r := range records {
		size := max(r.TailOffset, 0) + r.TailSize
		if !keys[r.Key] && len(keys) < maxPending && (maxBytes == 0 || bytes+size <= maxBytes) {
			keys[r.Key] = true
			bytes += size
			continue
		}
		if err := j.Delete(ctx, r); err != nil && !errors.Is(err, ErrTakenOver) {
			return err
		}
		j.log.Info("older interrupted upload removed; the user has a newer upload of the file, or too many uploads",
			"key", r.Key, "bytes", size)
	}
	return nil
}

// readAll reads the listed records in parallel. It skips records that have been removed since the listing, and objects
// that are not records.
func (j *Journal) readAll(ctx context.Context, listed []s3api.Version) ([]*Record, error) {
	records := make([]*Record, len(listed))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readConcurrency)
	for i, v := range listed {
		read := func() error {
			r, err := j.Read(ctx, v)
			if isGone(err) {
				return nil
			}
			records[i] = r
			return err
		}
		group.Go(func() error { return panics.Catch(read) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(records, func(r *Record) bool { return r == nil }), nil
}
