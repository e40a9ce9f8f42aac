package quota

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"syscall"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// noLimit is in the place of a limit for a usage without one.
const noLimit = -1

// A Limit is the maximum of a usage, in bytes.
type Limit struct {
	*Usage
	Bytes int64
}

// Quotas are the usages of a bucket, in which every change counts, and the limits of one user. The zero value has
// neither.
type Quotas struct {
	Usages *Usages // shared by all users of the bucket
	// Limits returns the limits in force. It is called for each operation and for each part of an upload, so a limit
	// can be added, changed or removed at any time. The default is none.
	Limits func() []Limit
}

func (qs Quotas) limits() []Limit {
	if qs.Limits == nil {
		return nil
	}
	return qs.Limits()
}

// Smallest returns the smallest limit for a key, in bytes. It is 0 without a limit.
func (qs Quotas) Smallest(key string) int64 {
	smallest := int64(noLimit)
	for _, l := range qs.limits() {
		if l.table == qs.Usages && l.contains(key) && (smallest == noLimit || l.Bytes < smallest) {
			smallest = l.Bytes
		}
	}
	return max(0, smallest)
}

// A Change is what an operation does to the bytes of one key: an upload, a copy or a deletion. It begins before the
// operation asks S3 for the object, and End ends it. In between come, in this order, what S3 has shown, the room that
// the operation takes, and the request. A usage that is added in between takes part from then on.
type Change struct {
	quotas Quotas
	key    string
	looked func() // waits for the HEAD request in the background, nil without one

	// The mutex of the table guards the rest.
	held []held
	want int64 // bytes for which Grow has taken room
	size int64 // bytes that the request stores
	sent bool
}

// A held is a usage that contains the key of a change.
type held struct {
	*Usage
	charge *charge
}

// Change begins a change of a key. The objects of the server itself count in no usage.
func (qs Quotas) Change(key string) *Change {
	qs.limits() // adds usages that are missing
	return qs.begin(key)
}

func (qs Quotas) begin(key string) *Change {
	c := &Change{quotas: qs, key: key}
	if t := qs.Usages; t != nil && !s3object.IsReserved(key) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.open[c] = struct{}{}
		for _, u := range t.containing(key) {
			c.join(u)
		}
	}
	return c
}

// join lets the change count in a usage. The caller holds the lock.
func (c *Change) join(u *Usage) {
	h := held{u, u.enter(c.key)}
	c.held = append(c.held, h)
	if c.want > 0 {
		u.grow(h.charge, c, c.want, noLimit)
	}
	if c.sent {
		u.send(h.charge, c.size)
	}
}

// locked calls a function with the lock, if the change can count at all.
func (c *Change) locked(do func()) {
	if t := c.quotas.Usages; t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		do()
	}
}

// usages returns the usages that contain the key now.
func (c *Change) usages() (all []held) {
	c.locked(func() { all = slices.Clone(c.held) })
	return all
}

// Saw takes what S3 has shown after the change began, the zero value for no object. Without it the change subtracts
// nothing that only a count has added.
func (c *Change) Saw(v s3api.Version) {
	c.locked(func() {
		for _, h := range c.held {
			h.saw(h.charge, v)
		}
	})
}

// Look sends a HEAD request in the background if a usage contains the key. Grow, Open and Send wait for the response.
func (c *Change) Look(ctx context.Context, bucket *s3api.Bucket, key string) {
	if len(c.usages()) == 0 {
		return
	}
	done := make(chan struct{})
	c.looked = sync.OnceFunc(func() { <-done })
	panics.Go(func() {
		defer close(done)
		v, err := panics.Result(func() (s3api.Version, error) {
			v, _, err := bucket.Head(ctx, key)
			return v, err
		})
		switch {
		case err == nil:
			c.Saw(v)
		case errors.Is(err, fs.ErrNotExist):
			c.Saw(s3api.Version{})
		}
	})
}

func (c *Change) waitForLook() {
	if c.looked != nil {
		c.looked()
	}
}

