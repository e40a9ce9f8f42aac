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

// noLimit stands for the limit of a usage without one.
const noLimit = math.MaxInt64

// A Limit is the maximum of a usage in bytes.
type Limit struct {
	*Usage
	Bytes int64
}

// Quotas combines the usages of a bucket, which count every change, with the limits of one user. The zero value has
// neither.
type Quotas struct {
	Usages *Usages // shared by all users of the bucket
	// Limits returns the limits in force. It is called for each operation and for each part of an upload, so a limit
	// can be added, changed or removed at any time. By default there is no limit.
	Limits func() []Limit
}

// Smallest returns the smallest limit for a key in bytes, or 0 without a limit.
func (qs Quotas) Smallest(key string) int64 {
	least := qs.smallest(func(u *Usage) bool { return u.table == qs.Usages && u.contains(key) })
	if least == noLimit {
		return 0
	}
	return least
}

// smallest returns the smallest limit on usages that match.
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

// A Reservation is the effect of one operation on the size of one key: an upload, a copy or a delete. Its methods are
// called in this order: SetCurrent or StartHead when S3 has described the current object, Grow or Move to reserve room,
// Send before the request, and End after it. A usage that is added during the operation takes part from the next call
// on.
type Reservation struct {
	quotas Quotas
	key    string
	heads  sync.WaitGroup // waits for the HEAD request in the background

	// The following fields are guarded by the mutex of the table.
	held []*held
	size int64 // size that the request stores
	sent bool
}

// A held is a usage that contains the key of a change, with the room that the change has reserved in it.
type held struct {
	*Usage
	*entry
	room int64 // reserved for the change, in addition to the size that the sum already includes for the key
}

// An entry is a key that operations are changing now, or have changed since the last count. All these operations share
// the entry, so that the old size is subtracted only once. It is guarded by the mutex of the table.
type entry struct {
	size        int64 // size of the key that the sum includes
	sized       bool  // size is known; otherwise the sum may include more
	open        int   // number of changes in progress
	sent        int   // number of changes with a request that S3 may still perform
	largest     int64 // largest size that these requests, or requests that overlapped with them, store
	unconfirmed int64 // size that a request without a response may still store
	listed      int64 // size in the current count
}

// Begin begins a change of a key. Objects of the server itself count in no usage.
func (qs Quotas) Begin(key string) *Reservation {
	qs.Smallest(key) // adds usages that do not exist yet
	c := &Reservation{quotas: qs, key: key}
	c.usages()
	return c
}

// usages returns the usages that contain the key.
func (c *Reservation) usages() (all []*held) {
	c.each(func(h *held) { all = append(all, h) })
	return all
}

// each calls do for each usage that contains the key, while holding the lock.
func (c *Reservation) each(do func(*held)) {
	c.quotas.Usages.withLock(func() {
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

// join adds the change to a usage.
func (c *Reservation) join(u *Usage) {
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

// SetCurrent records the object that S3 has returned, or the zero value if it does not exist. Without a call to
// SetCurrent, the change subtracts only the size that the sum is known to include. SetCurrent does nothing while
// another request for the key is in flight, because the object may be the one that this request has just stored. The
// sum does not include such an object until the other change ends.
func (c *Reservation) SetCurrent(v s3api.Version) {
	c.each(func(h *held) {
		if h.sent > 0 {
			return
		}
		if !h.sized && !v.Seen.Before(h.since) {
			h.size = v.Size
		}
		h.sized = true
	})
}

// StartHead sends a HEAD request in the background if a usage contains the key. Grow and Send wait for its response.
func (c *Reservation) StartHead(ctx context.Context, bucket *s3api.Bucket, key string) {
	if len(c.usages()) == 0 {
		return
	}
	c.heads.Go(func() {
		_ = panics.Catch(func() error { // if it fails, the change subtracts nothing
			v, _, err := bucket.Head(ctx, key)
			if err == nil {
				c.SetCurrent(v)
			}
			return err
		})
	})
}

// Grow reserves room for an object of this size, before the caller stores it. The error is EDQUOT if there is not
// enough room.
func (c *Reservation) Grow(ctx context.Context, size int64) error {
	return c.grow(ctx, size, func(*Usage) bool { return false })
}

// Move is like Grow, for a copy of an object that the caller then deletes. Usages that contain the source already count
// its bytes and need no room.
func (c *Reservation) Move(ctx context.Context, size int64, from Quotas, key string) error {
	return c.grow(ctx, size, func(u *Usage) bool { return u.table == from.Usages && u.contains(key) })
}

func (c *Reservation) grow(ctx context.Context, size int64, exempt func(*Usage) bool) error {
	c.heads.Wait()
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

// take reserves room for an object of this size. It returns false if the sum would exceed the limit.
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
func (c *Reservation) limit(h *held) int64 {
	return c.quotas.smallest(func(u *Usage) bool { return u == h.Usage })
}

// Open returns EDQUOT if a single byte does not fit, so that a client gets the error before it sends any.
func (c *Reservation) Open(ctx context.Context) error {
	for _, h := range c.usages() {
		if used, known := h.Used(); !known || used >= c.limit(h) {
			return c.Grow(ctx, 1)
		}
	}
	return nil
}

// Send records that the next request stores this number of bytes, or deletes the object if size is 0.
func (c *Reservation) Send(size int64) {
	c.heads.Wait()
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

// End ends the change with the error of its request, if one was sent. If the request may have been performed despite
// the error, the usages count what it may have stored.
func (c *Reservation) End(err error) {
	c.each(func(h *held) {
		h.reserved -= h.room
		if c.sent {
			before := h.size
			switch {
			case err == nil: // the order in which S3 performs overlapping requests is unknown
				h.size = max(h.largest, h.unconfirmed)
			case !certain(err):
				h.unconfirmed = max(h.unconfirmed, c.size)
				h.size = max(h.size, h.unconfirmed)
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

// certain reports whether S3 has not performed the failed request and never will.
func certain(err error) bool {
	if s3error.IsDoubtful(err) {
		return false
	}
	return slices.ContainsFunc(
		[]error{syscall.ESTALE, fs.ErrExist, fs.ErrPermission, fs.ErrNotExist, syscall.EDQUOT, syscall.ENOSPC},
		func(kind error) bool { return errors.Is(err, kind) })
}

// Removing begins to delete versions that S3 has described. The caller calls end with one error per version, which must
// be nil if the key no longer has the version.
func (qs Quotas) Removing(versions ...s3api.Version) (end func(...error)) {
	changes := make([]*Reservation, len(versions))
	for i, v := range versions {
		changes[i] = qs.Begin(v.Key)
		changes[i].SetCurrent(v)
		changes[i].Send(0)
	}
	return func(errs ...error) {
		for i, c := range changes {
			c.End(errs[i])
		}
	}
}
