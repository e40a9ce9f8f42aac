package journal

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/panics"
)

const (
	// removeAfter is when the journal removes the uploads that a stored file replaces. Until then it collects others.
	removeAfter = 10 * time.Second

	// maxReplaced is how many stored files the journal collects. With more it does not wait.
	maxReplaced = 10_000

	// ClockSlack bounds the error of an age by two times of S3, which are whole seconds.
	ClockSlack = 2 * time.Second
)

// A stored is a file that a session has stored. It replaces the interrupted uploads to its name.
type stored struct {
	object s3api.Stored
	at     time.Time // when S3 had answered
	look   time.Time // the next look for its uploads, zero for the first
}

// replaces tells whether an upload was begun before the file was stored. One that was interrupted within the same
// seconds was begun later only if its record names the file.
func (s *stored) replaces(r *Record) bool {
	return r.age >= time.Since(s.at)-ClockSlack && !s.object.IsIn(r.Base)
}

// A removal is a call of RemoveReplaced to come, or one that runs.
type removal struct {
	timer  *time.Timer
	cancel context.CancelFunc
	ended  chan struct{}
}

// Stored says that an owner has stored a file by an object, which replaces the owner's interrupted uploads to the key.
// It makes no request: the journal removes them ten seconds later, by RemoveReplaced.
func (j *Journal) Stored(ctx context.Context, owner, key string, object s3api.Stored) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.replaced[j.recordsOf(owner, key)] = stored{object: object, at: time.Now()}
	j.removeLater(context.WithoutCancel(ctx))
	if r := j.removing; r != nil && len(j.replaced) >= maxReplaced && r.timer.Stop() {
		r.timer.Reset(0)
	}
}

// removeLater calls RemoveReplaced soon, unless that will be done anyway. The caller holds the lock, and gives a
// context that does not end with its session.
func (j *Journal) removeLater(ctx context.Context) {
	if j.closed || j.removing != nil {
		return
	}
	once, cancel := context.WithCancel(ctx)
	r := &removal{cancel: cancel, ended: make(chan struct{})}
	r.timer = time.AfterFunc(removeAfter, func() {
		defer close(r.ended)
		defer cancel()
		err := panics.Catch(func() error { return j.RemoveReplaced(once) })
		if err != nil && once.Err() == nil {
			j.log.Warn("interrupted uploads to names of new files could not be removed; the server tries again", "err", err)
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.removing = nil; len(j.replaced) > 0 {
			j.removeLater(ctx)
		}
	})
	j.removing = r
}

// Close calls RemoveReplaced, so that a program that ends leaves nothing to others, and looks also at the uploads whose
// next look is later. It may be called again.
func (j *Journal) Close(ctx context.Context) error {
	j.mu.Lock()
	j.closed = true
	r := j.removing
	j.mu.Unlock()
	if r != nil {
		if r.timer.Stop() {
			close(r.ended) // for the next Close
		}
		r.cancel()
		<-r.ended
	}
	j.mu.Lock()
	for prefix, s := range j.replaced {
		s.look = time.Time{}
		j.replaced[prefix] = s
	}
	j.mu.Unlock()
	return j.RemoveReplaced(ctx)
}

// IsReplaced tells whether this process knows of a file that replaces an upload.
func (j *Journal) IsReplaced(r *Record) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	s, ok := j.replaced[path.Dir(r.Name)+s3object.Separator]
	return ok && s.replaces(r)
}

// RemoveOlder removes the interrupted uploads of an owner to a key, except the youngest, whose record has this name.
func (j *Journal) RemoveOlder(ctx context.Context, owner, key, youngest string) error {
	prefix := j.recordsOf(owner, key)
	j.mu.Lock()
	before, known := j.replaced[prefix]
	j.mu.Unlock()
	records, err := j.Records(ctx, owner, key)
	if err != nil {
		return err
	}
	records = slices.DeleteFunc(records, func(v s3api.Version) bool { return v.Key == youngest })
	_, inUse, err := j.DeleteIdle(ctx, records)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if known && !inUse && j.replaced[prefix] == before { // the youngest was begun after the file was stored
		delete(j.replaced, prefix)
	}
	return nil
}

// RemoveReplaced removes the interrupted uploads to the names of the files that sessions of this process have stored
// since the last call. It makes no request where they have stored none, and seldom more than one where there are no
// interrupted uploads. An upload on which a session works may be that of a server that has died: a call after two
// minutes looks at it again.
func (j *Journal) RemoveReplaced(ctx context.Context) error {
	j.mu.Lock()
	files, now := map[string]stored{}, time.Now()
	for prefix, s := range j.replaced {
		if !now.Before(s.look) {
			files[prefix] = s
		}
	}
	j.mu.Unlock()
	stay := map[string]bool{}
	prefixes := slices.Sorted(maps.Keys(files))
	unseen, err := j.recordsBelow(ctx, prefixes, func(prefix string, record s3api.Version) error {
		s := files[prefix]
		used, err := j.removeReplaced(ctx, record, &s)
		stay[prefix] = stay[prefix] || used || err != nil
		return err
	})
	if !errors.Is(err, fs.ErrPermission) {
		for _, prefix := range unseen {
			stay[prefix] = true
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for prefix, s := range files {
		switch {
		case j.replaced[prefix] != s: // stored once more meanwhile
		case stay[prefix] && len(j.replaced) < maxReplaced:
			s.look = now.Add(missedHeartbeats * heartbeatInterval)
			j.replaced[prefix] = s
		default:
			delete(j.replaced, prefix)
		}
	}
	return err
}

// removeReplaced removes an upload that a file replaces, and tells whether a session works on it.
func (j *Journal) removeReplaced(ctx context.Context, listed s3api.Version, s *stored) (used bool, err error) {
	if j.isOpen(listed.Key) {
		return false, nil // its session will see the file
	}
	r, err := j.Read(ctx, listed)
	if err == nil {
		switch {
		case r.inUse():
			return !s.object.IsIn(r.Base), nil
		case s.replaces(r):
			err = j.Delete(ctx, r)
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrTakenOver) || errors.Is(err, ErrNoRecord) {
		err = nil
	}
	return false, err
}

// recordsBelow calls found for the records below each of these prefixes, which are in order: the first thousand. There
// are few records, so that one request finds those of many prefixes. After an error of S3 it returns the prefixes of
// which it knows nothing.
func (j *Journal) recordsBelow(
	ctx context.Context, prefixes []string, found func(prefix string, record s3api.Version) error,
) (unseen []string, failed error) {
	for len(prefixes) > 0 {
		l := s3api.Listing{Prefix: j.prefix, After: prefixes[0]}
		if len(prefixes) == 1 || !j.bucket.Profile.SortedListings {
			l = s3api.Listing{Prefix: prefixes[0]}
		}
		page, err := j.bucket.List(ctx, l)
		if err != nil {
			return prefixes, errors.Join(failed, err)
		}
		end := page.Last()
		for first := true; len(prefixes) > 0; first = false {
			prefix := prefixes[0]
			whole := l.After != "" && (page.Next == "" || prefix < end && !strings.HasPrefix(end, prefix))
			if !first && !whole {
				break
			}
			for _, record := range page.Versions {
				if strings.HasPrefix(record.Key, prefix) {
					failed = errors.Join(failed, found(prefix, record))
				}
			}
			prefixes = prefixes[1:]
		}
	}
	return nil, failed
}
