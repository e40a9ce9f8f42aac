package quota

import (
	"cmp"
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

// Quotas are the quotas of a file system. An upload must fit into each.
type Quotas []*Quota

// Smallest returns the smallest limit in bytes, 0 without a quota.
func (qs Quotas) Smallest() int64 {
	if len(qs) == 0 {
		return 0
	}
	return slices.MinFunc(qs, func(a, b *Quota) int { return cmp.Compare(a.Limit(), b.Limit()) }).Limit()
}

// A Change is what an operation does to the bytes of one key: an upload, a copy or a deletion. It begins before the
// operation looks what there is, and End ends it. In between come, in this order, what the look has shown, the room
// that the operation takes, and the request.
type Change struct {
	held   []held
	looked func() // waits for the look in the background, nil without one
	size   int64  // that the request stores
	sent   bool
}

// A held is a quota that holds the key of a change.
type held struct {
	*Quota
	charge *charge
}

// Change begins a change of a key. The objects of the server itself count in no quota.
func (qs Quotas) Change(key string) *Change {
	c := &Change{}
	if !s3object.IsReserved(key) {
		for _, q := range qs {
			c.held = append(c.held, held{q, q.enter(key)})
		}
	}
	return c
}

// Saw says what S3 has shown after the change began, the zero value for no object. Without it the change subtracts
// nothing that only a count has added.
func (c *Change) Saw(v s3api.Version) {
	for _, h := range c.held {
		h.saw(h.charge, v)
	}
}

// Look asks S3 in the background what there is, if there are quotas. Grow, Open and Send wait for the answer.
func (c *Change) Look(ctx context.Context, bucket *s3api.Bucket, key string) {
	if len(c.held) == 0 {
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
// there is not enough. In the quotas of exempt the bytes count already.
func (c *Change) Grow(ctx context.Context, size int64, exempt Quotas) error {
	c.waitForLook()
	for _, h := range c.held {
		if slices.Contains(exempt, h.Quota) || h.grow(h.charge, c, size) {
			continue
		}
		countCtx, done := context.WithTimeout(ctx, recountTimeout)
		counted, _ := h.count(countCtx, true) // after an error the previous count holds
		done()
		if !counted || !h.grow(h.charge, c, size) {
			return s3error.New(
				syscall.EDQUOT, fmt.Sprintf(
					"quota of %d bytes has no room; delete files or raise the quota", h.Limit()))
		}
	}
	return nil
}

// Open returns EDQUOT if there is no room for a single byte. So a client gets the error before it sends a byte.
func (c *Change) Open(ctx context.Context) error {
	if !slices.ContainsFunc(c.held, func(h held) bool { return h.full() }) {
		return nil
	}
	return c.Grow(ctx, 1, nil)
}

// Send says that the next request stores so many bytes under the key, or deletes what it has. The request need not be
// the only one that does.
func (c *Change) Send(size int64) {
	c.waitForLook()
	c.size, c.sent = size, true
	for _, h := range c.held {
		h.send(h.charge, size)
	}
}

// End ends the change with the error of the request, if one was sent. After an error that leaves a doubt, the quotas
// count what the request may have stored.
func (c *Change) End(err error) {
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
}

// certain tells whether S3 has not performed a request that failed, and will not.
func certain(err error) bool {
	if errors.Is(err, s3api.ErrSourceReplaced) || s3error.IsDoubtful(err) {
		return false
	}
	return slices.ContainsFunc(
		[]error{syscall.ESTALE, fs.ErrExist, fs.ErrPermission, fs.ErrNotExist, syscall.EDQUOT, syscall.ENOSPC},
		func(kind error) bool { return errors.Is(err, kind) })
}

// Removing begins to delete versions that S3 has described. The caller calls end with an error for each, nil if the
// key does not have the version any more. Of a version that was seen before a count ended, the quota subtracts
// nothing, unless it has counted that for the key. A caller that knows the key before it looks begins a Change first:
// then the count finds out.
func (qs Quotas) Removing(versions ...s3api.Version) (end func(...error)) {
	if len(qs) == 0 {
		return func(...error) {}
	}
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
