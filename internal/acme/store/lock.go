package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/panics"
	"github.com/babelftp/babelftp/internal/s3error"
)

// times are those of locks. Tests have shorter ones.
type times struct {
	// heartbeat is how often a server writes a lock that it has. After expiry without a new version, its server counts as dead.
	heartbeat, expiry time.Duration
	// settle is how long a server waits before it looks whether it has a lock. poll is the time between two attempts to get one.
	settle, poll time.Duration
}

func defaultTimes() times {
	return times{heartbeat: 10 * time.Second, expiry: 40 * time.Second, settle: time.Second, poll: time.Second}
}

// A lock is an object with the identifier of its holder. Each heartbeat writes a new version, so that its ETag changes. How old a version is, each
// server measures by itself: clocks may differ. Where the answer to a write is lost, the holder reads the lock, and finds its identifier.
//
// A lock is taken by a conditional write: If-None-Match where there is none, and If-Match on the version of a dead server. Some S3 servers ignore
// conditions or refuse them. So a server looks again after a moment, and the one that wrote last has the lock. There two servers can have it
// only if one of them takes longer than settle from its look to its write. Then both obtain a certificate, and the later one stays.
type lock struct {
	id    string             // of this holder, what each version begins with
	etag  string             // of the last version that is known
	stop  context.CancelFunc // of the heartbeats
	ended chan struct{}      // closed when they have ended
}

// A sighting is a version of a lock, and when this server first saw it.
type sighting struct {
	etag string
	at   time.Time
}

func lockKey(name string) string { return "locks/" + strings.ReplaceAll(name, "/", "_") }

// Lock implements [certmagic.Locker]. It waits until no other server has the lock, or that server has died.
func (s *Store) Lock(ctx context.Context, name string) error {
	var seen sighting
	for {
		l, err := s.tryLock(ctx, name, &seen)
		if err != nil {
			return err
		}
		if l != nil {
			s.hold(ctx, name, l)
			return nil
		}
		if err := sleep(ctx, s.times.poll); err != nil {
			return err
		}
	}
}

// tryLock takes a lock, if that is possible now. It returns nil where another server has it.
func (s *Store) tryLock(ctx context.Context, name string, seen *sighting) (*lock, error) {
	put := s3.PutObjectInput{}
	head, err := s.head(ctx, lockKey(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		put.IfNoneMatch = aws.String("*")
	case err != nil:
		return nil, err
	default:
		if now := aws.ToString(head.ETag); now != seen.etag {
			*seen = sighting{now, time.Now()}
		}
		if time.Since(seen.at) < s.times.expiry {
			return nil, nil
		}
		put.IfMatch = head.ETag
		s.log.Warn("ACME: a server has left a lock; this server takes it", "lock", s.String()+lockKey(name))
	}
	l := &lock{id: rand.Text()}
	if err := s.write(ctx, name, l, put); err != nil || l.etag == "" {
		return nil, err
	}
	if err := sleep(ctx, s.times.settle); err != nil {
		_ = s.release(context.WithoutCancel(ctx), name, l) // else it expires
		return nil, err
	}
	head, err = s.head(ctx, lockKey(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil || aws.ToString(head.ETag) != l.etag {
		return nil, nil
	}
	return l, nil
}

// write writes a new version of a lock on a condition, and sets its ETag. That becomes empty where the condition does not hold because of another
// holder. After an error the lock may have a new version all the same, and then has its ETag.
func (s *Store) write(ctx context.Context, name string, l *lock, put s3.PutObjectInput) error {
	value := l.id + " " + rand.Text()
	etag, err := s.put(ctx, name, value, put)
	if err == nil {
		l.etag = etag
		return nil
	}
	// Where an answer is lost the SDK repeats the request, and the version that it has written fails the condition.
	version, found, readErr := s.version(ctx, name)
	switch {
	case readErr == nil && version == value:
		l.etag = found
		return nil
	case readErr == nil && l.wrote(version): // by a request before, which was late
		l.etag = found
		return err
	case s3error.IsConditionFailed(err) && (readErr == nil || errors.Is(readErr, fs.ErrNotExist)):
		l.etag = ""
		return nil
	}
	return err
}

// wrote tells whether a version is one of this holder.
func (l *lock) wrote(version string) bool { return strings.HasPrefix(version, l.id+" ") }

// put writes a version on a condition, if S3 has conditions, and returns its ETag.
func (s *Store) put(ctx context.Context, name, value string, put s3.PutObjectInput) (etag string, err error) {
	ctx, done := context.WithTimeout(ctx, requestTimeout)
	defer done()
	put.Bucket, put.Key, put.Body = &s.bucket, aws.String(s.folder+lockKey(name)), strings.NewReader(value)
	out, err := s.s3().PutObject(ctx, &put)
	if s3error.IsUnconditional(err) {
		put.IfMatch, put.IfNoneMatch, put.Body = nil, nil, strings.NewReader(value)
		out, err = s.s3().PutObject(ctx, &put)
	}
	if err != nil {
		return "", s.failed("lock", name, err)
	}
	return aws.ToString(out.ETag), nil
}

// version is what S3 has of a lock now, and its ETag.
func (s *Store) version(ctx context.Context, name string) (value, etag string, err error) {
	ctx, done := context.WithTimeout(ctx, requestTimeout)
	defer done()
	read, out, err := s.get(ctx, lockKey(name))
	if err != nil {
		return "", "", err
	}
	return string(read), aws.ToString(out.ETag), nil
}

// hold writes heartbeats until Unlock.
func (s *Store) hold(ctx context.Context, name string, l *lock) {
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	l.ended = make(chan struct{})
	s.mu.Lock()
	s.locks[name] = l
	s.mu.Unlock()
	go func() {
		defer close(l.ended)
		for sleep(ctx, s.times.heartbeat) == nil {
			err := panics.Catch(func() error {
				return s.write(context.WithoutCancel(ctx), name, l, s3.PutObjectInput{IfMatch: aws.String(l.etag)}) // Unlock needs to know what is written
			})
			switch {
			case err != nil:
				s.log.Warn("ACME: a lock cannot be written; the server tries again", "err", err)
			case l.etag == "":
				s.log.Warn("ACME: another server has taken a lock of this one, which did not reach S3 for some time", "lock", s.String()+lockKey(name))
				return
			}
		}
	}()
}

// Unlock implements [certmagic.Locker].
func (s *Store) Unlock(ctx context.Context, name string) error {
	s.mu.Lock()
	l := s.locks[name]
	delete(s.locks, name)
	s.mu.Unlock()
	if l == nil {
		return fmt.Errorf("this server has no lock %s", s.String()+lockKey(name))
	}
	l.stop()
	<-l.ended
	return s.release(context.WithoutCancel(ctx), name, l)
}

// release deletes a lock, if it is still that of this holder.
func (s *Store) release(ctx context.Context, name string, l *lock) error {
	version, _, err := s.version(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !l.wrote(version) {
		return nil
	}
	return s.deleteObject(ctx, lockKey(name))
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
