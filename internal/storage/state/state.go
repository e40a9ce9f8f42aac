// Package state keeps small items in S3 that all replicas of a server share: bans, failed logins, last logins,
// certificates and the keys of TLS session tickets.
//
// A [Store] has a copy of all items in memory. [Store.Get] and [Store.Watch] read the copy, so no login waits for S3,
// and the last known items stay in use if S3 fails. [Store.Read] reads an item from S3. [Store.Update] and
// [Store.Delete] change an item; every change is a compare-and-swap, see package [cas].
//
// # Objects
//
// Below the prefix there are these objects:
//
//   - "items/NAME" is an item, encrypted by a [keyring.Ring]. NAME is authenticated with its value.
//   - "changes" counts the changes and names the last ones. It is written after the item.
//   - "locks/NAME" is a [cas.Lease]; see [Certificates].
//
// [Store.Run] reads "changes" once a second, with a request that has no response body if nothing has changed, and then
// the items that it names. Once a minute it lists all items, and finds changes of a server that died before it wrote
// "changes".
//
// The copy is saved to a file, so that a server can start while S3 is down.
package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/base/keyring"
	"github.com/babelftp/babelftp/internal/storage/cas"
)

const (
	// maxItem limits the size of an encrypted item, in bytes.
	maxItem = 1 << 20
	// maxFloors limits the deleted items whose versions are remembered.
	maxFloors = 100_000
	// updateAttempts limits how often an update is repeated because another server was faster.
	updateAttempts = 10
)

// ErrConflict reports that other servers kept changing an item.
var ErrConflict = errors.New("other servers changed it at the same time; try again")

// A Client is the part of the S3 client that a [Store] uses.
type Client interface {
	cas.Client
	DeleteObject(context.Context, *s3.DeleteObjectInput, ...func(*s3.Options)) (*s3.DeleteObjectOutput, error)
	ListObjectsV2(context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
}

// Options are the options of a [Store]. All but File are required.
type Options struct {
	Client         Client
	Bucket, Prefix string
	Keys           *keyring.Ring

	// File is where the copy of the items is saved. If it is empty, the copy is only in memory.
	File string

	Log *slog.Logger

	// For tests: the intervals of Run.
	pollInterval, listInterval time.Duration
}

// A Store holds the items. It is safe for concurrent use.
type Store struct {
	opts   Options
	bucket *cas.Bucket

	// applying is held while the copy changes and watchers are called, so that they see changes in order.
	applying sync.Mutex
	watchers []watcher

	mu         sync.Mutex
	items      map[string]*item
	generation uint64 // increases with each change of the copy
	deleted    map[string]uint64
	floors     map[string]int64 // the last known versions of items that were deleted; older ones are not accepted again
	unsaved    bool
	unreadable map[string]string // ETags of items that cannot be decrypted, by name

	saving    sync.Mutex // held while the file is written
	announcer announcer
	known     counter // the state of "changes" that Run has applied
	up        atomic.Bool
	complete  chan struct{} // closed when the copy has all items of some time
}

// An item is the copy of an item.
type item struct {
	value      []byte
	number     int64 // version of the value, which increases with each change
	version    cas.Version
	generation uint64
}

// A Change is a new value of an item. A nil Value means that the item was deleted.
type Change struct {
	Name  string
	Value []byte
}

// A watcher is called with the changes of the items with a prefix.
type watcher struct {
	prefix string
	call   func([]Change)
}

// New returns a store with the items of the last run, if there is a file. It sends no request.
func New(o Options) *Store {
	o.pollInterval = cmp.Or(o.pollInterval, pollInterval)
	o.listInterval = cmp.Or(o.listInterval, listInterval)
	s := &Store{
		opts:     o,
		bucket:   &cas.Bucket{Client: func() cas.Client { return o.Client }, Name: o.Bucket, MaxSize: maxItem},
		complete: make(chan struct{}),
		items:    map[string]*item{}, deleted: map[string]uint64{}, floors: map[string]int64{},
		unreadable: map[string]string{},
	}
	s.load()
	return s
}

// String returns the URL of the place.
func (s *Store) String() string { return s.bucket.URL(s.opts.Prefix) }

// URL returns the URL of an item.
func (s *Store) URL(name string) string { return s.bucket.URL(s.key(name)) }

func (s *Store) key(name string) string { return s.opts.Prefix + "items/" + name }

// Up reports whether the last request of Run succeeded.
func (s *Store) Up() bool { return s.up.Load() }

// Complete returns a channel that is closed when the copy has all items that there were at some time: after the start
// if there is a file, or else when they have been read from S3.
func (s *Store) Complete() <-chan struct{} { return s.complete }

// Known reports whether the channel of Complete is closed.
func (s *Store) Known() bool {
	select {
	case <-s.complete:
		return true
	default:
		return false
	}
}

// setComplete closes the channel of Complete.
func (s *Store) setComplete() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Known() {
		close(s.complete)
	}
}