// Grow takes the room that an object of so many bytes needs, before the caller stores them. The error is EDQUOT if
// there is not enough.
func (c *Change) Grow(ctx context.Context, size int64) error {
	return c.grow(ctx, size, func(*Usage) bool { return false })
}

// Move is Grow for a copy of a key of a bucket that the caller then deletes. In usages that contain this key the
// bytes count already.
func (c *Change) Move(ctx context.Context, size int64, from Quotas, key string) error {
	return c.grow(ctx, size, func(u *Usage) bool { return u.table == from.Usages && u.contains(key) })
}

func (c *Change) grow(ctx context.Context, size int64, exempt func(*Usage) bool) error {
	c.waitForLook()
	limits := c.quotas.limits()
	for _, h := range c.usages() {
		if exempt(h.Usage) {
			continue
		}
		limit := limitOf(h.Usage, limits)
		if limit != noLimit {
			h.await(ctx)
		}
		if c.take(h, size, limit) || h.recount(ctx) && c.take(h, size, limit) {
			continue
		}
		return s3error.New(syscall.EDQUOT,
			fmt.Sprintf("quota of %d bytes has no room; delete files or raise the quota", limit))
	}
	c.locked(func() { c.want = size })
	return nil
}

// take takes the room that an object of so many bytes needs in one usage.
func (c *Change) take(h held, size, limit int64) (taken bool) {
	c.locked(func() { taken = h.grow(h.charge, c, size, limit) })
	return taken
}

// limitOf returns the smallest limit of a usage.
func limitOf(u *Usage, limits []Limit) int64 {
	limit := int64(noLimit)
	for _, l := range limits {
		if l.Usage == u && (limit == noLimit || l.Bytes < limit) {
			limit = l.Bytes
		}
	}
	return limit
}

// Open returns EDQUOT if there is no room for a single byte. So a client gets the error before it sends a byte.
func (c *Change) Open(ctx context.Context) error {
	limits, doubt := c.quotas.limits(), false
	c.locked(func() {
		for _, h := range c.held {
			limit := limitOf(h.Usage, limits)
			doubt = doubt || limit != noLimit && (!h.known || h.used+h.reserved >= limit)
		}
	})
	if !doubt {
		return nil
	}
	return c.Grow(ctx, 1)
}

// Send notes that the next request stores so many bytes under the key, or deletes the object. The request may be one
// of several.
func (c *Change) Send(size int64) {
	c.waitForLook()
	c.locked(func() {
		c.size, c.sent = size, true
		for _, h := range c.held {
			h.send(h.charge, size)
		}
	})
}

// End ends the change with the error of the request, if one was sent. After an error that leaves a doubt, the usages
// count what the request may have stored.
func (c *Change) End(err error) {
	c.locked(func() {
		became := notSent
		switch {
		case !c.sent:
		case err == nil:
			became = performed
		case certain(err):
			became = refused
		default:
			became = doubtful
		}
		for _, h := range c.held {
			h.leave(h.charge, c, c.size, became)
		}
		delete(c.quotas.Usages.open, c)
	})
}

// certain reports whether S3 has not performed a request that failed, and never will.
func certain(err error) bool {
	if s3error.IsDoubtful(err) {
		return false
	}
	return slices.ContainsFunc(
		[]error{syscall.ESTALE, fs.ErrExist, fs.ErrPermission, fs.ErrNotExist, syscall.EDQUOT, syscall.ENOSPC},
		func(kind error) bool { return errors.Is(err, kind) })
}

// Removing begins to delete versions that S3 has described. The caller calls end with an error for each, nil if the
// key no longer has the version. If a version was seen before a count ended, a usage subtracts nothing for it, unless
// it has counted that for the key. A caller that knows the key before it asks S3 begins a Change first, so that the
// usage notices the count.
func (qs Quotas) Removing(versions ...s3api.Version) (end func(...error)) {
	changes := make([]*Change, len(versions))
	for i, v := range versions {
		changes[i] = qs.begin(v.Key)
		changes[i].Saw(v)
		changes[i].Send(0)
	}
	return func(errs ...error) {
		for i, c := range changes {
			c.End(errs[i])
		}
	}
}
