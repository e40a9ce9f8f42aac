package store

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/s3client/profile"
	"github.com/babelftp/babelftp/internal/s3sim"
	"github.com/babelftp/babelftp/internal/s3test"
)

func TestMain(m *testing.M) { s3test.Main(m) }

func newStore(t *testing.T, client Client, bucket string) *Store {
	return New(client, bucket, "servers/", slog.New(slog.NewTextHandler(t.Output(), nil)))
}

// onEachServer runs a test on S3 servers that keep conditions, that refuse them (501), and that ignore them. Each request takes a moment, of a time
// that does not pass while the machine is busy.
func onEachServer(t *testing.T, test func(t *testing.T, newStore func() *Store)) {
	for name, opts := range map[string]s3sim.Options{
		"conditions": {Profile: driver.Profile{ConditionalPut: true}},
		"refuses":    {RefuseUnsupported: true},
		"ignores":    {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const bucket = "bucket"
				server := s3sim.New(opts)
				server.CreateBucket(bucket)
				slow := &s3sim.Caller{Fault: func(s3sim.Operation) s3sim.Fault {
					return s3sim.Fault{Before: 100 * time.Millisecond, After: 100 * time.Millisecond}
				}}
				test(t, func() *Store { return newStore(t, server.Client(slow), bucket) })
			})
		})
	}
}