// Watch calls f with all items whose names begin with prefix, and again after each change, also of this server. f must
// not call methods of the store.
func (s *Store) Watch(prefix string, f func([]Change)) {
	s.applying.Lock()
	defer s.applying.Unlock()
	w := watcher{prefix, f}
	s.watchers = append(s.watchers, w)
	var all []Change
	s.mu.Lock()
	for _, name := range slices.Sorted(maps.Keys(s.items)) {
		all = append(all, Change{name, s.items[name].value})
	}
	s.mu.Unlock()
	w.notify(all)
}

func (w watcher) notify(changes []Change) {
	changes = slices.DeleteFunc(slices.Clone(changes), func(c Change) bool {
		return !strings.HasPrefix(c.Name, w.prefix)
	})
	if len(changes) > 0 {
		w.call(changes)
	}
}

// Get returns the value of an item in the copy. ok is false if there is none.
func (s *Store) Get(name string) (value []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.items[name]; i != nil {
		return i.value, true
	}
	return nil, false
}

// Names returns the names in the copy that begin with prefix, sorted.
func (s *Store) Names(prefix string) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.items {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Read returns the value of an item in S3, or the value in the copy if that is newer. The error wraps
// [fs.ErrNotExist] if there is none.
func (s *Store) Read(ctx context.Context, name string) ([]byte, error) {
	i, err := s.read(ctx, name)
	if err == nil && (i == nil || i.value == nil) {
		err = fmt.Errorf("%s: %w", s.URL(name), fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	return i.value, nil
}

// read reads an item from S3 and updates the copy. It returns nil if the item does not exist.
func (s *Store) read(ctx context.Context, name string) (*item, error) {
	began := s.now()
	version, err := s.bucket.Read(ctx, s.key(name))
	if err != nil {
		return nil, err
	}
	i, err := s.open(name, version)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	known, floor := s.items[name], s.floors[name]
	s.mu.Unlock()
	switch { // Somebody may have put an older version back. The next update replaces it by a change of the known value.
	case i != nil && known != nil && i.number < known.number:
		return &item{value: known.value, number: known.number, version: version}, nil
	case i != nil && known == nil && i.number <= floor:
		return &item{number: floor, version: version}, nil
	}
	s.apply(name, i, began)
	return i, nil
}

// open decrypts a version. It returns nil if the object does not exist.
func (s *Store) open(name string, version cas.Version) (*item, error) {
	if !version.Exists() {
		return nil, nil
	}
	value, number, err := s.opts.Keys.Open(name, version.Data)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", s.URL(name), err)
	}
	return &item{value: value, number: number, version: version}, nil
}

// now returns the generation of the copy.
func (s *Store) now() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation
}

// apply puts an item that was read since a generation into the copy; nil removes it. Nothing happens if the copy has
// changed since then, or if the item is older than the copy.
func (s *Store) apply(name string, i *item, since uint64) {
	s.applying.Lock()
	defer s.applying.Unlock()
	change := Change{Name: name}
	s.mu.Lock()
	before := s.items[name]
	switch {
	case before == nil && i == nil, before != nil && i != nil && before.version == i.version:
		s.mu.Unlock()
		return
	case before != nil && before.generation > since, before == nil && s.deleted[name] > since,
		before != nil && i != nil && i.number < before.number, before == nil && i != nil && i.number <= s.floors[name]:
		s.mu.Unlock()
		return
	}
	s.generation++
	s.unsaved = true
	if i == nil {
		delete(s.items, name)
		s.deleted[name] = s.generation
		if len(s.floors) >= maxFloors {
			clear(s.floors)
		}
		s.floors[name] = before.number
	} else {
		i.generation = s.generation
		s.items[name] = i
		delete(s.deleted, name)
		change.Value = i.value
	}
	s.mu.Unlock()
	for _, w := range s.watchers {
		w.notify([]Change{change})
	}
}

// Update changes an item. change gets the current value, which is nil if there is none, and returns the new one. It
// may be called several times, if other servers change the item too. An error of change is returned as it is. The error
// wraps [ErrConflict] if other servers were always faster.
func (s *Store) Update(ctx context.Context, name string, change func(value []byte) ([]byte, error)) error {
	s.mu.Lock()
	current := s.items[name]
	s.mu.Unlock()
	for attempt := range updateAttempts {
		if current == nil || attempt > 0 {
			var err error
			if current, err = s.read(ctx, name); err != nil {
				return err
			}
		}
		before := cmp.Or(current, &item{})
		value, err := change(before.value)
		if err != nil {
			return err
		}
		written, err := s.write(ctx, name, value, before)
		if written || err != nil {
			return err
		}
	}
	return fmt.Errorf("write %s: %w", s.URL(name), ErrConflict)
}

// write replaces an item. It returns false if another server was faster.
func (s *Store) write(ctx context.Context, name string, value []byte, before *item) (written bool, err error) {
	// Numbers also increase if an item is deleted and created again, because they begin with the time.
	s.mu.Lock()
	floor := s.floors[name]
	s.mu.Unlock()
	number := max(before.number+1, floor+1, time.Now().UnixMilli())
	data, err := s.opts.Keys.Seal(name, number, value)
	if err != nil {
		return false, err
	}
	if len(data) > maxItem {
		return false, fmt.Errorf("write %s: the item has %d bytes, but at most %d are allowed",
			s.URL(name), len(data), maxItem)
	}
	after, ok, err := s.bucket.Write(ctx, s.key(name), data, before.version)
	if err != nil || !ok {
		return false, err
	}
	s.apply(name, &item{value: value, number: number, version: after}, s.now())
	s.announce(ctx, name)
	return true, nil
}

// Delete deletes an item, which need not exist. It is not conditional, because few S3 servers support conditions for
// deletions: an item that another server changes at the same time may be deleted with its new value. So use it for
// items that no server changes later.
func (s *Store) Delete(ctx context.Context, name string) error {
	key := s.key(name)
	if _, err := s.opts.Client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.opts.Bucket, Key: &key}); err != nil {
		return fmt.Errorf("delete %s: %w", s.bucket.URL(key), err)
	}
	s.apply(name, nil, s.now())
	s.announce(ctx, name)
	return nil
}

// Probe tries all requests that a store sends, with an item of its own. The error says what failed.
func (s *Store) Probe(ctx context.Context) error {
	name := "probe/" + newID()
	defer func() { _ = s.Delete(context.WithoutCancel(ctx), name) }()
	for range 2 { // creates the item, and then replaces it
		if err := s.Update(ctx, name, func([]byte) ([]byte, error) { return []byte("probe"), nil }); err != nil {
			return err
		}
	}
	stale := cas.Version{Data: "stale", ETag: `"00000000000000000000000000000000"`}
	for _, before := range []cas.Version{{}, stale} {
		if _, written, err := s.bucket.Write(ctx, s.key(name), newID(), before); err != nil {
			return err
		} else if written {
			return errors.New("the S3 server ignores conditions of writes: use a bucket on another server")
		}
	}
	if _, err := s.list(ctx, "probe/"); err != nil {
		return err
	}
	if err := s.Delete(ctx, name); err != nil {
		return err
	}
	s.Flush(ctx)
	return s.sync(ctx)
}
