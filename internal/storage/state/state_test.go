package state

import (
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/base/keyring"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

func TestMain(m *testing.M) { s3test.Main(m) }

// A place is a bucket with the state of several servers.
type place struct {
	client *s3.Client
	bucket string
	keys   string
}

func secretKey(b byte) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(rune(b)), keyring.KeySize)))
}

func startPlace(t *testing.T, s *s3test.Server) *place {
	return &place{s.Client(s3client.RetryUnstored("")), s.Bucket(t), secretKey('a')}
}

// on runs a test on servers with conditional writes.
func on(t *testing.T, test func(*testing.T, *place)) {
	for _, name := range []string{"sim-aws", "minio", "versitygw"} {
		t.Run(name, func(t *testing.T) { test(t, startPlace(t, s3test.Start(t, name))) })
	}
}

func (p *place) options(t *testing.T) Options {
	keys, err := keyring.Parse(p.keys)
	must.OK(t, err)
	return Options{
		Client: p.client, Bucket: p.bucket, Prefix: "state/", Keys: keys,
		Log:          slog.New(slog.NewTextHandler(t.Output(), nil)),
		pollInterval: 10 * time.Millisecond, listInterval: time.Hour,
	}
}

// store returns a store that does not run, and waits for its announcements at the end of the test.
func (p *place) store(t *testing.T) *Store { return newStore(t, p.options(t)) }

func newStore(t *testing.T, o Options) *Store {
	s := New(o)
	t.Cleanup(func() { s.Flush(context.WithoutCancel(t.Context())) })
	return s
}

// run starts a server, and stops it at the end of the test.
func run(t *testing.T, o Options) *Store {
	s := newStore(t, o)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); s.Run(ctx, nil) }()
	t.Cleanup(func() { stop(); <-ended })
	return s
}

// A view collects the items that a store reports.
type view struct {
	mu      sync.Mutex
	items   map[string]string
	changed chan struct{}
}

func watch(s *Store, prefix string) *view {
	v := &view{items: map[string]string{}, changed: make(chan struct{}, 1)}
	s.Watch(prefix, func(changes []Change) {
		v.mu.Lock()
		defer v.mu.Unlock()
		for _, c := range changes {
			if c.Value == nil {
				delete(v.items, c.Name)
			} else {
				v.items[c.Name] = string(c.Value)
			}
		}
		select {
		case v.changed <- struct{}{}:
		default:
		}
	})
	return v
}

// want waits until an item has a value; "" means that there is no item.
func (v *view) want(t *testing.T, name, value string) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		v.mu.Lock()
		got := v.items[name]
		v.mu.Unlock()
		if got == value {
			return
		}
		select {
		case <-v.changed:
		case <-timeout:
			t.Fatalf("%s = %q, want %q", name, got, value)
		}
	}
}

func set(t *testing.T, s *Store, name, value string) {
	t.Helper()
	must.OK(t, s.Update(t.Context(), name, func([]byte) ([]byte, error) { return []byte(value), nil }))
}

func TestChangesReachOtherServers(t *testing.T) {
	on(t, func(t *testing.T, p *place) {
		a, b := run(t, p.options(t)), run(t, p.options(t))
		seen := watch(b, "bans/")
		own := watch(a, "")
		set(t, a, "bans/x", "1")
		own.want(t, "bans/x", "1")
		seen.want(t, "bans/x", "1")
		set(t, b, "bans/x", "2")
		own.want(t, "bans/x", "2")
		set(t, a, "other/x", "1")
		must.OK(t, a.Delete(t.Context(), "bans/x"))
		seen.want(t, "bans/x", "")
		if len(seen.items) != 0 {
			t.Errorf("a watcher of bans/ saw %v", seen.items)
		}
		set(t, a, "bans/x", "3") // created again
		seen.want(t, "bans/x", "3")
		if value, ok := b.Get("bans/x"); !ok || string(value) != "3" {
			t.Errorf("Get = %q, %v", value, ok)
		}
		if names := b.Names("bans/"); !slices.Equal(names, []string{"bans/x"}) {
			t.Errorf("Names = %q", names)
		}
		if _, err := a.Read(t.Context(), "bans/y"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Read of a missing item: %v", err)
		}
	})
}

