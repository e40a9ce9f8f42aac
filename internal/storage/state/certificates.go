package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/storage/cas"
)

const (
	// acmePrefix is the prefix of the items of a [Certificates].
	acmePrefix = "acme/"
	// lockExpiry is the time after which the lock of a dead server is taken over.
	lockExpiry = 30 * time.Second
	// lockInterval is the time between two attempts to acquire or renew a lock.
	lockInterval = lockExpiry / 10
)

// Certificates stores ACME accounts, certificates and challenges in a [Store], so that replicas share them and take
// turns to renew a certificate. It implements [certmagic.Storage].
type Certificates struct {
	store *Store
	log   *slog.Logger

	mu    sync.Mutex
	locks map[string]*certificateLock
}

// A certificateLock is a lock that this process holds.
type certificateLock struct {
	lease   *cas.Lease
	release context.CancelFunc
	renewed chan struct{} // closed after the last renewal
}

var _ certmagic.Storage = (*Certificates)(nil)

// NewCertificates returns the certificates in a store.
func NewCertificates(s *Store) *Certificates {
	return &Certificates{store: s, log: s.opts.Log, locks: map[string]*certificateLock{}}
}

// String returns the URL below which the certificates are stored.
func (c *Certificates) String() string { return c.store.bucket.URL(c.store.key(acmePrefix)) }

// Store implements [certmagic.Storage].
func (c *Certificates) Store(ctx context.Context, key string, value []byte) error {
	return c.store.Update(ctx, acmePrefix+key, func([]byte) ([]byte, error) { return value, nil })
}

// Load implements [certmagic.Storage]. If S3 fails, it returns the last known value.
func (c *Certificates) Load(ctx context.Context, key string) ([]byte, error) {
	value, err := c.store.Read(ctx, acmePrefix+key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		if known, ok := c.store.Get(acmePrefix + key); ok {
			return known, nil
		}
	}
	return value, err
}

// Delete implements [certmagic.Storage]. It deletes the key and all keys below it.
func (c *Certificates) Delete(ctx context.Context, key string) error {
	names, err := c.store.list(ctx, acmePrefix+key)
	if err != nil {
		return err
	}
	for name := range names {
		if name == acmePrefix+key || strings.HasPrefix(name, acmePrefix+key+"/") {
			err = errors.Join(err, c.store.Delete(ctx, name))
		}
	}
	return err
}

// Exists implements [certmagic.Storage].
func (c *Certificates) Exists(ctx context.Context, key string) bool {
	_, err := c.Stat(ctx, key)
	return err == nil
}

// List implements [certmagic.Storage].
func (c *Certificates) List(ctx context.Context, folder string, recursive bool) ([]string, error) {
	below := acmePrefix
	if folder != "" {
		below += strings.TrimSuffix(folder, "/") + "/"
	}
	names, err := c.store.list(ctx, below)
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	for name := range names {
		rest := strings.TrimPrefix(name, below)
		first, _, _ := strings.Cut(rest, "/")
		keys[path.Join(folder, first)] = true
		for dir := rest; recursive && dir != "."; dir = path.Dir(dir) {
			keys[path.Join(folder, dir)] = true
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s%s: %w", c, folder, fs.ErrNotExist)
	}
	return slices.Sorted(maps.Keys(keys)), nil
}

// Stat implements [certmagic.Storage].
func (c *Certificates) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	value, err := c.Load(ctx, key)
	if err == nil {
		return certmagic.KeyInfo{Key: key, Size: int64(len(value)), IsTerminal: true}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return certmagic.KeyInfo{}, err
	}
	if _, err := c.List(ctx, key, false); err != nil {
		return certmagic.KeyInfo{}, err
	}
	return certmagic.KeyInfo{Key: key}, nil
}

// Lock implements [certmagic.Locker]. The lock is renewed until Unlock.
func (c *Certificates) Lock(ctx context.Context, name string) error {
	lease := cas.NewLease(c.store.bucket, c.store.opts.Prefix+"locks/"+acmePrefix+name, lockExpiry, c.log)
	for {
		held, err := lease.Hold(ctx)
		if held {
			break
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-time.After(lockInterval):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	renewing, release := context.WithCancel(context.WithoutCancel(ctx))
	l := &certificateLock{lease, release, make(chan struct{})}
	c.mu.Lock()
	c.locks[name] = l
	c.mu.Unlock()
	panics.Go(func() {
		defer close(l.renewed)
		for {
			select {
			case <-time.After(lockInterval):
				_, _ = lease.Hold(renewing) // the next attempt may succeed
			case <-renewing.Done():
				return
			}
		}
	})
	return nil
}

// Unlock implements [certmagic.Locker].
func (c *Certificates) Unlock(ctx context.Context, name string) error {
	c.mu.Lock()
	l := c.locks[name]
	delete(c.locks, name)
	c.mu.Unlock()
	if l == nil {
		return fmt.Errorf("lock %s is not held", name)
	}
	l.release()
	<-l.renewed
	return l.lease.Release(ctx)
}
