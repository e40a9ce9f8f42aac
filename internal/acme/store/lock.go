package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/panics"
	"github.com/babelftp/babelftp/internal/s3lock"
)

// times are those of locks. Tests have shorter ones.
type times struct {
	heartbeat, poll time.Duration // between two renewals of a lock, and between two attempts to get one
	expiry, settle  time.Duration // of [s3lock.Options]
}

func defaultTimes() times {
	return times{heartbeat: 10 * time.Second, expiry: 40 * time.Second, settle: time.Second, poll: time.Second}
}

// A lock is one that this server has. A goroutine renews it.
type lock struct {
	*s3lock.Lock
	stop  context.CancelFunc // of the renewals
	ended chan struct{}      // closed when they have ended
}

func lockKey(name string) string { return "locks/" + strings.ReplaceAll(name, "/", "_") }

// Lock implements [certmagic.Locker]. It waits until no other server has the lock, or that server has died.
func (s *Store) Lock(ctx context.Context, name string) error {
	l := s3lock.New(s3lock.Options{
		Client: func() s3lock.Client { return s.s3() }, Bucket: s.bucket, Key: s.folder + lockKey(name),
		Expiry: s.times.expiry, Settle: s.times.settle, Log: s.log,
	})
	if err := l.Await(ctx, s.times.poll); err != nil {
		return err
	}
	s.renew(ctx, name, l)
	return nil
}

// renew renews a lock until Unlock.
func (s *Store) renew(ctx context.Context, name string, held *s3lock.Lock) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &lock{held, stop, make(chan struct{})}
	s.mu.Lock()
	s.locks[name] = l
	s.mu.Unlock()
	go func() {
		defer close(l.ended)
		heartbeats := time.NewTicker(s.times.heartbeat)
		defer heartbeats.Stop()
		for {
			select {
			case <-heartbeats.C:
			case <-ctx.Done():
				return
			}
			err := panics.Catch(func() error {
				_, err := l.Hold(context.WithoutCancel(ctx)) // a request that is cut off may be late
				return err
			})
			switch {
			case err != nil:
				s.log.Warn("ACME: a lock cannot be renewed; the server tries again", "err", err)
			case !l.Held():
				s.log.Warn("ACME: another server has taken a lock of this one, which did not reach S3 for some time", "lock", l.String())
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
	return l.Release(context.WithoutCancel(ctx))
}