// Servers that change one item at once lose no change, and all changes are announced.
func TestUpdatesAtTheSameTime(t *testing.T) {
	on(t, func(t *testing.T, p *place) {
		const servers, updates = 3, 5
		last := run(t, p.options(t))
		seen := watch(last, "")
		var all sync.WaitGroup
		for range servers {
			s := run(t, p.options(t))
			all.Go(func() {
				for done := 0; done < updates; {
					err := s.Update(t.Context(), "n", func(value []byte) ([]byte, error) {
						n, _ := strconv.Atoi(string(value))
						return []byte(strconv.Itoa(n + 1)), nil
					})
					switch {
					case err == nil:
						done++
					case !errors.Is(err, ErrConflict):
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		seen.want(t, "n", strconv.Itoa(servers*updates))
	})
}

// A listing finds the change of a server that died before it announced it.
func TestChangeThatIsNotAnnounced(t *testing.T) {
	p := startPlace(t, s3test.Start(t, "sim-aws"))
	o := p.options(t)
	o.listInterval = 20 * time.Millisecond
	b := run(t, o)
	seen := watch(b, "")
	set(t, b, "x", "1")
	b.Flush(t.Context())
	data, err := o.Keys.Seal("x", time.Now().Add(time.Second).UnixMilli(), []byte("2"))
	must.OK(t, err)
	s3test.Put(t, p.client, p.bucket, "state/items/x", data)
	seen.want(t, "x", "2")
}

// While S3 is down, the last known items stay in use, also after a restart.
func TestWithoutS3(t *testing.T) {
	server := s3test.Start(t, "minio")
	proxy := s3test.StartProxy(t, server)
	p := &place{proxy.Server().Client(), server.Bucket(t), secretKey('a')}
	o := p.options(t)
	o.File = filepath.Join(t.TempDir(), "state", "copy.json")
	first := newStore(t, o)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); first.Run(ctx, nil) }()
	seen := watch(first, "")
	set(t, first, "x", "1")
	seen.want(t, "x", "1")
	down := proxy.Inject(s3test.Fault{Effect: s3test.Refuse(503, "SlowDown")})
	if value, ok := first.Get("x"); !ok || string(value) != "1" {
		t.Errorf("Get without S3 = %q, %v", value, ok)
	}
	stop()
	<-ended
	first.Save()

	second := run(t, o)
	if value, ok := second.Get("x"); !ok || string(value) != "1" {
		t.Errorf("Get after a restart without S3 = %q, %v", value, ok)
	}
	if second.Up() {
		t.Error("the state is up without S3")
	}
	down.End()
	for range time.Tick(time.Millisecond) {
		if second.Up() {
			break
		}
	}
	again := watch(second, "")
	set(t, second, "x", "2")
	again.want(t, "x", "2")

	o.Prefix = "another/"
	if value, ok := New(o).Get("x"); ok {
		t.Errorf("a copy of another place is used: %q", value)
	}
	o.File = t.TempDir() // cannot be read as a file
	if _, ok := New(o).Get("x"); ok {
		t.Error("a folder is used as a copy")
	}
}

// An item that cannot be decrypted keeps its last known value, and an older version is not accepted.
func TestAttackedItems(t *testing.T) {
	p := startPlace(t, s3test.Start(t, "sim-aws"))
	o := p.options(t)
	s := newStore(t, o)
	set(t, s, "x", "old")
	s.Flush(t.Context())
	client := p.client
	old := s3test.Content(t, client, p.bucket, "state/items/x")
	set(t, s, "x", "new")
	set(t, s, "y", "other")
	s.Flush(t.Context())
	foreign, err := keyring.Parse(secretKey('b'))
	must.OK(t, err)
	sealed, err := foreign.Seal("x", time.Now().Add(time.Hour).UnixMilli(), []byte("foreign"))
	must.OK(t, err)
	for name, text := range map[string]string{
		"older": old, "of-another-name": s3test.Content(t, client, p.bucket, "state/items/y"), "damaged": "{",
		"of-another-key": sealed,
	} {
		s3test.Put(t, client, p.bucket, "state/items/x", text)
		for range 2 {
			must.OK(t, s.sync(t.Context()))
		}
		if value, _ := s.Get("x"); string(value) != "new" {
			t.Errorf("%s: the item is %q", name, value)
		}
		value, err := s.Read(t.Context(), "x")
		if name == "older" && (err != nil || string(value) != "new") {
			t.Errorf("Read of an older version = %q, %v", value, err)
		}
		if name != "older" && (err == nil || !strings.Contains(err.Error(), "state/items/x")) {
			t.Errorf("%s: Read returns %v", name, err)
		}
	}
	s3test.Put(t, client, p.bucket, "state/items/x", old)
	must.OK(t, s.Update(t.Context(), "x", func(value []byte) ([]byte, error) { return append(value, "er"...), nil }))
	if value, err := p.store(t).Read(t.Context(), "x"); err != nil || string(value) != "newer" {
		t.Errorf("an update of an older version stores %q, %v", value, err)
	}
	s.Flush(t.Context())
	key := "state/items/x"
	_, err = client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &p.bucket, Key: &key})
	must.OK(t, err)
	must.OK(t, s.sync(t.Context()))
	s3test.Put(t, client, p.bucket, "state/items/x", old)
	must.OK(t, s.sync(t.Context()))
	if value, ok := s.Get("x"); ok {
		t.Errorf("an old version of a deleted item is accepted: %q", value)
	}
	if _, err := s.Read(t.Context(), "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read of an old version of a deleted item returns %v", err)
	}
	set(t, s, "x", "newest")
	if value, err := p.store(t).Read(t.Context(), "x"); err != nil || string(value) != "newest" {
		t.Errorf("after the item was created again, it is %q, %v", value, err)
	}
}

