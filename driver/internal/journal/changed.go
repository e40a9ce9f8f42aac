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
	// maxPending is how many interrupted uploads an owner may have. The oldest go first.
	maxPending = 100

	// readConcurrency is how many records are read in parallel.
	readConcurrency = 32
)

// Changed notes that sessions have stored, moved or removed the objects of keys. A key that ends with a slash stands
// for all keys that begin with it. It makes no request: RemoveChanged removes the interrupted uploads to these keys.
func (j *Journal) Changed(keys ...string) { j.changes.add(keys...) }

// Begin notes an upload that a session of this process works on, and that began at a time. Call End of what it returns.
func (j *Journal) Begin(key string, began time.Time) *Open { return j.changes.begin(key, began) }

// IsChanged reports whether this process knows that the name of an upload, or a directory above it, has changed since
// the upload began.
func (j *Journal) IsChanged(r *Record) bool {
	j.changes.mu.Lock()
	defer j.changes.mu.Unlock()
	return j.changes.since(r.Key, r.Began)
}

// RemoveChanged removes the interrupted uploads to names that sessions of this process have changed, whoever owns them,
// and those that an owner has too many of. Call it every few seconds. It makes no request if nothing has changed. Else
// it makes one for each 1,000 records, and a few for each upload that it removes.
func (j *Journal) RemoveChanged(ctx context.Context) error {
	changed := map[string]bool{} // by what the names of records begin with
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
	wait := false // for a session that works on an upload whose name has changed
	limited := map[string][]s3api.Version{}
	for v, err := range j.bucket.Walk(ctx, j.prefix) {
		if err != nil {
			failed = errors.Join(failed, err)
			break
		}
		if j.isOpen(v.Key) { // its session knows
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

// isBelow reports whether a record is in one of some directories, or below one.
func isBelow(record string, directories map[string]bool) bool {
	for dir := path.Dir(record); dir != "."; dir = path.Dir(dir) {
		if directories[dir+s3object.Separator] {
			return true
		}
	}
	return false
}

// trim removes the oldest interrupted uploads of an owner, and all but the youngest of each key.
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
		j.log.Info("older interrupted upload removed, because its user has a newer one of the file, or too many",
			"key", r.Key, "bytes", size)
	}
	return nil
}

// readAll reads the records of a listing. It leaves out those that have ended since, and other objects.
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
