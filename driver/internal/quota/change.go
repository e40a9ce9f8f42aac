package quota

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"sync"
	"syscall"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// noLimit is the limit of a usage without one.
const noLimit = math.MaxInt64

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

// Smallest returns the smallest limit for a key, in bytes. It is 0 without a limit.
func (qs Quotas) Smallest(key string) int64 {
	least := qs.smallest(func(u *Usage) bool { return u.table == qs.Usages && u.contains(key) })
	if least == noLimit {
		return 0
	}
	return least
}

// smallest returns the smallest of the limits on usages that match.
func (qs Quotas) smallest(match func(*Usage) bool) int64 {
	least := int64(noLimit)
	if qs.Limits != nil {
		for _, l := range qs.Limits() {
			if match(l.Usage) {
				least = min(least, l.Bytes)
			}
		}
	}
	return least
}

// A Change is what an operation does to the bytes of one key: an upload, a copy or a deletion. It begins before the
// operation asks S3 for the object, and End ends it. In between come, in this order, what S3 has shown, the room that
// the operation takes, and the request. A usage that is added in between takes part from the next step on.
type Change struct {
	quotas Quotas
	key    string
	look   sync.WaitGroup // the HEAD request in the background

	// The mutex of the table guards the rest.
	held []*held
	size int64 // bytes that the request stores
	sent bool
}

// A held is a usage that contains the key of a change.
type held struct {
	*Usage
	*entry
	room int64 // reserved for the change, besides the bytes that the sum has for the key
}

// An entry is a key that operations are changing, or have changed since the last count. They share it, so that no two
// of them subtract the same bytes. The mutex of the table guards it.
type entry struct {
	size    int64 // bytes of the key that the sum has
	sized   bool  // size is known; otherwise the sum may have more
	open    int   // changes in progress
	sent    int   // changes with a request that S3 may be performing
	largest int64 // bytes that the largest of these stores, and of the requests that overlapped with them
	least   int64 // bytes that a request without a response may store at any time
	listed  int64 // bytes that the count has found
}

// Change begins a change of a key. The objects of the server itself count in no usage.
func (qs Quotas) Change(key string) *Change {
	qs.Smallest(key) // adds usages that are missing
	c := &Change{quotas: qs, key: key}
	c.usages()
	return c
}

// usages returns the usages that contain the key now.
func (c *Change) usages() (all []*held) {
	c.each(func(h *held) { all = append(all, h) })
	return all
}

// each calls a function with the lock for each usage that contains the key.
func (c *Change) each(do func(*held)) {
	c.quotas.Usages.locked(func() {
		for _, u := range c.quotas.Usages.containing(c.key) {
			if !slices.ContainsFunc(c.held, func(h *held) bool { return h.Usage == u }) {
				c.join(u)
			}
		}
		for _, h := range c.held {
			do(h)
		}
	})
}

// join lets the change count in a usage.
func (c *Change) join(u *Usage) {
	e := u.entries[c.key]
	if e == nil {
		e = &entry{}
		u.entries[c.key] = e
	}
	e.open++
	if c.sent {
		e.send(c.size)
	}
	c.held = append(c.held, &held{Usage: u, entry: e})
}

// Saw takes what S3 has shown, the zero value for no object. Without it the change subtracts only
// what the sum is known to have.
func (c *Change) Saw(v s3api.Version) {
	c.each(func(h *held) {
		if !h.sized && !v.Seen.Before(h.since) {
			h.size = v.Size
		}
		h.sized = true
	})
}

// Look sends a HEAD request in the background if a usage contains the key. Grow and Send wait for the response.
func (c *Change) Look(ctx context.Context, bucket *s3api.Bucket, key string) {
	if len(c.usages()) == 0 {
		return
	}
	c.look.Go(func() {
		_ = panics.Catch(func() error { // after an error the change subtracts nothing
			v, _, err := bucket.Head(ctx, key)
			if err == nil {
				c.Saw(v)
			}
			return err
		})
	})
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
	c.look.Wait()
	for _, h := range c.usages() {
		if exempt(h.Usage) {
			continue
		}
		limit := c.limit(h)
		if limit != noLimit {
			h.await(ctx)
		}
		if !h.take(size, limit) && (!h.recount(ctx) || !h.take(size, limit)) {
			return s3error.New(syscall.EDQUOT,
				fmt.Sprintf("quota of %d bytes exceeded; delete files or raise the quota", limit))
		}
	}
	return nil
}

// take takes room for an object of so many bytes, and returns false if the sum would exceed the limit.
func (h *held) take(size, limit int64) bool {
	h.table.mu.Lock()
	defer h.table.mu.Unlock()
	more := max(0, size-h.size) - h.room
	if more > 0 && h.known && h.used+h.reserved+more > limit {
		return false
	}
	h.room += more
	h.reserved += more
	return true
}

// limit returns the smallest limit of a usage.
func (c *Change) limit(h *held) int64 {
	return c.quotas.smallest(func(u *Usage) bool { return u == h.Usage })
}

// Open returns EDQUOT if there is no room for a single byte. So a client gets the error before it sends a byte.
func (c *Change) Open(ctx context.Context) error {
	for _, h := range c.usages() {
		if used, known := h.Used(); !known || used >= c.limit(h) {
			return c.Grow(ctx, 1)
		}
	}
	return nil
}

// Send notes that the next request stores so many bytes under the key, or deletes the object.
func (c *Change) Send(size int64) {
	c.look.Wait()
	c.each(func(h *held) { h.send(size) })
	c.size, c.sent = size, true
}

func (e *entry) send(size int64) {
	if e.sent == 0 {
		e.largest = 0
	}
	e.sent++
	e.largest = max(e.largest, size)
}

// End ends the change with the error of the request, if one was sent. After an error that leaves a doubt, the usages
// count what the request may have stored.
func (c *Change) End(err error) {
	c.each(func(h *held) {
		h.reserved -= h.room
		if c.sent {
			before := h.size
			switch {
			case err == nil: // nobody knows the order in which S3 performs requests that overlap
				h.size = max(h.largest, h.least)
			case !certain(err):
				h.least = max(h.least, c.size)
				h.size = max(h.size, h.least)
			}
			h.used = max(0, h.used+h.size-before)
			h.sized = true
			h.sent--
		}
		if h.open--; h.open == 0 {
			h.closed++
		}
		if h.closed > maxClosed {
			h.forget()
		}
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
// key no longer has the version.
func (qs Quotas) Removing(versions ...s3api.Version) (end func(...error)) {
	changes := make([]*Change, len(versions))
	for i, v := range versions {
		changes[i] = qs.Change(v.Key)
		changes[i].Saw(v)
		changes[i].Send(0)
	}
	return func(errs ...error) {
		for i, c := range changes {
			c.End(errs[i])
		}
	}
}