// What certmagic asks of a storage.
func TestStore(t *testing.T) {
	server := s3test.Start(t, "embedded")
	bucket := server.Bucket(t)
	s, ctx := newStore(t, server.Client(profile.RepeatUnstored("")), bucket), t.Context()
	if _, err := s.Load(ctx, "a/b/c"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing value: %v", err)
	}
	for key, value := range map[string]string{"a/b/c": "one", "a/b/d": "two", "a/bc": "three"} {
		if err := s.Store(ctx, key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Store(ctx, "a/b/c", []byte("new")); err != nil {
		t.Fatal(err)
	}
	if value, err := s.Load(ctx, "a/b/c"); err != nil || string(value) != "new" {
		t.Errorf("%q, %v", value, err)
	}
	for _, tc := range []struct {
		path      string
		recursive bool
		want      []string
	}{{"a", false, []string{"a/b", "a/bc"}}, {"a", true, []string{"a/b/c", "a/b/d", "a/bc"}}, {"a/b", false, []string{"a/b/c", "a/b/d"}}, {"", false, []string{"a"}}} {
		keys, err := s.List(ctx, tc.path, tc.recursive)
		if slices.Sort(keys); err != nil || !slices.Equal(keys, tc.want) {
			t.Errorf("%q, %v has %q: %v, want %q", tc.path, tc.recursive, keys, err, tc.want)
		}
	}
	if _, err := s.List(ctx, "none", true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
	if info, err := s.Stat(ctx, "a/b/c"); err != nil || !info.IsTerminal || info.Size != 3 || info.Key != "a/b/c" || time.Since(info.Modified) > time.Hour {
		t.Errorf("%+v, %v", info, err)
	}
	if info, err := s.Stat(ctx, "a/b"); err != nil || info.IsTerminal {
		t.Errorf("%+v, %v", info, err)
	}
	if !s.Exists(ctx, "a/b") || !s.Exists(ctx, "a/bc") || s.Exists(ctx, "a/x") {
		t.Error("what exists")
	}
	if keys := s3test.Objects(t, server.Client(), bucket); !slices.Contains(keys, "servers/.babelftp/acme/a/b/c") {
		t.Errorf("the bucket has %q", keys)
	}
	for _, key := range []string{"a/b", "a/b", "none"} {
		if err := s.Delete(ctx, key); err != nil {
			t.Error(err)
		}
	}
	if keys, err := s.List(ctx, "", true); err != nil || !slices.Equal(keys, []string{"a/bc"}) {
		t.Errorf("%q, %v", keys, err)
	}
}

// An S3 server that does not answer is no missing value.
func TestErrors(t *testing.T) {
	server := s3test.Start(t, "embedded")
	s, ctx := newStore(t, server.Client(profile.RepeatUnstored("")), "no-such-bucket"), t.Context()
	for name, do := range map[string]func() error{
		"store":  func() error { return s.Store(ctx, "a", nil) },
		"load":   func() error { _, err := s.Load(ctx, "a"); return err },
		"list":   func() error { _, err := s.List(ctx, "a", true); return err },
		"delete": func() error { return s.Delete(ctx, "a") },
		"stat":   func() error { _, err := s.Stat(ctx, "a"); return err },
		"lock":   func() error { return s.Lock(ctx, "a") },
	} {
		if err := do(); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "s3://no-such-bucket/servers/.babelftp/acme/") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Unlock(ctx, "a"); err == nil {
		t.Error("a lock that the server does not have is released")
	}
	ended, end := context.WithCancel(ctx)
	end()
	if _, err := s.Load(ended, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// No two servers have a lock together. A heartbeat keeps it for longer than it takes to expire.
func TestLock(t *testing.T) {
	onEachServer(t, func(t *testing.T, newStore func() *Store) {
		var holders atomic.Int32
		var wait sync.WaitGroup
		for i := range 3 {
			s := newStore()
			wait.Go(func() {
				if err := s.Lock(t.Context(), "issue ftp.acme.example"); err != nil {
					t.Error(err)
					return
				}
				if holders.Add(1) != 1 {
					t.Error("two servers have the lock")
				}
				if i == 0 {
					time.Sleep(2 * s.times.expiry)
				}
				holders.Add(-1)
				if err := s.Unlock(t.Context(), "issue ftp.acme.example"); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	})
}

// The lock of a server that has died goes to another one. The end of the wait is that of the context.
func TestLockOfADeadServer(t *testing.T) {
	onEachServer(t, func(t *testing.T, newStore func() *Store) {
		dead, other := newStore(), newStore()
		if err := dead.Lock(t.Context(), "name"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*other.times.expiry)
		defer cancel()
		if err := other.Lock(ctx, "name"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the wait for a lock: %v", err)
		}
		dead.locks["name"].stop()
		<-dead.locks["name"].ended
		if err := other.Lock(t.Context(), "name"); err != nil {
			t.Fatal(err)
		}
		if err := dead.Unlock(t.Context(), "name"); err != nil {
			t.Error(err)
		}
		if _, err := other.Stat(t.Context(), lockKey("name")); err != nil {
			t.Errorf("the dead server has released the lock of the other one: %v", err)
		}
		if err := other.Unlock(t.Context(), "name"); err != nil {
			t.Error(err)
		}
	})
}

// brief is for one server that nothing hurries: it has the lock, however long the machine takes.
func brief() times {
	return times{heartbeat: 50 * time.Millisecond, expiry: time.Hour, settle: time.Millisecond, poll: 10 * time.Millisecond}
}

// A heartbeat that finds another version knows that the lock is lost.
func TestLockIsLost(t *testing.T) {
	server := s3test.Start(t, "embedded")
	bucket := server.Bucket(t)
	s := newStore(t, server.Client(profile.RepeatUnstored("")), bucket)
	s.times = brief()
	if err := s.Lock(t.Context(), "name"); err != nil {
		t.Fatal(err)
	}
	_, err := server.Client().PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: &bucket, Key: aws.String("servers/.babelftp/acme/" + lockKey("name")), Body: strings.NewReader("of another server"),
	})
	if err != nil {
		t.Fatal(err)
	}
	<-s.locks["name"].ended
	if err := s.Unlock(t.Context(), "name"); err != nil {
		t.Error(err)
	}
	if value, err := s.Load(t.Context(), lockKey("name")); err != nil || string(value) != "of another server" {
		t.Errorf("the lock of the other server is %q, %v", value, err)
	}
}
