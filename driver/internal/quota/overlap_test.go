package quota

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// A counted is a bucket with the files "file" and "other" of 100 bytes each, and a quota that has counted them. Each
// page of a count returns one object.
type counted struct {
	*testing.T
	server *s3sim.Server
	quotas Quotas
	quota  *Usage
	pages  []func() // functions to call before each page of the next count
}

func newCounted(t *testing.T) *counted {
	x := &counted{T: t, server: newServer(s3sim.Options{PageSize: 1})}
	x.quotas, x.quota = limited(x.server.Client(&s3sim.Caller{Fault: func(s3sim.Operation) s3sim.Fault {
		if len(x.pages) > 0 {
			happen := x.pages[0]
			x.pages = x.pages[1:]
			happen()
		}
		return s3sim.Fault{}
	}}), 1<<40)
	x.put("file", 100)
	x.put("other", 100)
	x.count()
	return x
}

// put stores an object in the server, without the quota.
func (x *counted) put(key string, size int64) {
	x.server.Put("bucket", s3sim.Object{Key: key, Content: bytesOf(size)})
}

func (x *counted) count() {
	x.Helper()
	if err := x.quota.Count(x.Context()); err != nil {
		x.Fatal(err)
	}
}

// stored returns the number of bytes in the bucket.
func (x *counted) stored() (sum int64) {
	for _, o := range x.server.Objects("bucket") {
		sum += o.Content.Size()
	}
	return sum
}

// head returns the object of a key as HeadObject describes it.
func (x *counted) head(key string) (v s3api.Version) {
	for _, o := range x.server.Objects("bucket") {
		if o.Key == key {
			v = s3api.Version{Key: key, Size: o.Content.Size(), ModTime: o.Modified, ETag: o.ETag}
		}
	}
	v.Seen = time.Now()
	return v
}

// delete deletes the current object of a key.
func (x *counted) delete(key string) {
	c := x.quotas.Begin(key)
	c.SetCurrent(x.head(key))
	c.Send(0)
	x.server.Delete("bucket", key)
	c.End(nil)
}

// TestNothingIsSubtractedTwice lets changes of this process and of other clients overlap with each other and with
// counts. The quota must never be lower than the stored bytes, except for objects that others have stored since the
// last count. After a count without changes it must be exact.
func TestNothingIsSubtractedTwice(t *testing.T) {
	nothing := func() {}
	for name, test := range map[string]struct {
		act  func(x *counted)
		more int64 // how much the quota may exceed the stored bytes
		less int64 // how much the quota may miss
	}{
		"stored-before-its-page": {act: func(x *counted) {
			c := x.quotas.Begin("file")
			c.SetCurrent(x.head("file"))
			c.Send(300)
			x.pages = []func(){func() { x.put("file", 300); c.End(nil) }}
			x.count()
		}},
		"stored-after-its-page": {act: func(x *counted) {
			c := x.quotas.Begin("file")
			c.Send(300)
			x.pages = []func(){nothing, func() { x.put("file", 300); c.End(nil) }}
			x.count()
		}},
		"begun-and-stored-after-its-page": {act: func(x *counted) {
			x.pages = []func(){nothing, func() {
				c := x.quotas.Begin("file")
				c.SetCurrent(x.head("file"))
				c.Send(300)
				x.put("file", 300)
				c.End(nil)
			}}
			x.count()
		}, more: 100},
		"stored-and-answered-after-the-count": {act: func(x *counted) {
			c := x.quotas.Begin("file")
			c.Send(300)
			x.pages = []func(){nothing, func() { x.put("file", 300) }}
			x.count()
			c.End(nil)
		}},
		"deleted-after-its-page": {act: func(x *counted) {
			x.pages = []func(){nothing, func() { x.delete("file") }}
			x.count()
		}, more: 100},
		"known-and-deleted-after-its-page": {act: func(x *counted) {
			c := x.quotas.Begin("file")
			x.pages = []func(){nothing, func() {
				c.SetCurrent(x.head("file"))
				c.Send(0)
				x.server.Delete("bucket", "file")
				c.End(nil)
			}}
			x.count()
		}, more: 100},
		"deleted-and-stored-by-others-before-the-answer": {act: func(x *counted) {
			c := x.quotas.Begin("file")
			c.Send(0)
			x.server.Delete("bucket", "file")
			x.put("file", 300)
			x.count()
			c.End(nil)
		}},
		"deleted-twice": {act: func(x *counted) {
			v := x.head("file")
			x.delete("file")
			x.quotas.Removing(v)(nil)
		}},
		"described-while-it-is-stored": {act: func(x *counted) {
			first, second := x.quotas.Begin("new"), x.quotas.Begin("new")
			first.Send(300)
			x.put("new", 300)
			second.SetCurrent(x.head("new"))
			first.End(nil)
			second.End(nil)
		}},
		"stored-twice-at-once": {act: func(x *counted) {
			first, second := x.quotas.Begin("file"), x.quotas.Begin("file")
			first.SetCurrent(x.head("file"))
			first.Send(300)
			second.Send(50)
			x.put("file", 300)
			second.End(nil)
			first.End(nil)
		}},
		"no-answer-and-stored-later": {act: func(x *counted) {
			c := x.quotas.Begin("file")
			c.SetCurrent(x.head("file"))
			c.Send(300)
			c.End(errors.New("no answer"))
			x.put("file", 300)
		}},
		"no-answer-and-replaced": {act: func(x *counted) {
			c := x.quotas.Begin("file")
			c.Send(300)
			c.End(errors.New("no answer"))
			again := x.quotas.Begin("file")
			again.Send(50)
			x.put("file", 300)
			again.End(nil)
		}, more: 100},
		"no-answer-while-another-is-under-way": {act: func(x *counted) {
			c, other := x.quotas.Begin("file"), x.quotas.Begin("file")
			other.Send(50)
			c.Send(300)
			c.End(errors.New("no answer"))
			x.count()
			x.put("file", 300)
			if used, _ := x.quota.Used(); used < x.stored() {
				x.Errorf("got usage %d, want %d", used, x.stored())
			}
			other.End(syscall.ESTALE)
		}},
		"stored-by-others-and-deleted": {act: func(x *counted) {
			x.put("new", 150)
			x.delete("new")
		}, less: 150},
		"more-stored-by-others-and-deleted-than-was-counted": {act: func(x *counted) {
			x.put("new", 1000)
			x.delete("new")
		}, less: 200},
		"stored-by-others-before-a-count-and-deleted": {act: func(x *counted) {
			x.put("new", 500)
			x.count()
			x.delete("new")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newCounted(t)
			test.act(x)
			if used, _ := x.quota.Used(); used < x.stored()-test.less || used > x.stored()+test.more {
				t.Errorf("got usage %d, want %d", used, x.stored())
			}
			x.count()
			if used, _ := x.quota.Used(); used != x.stored() || x.quota.reserved != 0 {
				t.Errorf("after a count: got usage %d and %d reserved bytes, want usage %d", used, x.quota.reserved, x.stored())
			}
		})
	}
}