func TestUpdateErrors(t *testing.T) {
	p := startPlace(t, s3test.Start(t, "sim-aws"))
	s := p.store(t)
	refused := errors.New("refused")
	err := s.Update(t.Context(), "x", func([]byte) ([]byte, error) { return nil, refused })
	if !errors.Is(err, refused) {
		t.Errorf("Update returns %v", err)
	}
	large := func([]byte) ([]byte, error) { return make([]byte, maxItem), nil }
	if err := s.Update(t.Context(), "x", large); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("Update with a large value returns %v", err)
	}
	p.bucket = "no-such-bucket"
	s = p.store(t)
	if err := s.Update(t.Context(), "x", large); err == nil {
		t.Error("Update succeeds without a bucket")
	}
	if err := s.Delete(t.Context(), "x"); err == nil {
		t.Error("Delete succeeds without a bucket")
	}
}

// After many changes at once, a server lists all items.
func TestManyChanges(t *testing.T) {
	p := startPlace(t, s3test.Start(t, "sim-aws"))
	a, b := p.store(t), p.store(t)
	must.OK(t, b.sync(t.Context()))
	names := make([]string, maxRecent+1)
	for n := range names {
		names[n] = strconv.Itoa(n)
	}
	set(t, a, "x", "1")
	a.Flush(t.Context())
	must.OK(t, a.count(t.Context(), names))
	must.OK(t, b.poll(t.Context()))
	if value, ok := b.Get("x"); !ok || string(value) != "1" {
		t.Errorf("Get = %q, %v", value, ok)
	}
}

// The server becomes usable later than the process.
func TestVerifyLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Bucket: "b", Log: slog.New(slog.DiscardHandler)})
		ctx, stop := context.WithCancel(t.Context())
		calls := 0
		s.Run(ctx, func(context.Context) error {
			if calls++; calls == 3 {
				stop()
			}
			return errors.New("not yet")
		})
		if calls != 3 {
			t.Errorf("verify was called %d times", calls)
		}
	})
}
