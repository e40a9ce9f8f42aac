package quota

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// A bucket is what S3 holds, with the changes of this process and of other clients.
type bucket struct {
	*rand.Rand
	server  *s3sim.Server
	quota   *Quota
	objects map[string]object
	under   []*operation
	late    []*operation // S3 may yet perform their requests, of which no answer came
	counted time.Time    // when the last count began
	listing bool         // a count is under way
	quiet   bool         // nothing happens during counts
}

// An object is one that S3 has.
type object struct {
	s3api.Version
	stored time.Time  // when it became visible
	by     *operation // of this process, nil for another client
}

// An operation of this process stores or deletes an object, in steps.
type operation struct {
	*Change
	key    string
	size   int64 // less than 0 to delete
	began  time.Time
	walked *s3api.Version // what a listing has shown before the change begins
	step   int
	failed error
	done   bool // the operation knows how it went
}

func newBucket(seed uint64) *bucket {
	b := &bucket{
		Rand: rand.New(rand.NewPCG(seed, 0)), server: newServer(s3sim.Options{PageSize: 2}),
		objects: map[string]object{},
	}
	b.quota = New(b.server.Client(&s3sim.Caller{Fault: b.page}), "bucket", "", 1<<40)
	return b
}

// page lets something happen between two pages of a count.
func (b *bucket) page(s3sim.Operation) s3sim.Fault {
	for n := b.IntN(4); n > 0 && !b.quiet; n-- {
		b.step()
	}
	return s3sim.Fault{After: time.Millisecond}
}

// store makes an object visible, which may be dated from when its upload began.
func (b *bucket) store(key string, size int64, began time.Time, by *operation) {
	now := time.Now()
	o := object{s3api.Version{Key: key, Size: size, ModTime: now.Truncate(time.Second), ETag: `"simple"`}, now, by}
	if now.Sub(began) > time.Minute/2 || b.IntN(4) == 0 {
		o.ModTime, o.ETag = began.Truncate(time.Second), `"parts-2"`
	}
	b.objects[key] = o
	b.server.Put("bucket", s3sim.Object{Key: key, Content: bytesOf(size), Modified: o.ModTime, ETag: o.ETag})
}

// remove deletes an object.
func (b *bucket) remove(key string) {
	delete(b.objects, key)
	b.server.Delete("bucket", key)
}

// step does one thing, of this process or of another client.
func (b *bucket) step() {
	key := fmt.Sprint(b.IntN(3))
	switch b.IntN(14) {
	case 0:
		if len(b.late) > 0 {
			b.perform(b.late[0])
			b.late = b.late[1:]
		}
		b.store(key, b.Int64N(1000), time.Now().Add(-time.Duration(b.IntN(20))*time.Hour), nil)
	case 1:
		b.remove(key)
	case 2:
		time.Sleep(time.Duration(b.IntN(3000)) * time.Millisecond)
	case 3:
		if !b.listing && b.IntN(10) == 0 {
			time.Sleep(time.Duration(b.IntN(30)) * time.Hour)
		}
	case 4, 5:
		op := &operation{Change: Quotas{b.quota}.Change(key), key: key, size: b.Int64N(1000), began: time.Now()}
		switch b.IntN(4) {
		case 0:
			op.size = -1
		case 1:
			v := b.objects[key].Version
			v.Seen = time.Now()
			op.End(nil)
			op.Change, op.size, op.walked = nil, -1, &v
		}
		b.under = append(b.under, op)
	default:
		if len(b.under) > 0 {
			b.advance(b.under[b.IntN(len(b.under))])
		}
	}
}

// advance takes an operation one step further.
func (b *bucket) advance(op *operation) {
	switch op.step++; op.step {
	case 1:
		if op.walked != nil {
			op.Change = Quotas{b.quota}.Change(op.key)
			op.Saw(*op.walked)
		} else if b.IntN(5) > 0 {
			v := b.objects[op.key].Version
			v.Seen = time.Now()
			op.Saw(v)
		}
	case 2:
		op.Send(max(0, op.size))
	case 3:
		switch {
		case b.IntN(6) == 0:
			op.failed = syscall.ESTALE
			return
		case b.IntN(6) == 0:
			op.failed = errors.New("lost")
			if b.IntN(2) == 0 {
				b.late = append(b.late, op)
				return
			}
		}
		b.perform(op)
	case 4:
		op.End(op.failed)
		op.done = true
		b.under = slices.DeleteFunc(b.under, func(other *operation) bool { return other == op })
	}
}

// perform is what S3 does.
func (b *bucket) perform(op *operation) {
	if b.remove(op.key); op.size >= 0 {
		b.store(op.key, op.size, op.began, op)
	}
}

// check compares the quota with what it must know of: what this process has stored, and what was there when the last
// count began.
func (b *bucket) check(t *testing.T, seed uint64) {
	t.Helper()
	var least int64
	for _, o := range b.objects {
		if o.by == nil && o.stored.Before(b.counted) || o.by != nil && o.by.done {
			least += o.Size
		}
	}
	if used, _ := b.quota.Used(); used < least {
		t.Fatalf("seed %d: the quota knows of %d bytes, want at least %d", seed, used, least)
	}
}

// TestNothingIsSubtractedTwice lets random changes of this process and of other clients overlap with each other and
// with counts. The quota never knows of less than there is for certain, and after a quiet count exactly of that.
func TestNothingIsSubtractedTwice(t *testing.T) {
	for seed := range uint64(150) {
		synctest.Test(t, func(t *testing.T) {
			b := newBucket(seed)
			for range 30 {
				for range b.IntN(60) {
					b.step()
					b.check(t, seed)
				}
				b.late = nil
				begun := time.Now()
				b.listing = true
				if err := b.quota.Count(t.Context()); err != nil {
					t.Fatal(err)
				}
				b.listing, b.counted = false, begun
				b.check(t, seed)
			}
			for len(b.under) > 0 {
				b.advance(b.under[0])
			}
			b.quiet = true
			if err := b.quota.Count(t.Context()); err != nil {
				t.Fatal(err)
			}
			var sum int64
			for _, o := range b.objects {
				sum += o.Size
			}
			if used, _ := b.quota.Used(); used != sum || b.quota.reserved != 0 {
				t.Errorf(
					"seed %d: after a count there are %d bytes and %d reserved, want %d and none", seed, used,
					b.quota.reserved, sum)
			}
		})
	}
}
