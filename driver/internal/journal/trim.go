package journal

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/base/panics"
)

const (
	// maxPending is how many interrupted uploads an owner may have. Trim removes the oldest.
	maxPending = 100

	// readConcurrency is how many records are read in parallel.
	readConcurrency = 32
)

// Trim removes the oldest interrupted uploads of an owner if there are more than 100, or if they hold more than
// maxBytes. 0 means no limit of bytes. One call counts for each owner; it counts again if other calls came meanwhile.
// Trim writes to the log of the caller.
func (j *Journal) Trim(ctx context.Context, log *slog.Logger, owner string, maxBytes int64) {
	if !j.beginTrim(owner) {
		return
	}
	for {
		if err := j.trimPending(ctx, log, owner, maxBytes); err != nil {
			log.Warn(
				"interrupted uploads of a user could not be counted; the next interrupted upload counts them again",
				"bucket", j.bucket.Name, "err", err)
		}
		if !j.trimAgain(owner) {
			return
		}
	}
}

// beginTrim tells whether the caller must count. Otherwise another call counts, and will count again.
func (j *Journal) beginTrim(owner string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, running := j.trimming[owner]
	j.trimming[owner] = running
	return !running
}

// trimAgain tells whether the caller must count again.
func (j *Journal) trimAgain(owner string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if again := j.trimming[owner]; again {
		j.trimming[owner] = false
		return true
	}
	delete(j.trimming, owner)
	return false
}

// readAll reads the records of a listing, and leaves out those that have ended since, and what is none.
func (j *Journal) readAll(ctx context.Context, listed []s3api.Version) ([]*Record, error) {
	records := make([]*Record, len(listed))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readConcurrency)
	for i, v := range listed {
		read := func() error {
			r, err := j.Read(ctx, v)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNoRecord) {
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

func (j *Journal) trimPending(ctx context.Context, log *slog.Logger, owner string, maxBytes int64) error {
	var listed []s3api.Version
	for v, err := range j.bucket.Walk(ctx, j.recordsOfOwner(owner)) {
		if err != nil {
			return err
		}
		if !j.isOpen(v.Key) {
			listed = append(listed, v)
		}
	}
	if len(listed) <= maxPending && maxBytes == 0 {
		return nil
	}
	records, err := j.readAll(ctx, listed)
	if err != nil {
		return err
	}
	records = slices.DeleteFunc(records, (*Record).inUse)
	slices.SortFunc(records, func(a, b *Record) int {
		return cmp.Or(b.ModTime.Compare(a.ModTime), cmp.Compare(b.Name, a.Name))
	})
	bytes := int64(0)
	for i, r := range records {
		size := max(r.TailOffset, 0) + r.TailSize
		if i < maxPending && (maxBytes == 0 || bytes+size <= maxBytes) {
			bytes += size
			continue
		}
		if err := j.Delete(ctx, r); err != nil && !errors.Is(err, ErrTakenOver) {
			return err
		}
		log.Info("oldest interrupted upload removed, because its user has too many",
			"bucket", j.bucket.Name, "key", r.Key, "bytes", size)
	}
	return nil
}
