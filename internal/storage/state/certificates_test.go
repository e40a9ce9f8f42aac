package state

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// The storage behaves as certmagic requires.
func TestCertificates(t *testing.T) {
	on(t, func(t *testing.T, p *place) {
		c, other := NewCertificates(p.store(t)), NewCertificates(p.store(t))
		ctx := t.Context()
		if _, err := c.Load(ctx, "certificates/ca/a/a.crt"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Load of a missing key returns %v", err)
		}
		if _, err := c.List(ctx, "certificates", true); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("List of a missing folder returns %v", err)
		}
		for _, key := range []string{"certificates/ca/a/a.crt", "certificates/ca/a/a.key", "certificates/ca/b/b.crt"} {
			must.OK(t, c.Store(ctx, key, []byte("1 "+key)))
			must.OK(t, c.Store(ctx, key, []byte("2 "+key)))
		}
		if value, err := other.Load(ctx, "certificates/ca/a/a.crt"); string(value) != "2 certificates/ca/a/a.crt" || err != nil {
			t.Errorf("Load = %q, %v", value, err)
		}
		for _, tt := range []struct {
			folder    string
			recursive bool
			want      []string
		}{
			{"certificates", false, []string{"certificates/ca"}},
			{"certificates/ca", false, []string{"certificates/ca/a", "certificates/ca/b"}},
			{"certificates/ca/a", false, []string{"certificates/ca/a/a.crt", "certificates/ca/a/a.key"}},
			{"certificates/ca", true, []string{"certificates/ca/a", "certificates/ca/a/a.crt", "certificates/ca/a/a.key",
				"certificates/ca/b", "certificates/ca/b/b.crt"}},
			{"", false, []string{"certificates"}},
		} {
			if got, err := other.List(ctx, tt.folder, tt.recursive); !slices.Equal(got, tt.want) || err != nil {
				t.Errorf("List(%q, %v) = %q, %v, want %q", tt.folder, tt.recursive, got, err, tt.want)
			}
		}
		if info, err := other.Stat(ctx, "certificates/ca/a/a.key"); !info.IsTerminal || info.Size != 25 || err != nil {
			t.Errorf("Stat of a file = %+v, %v", info, err)
		}
		if info, err := other.Stat(ctx, "certificates/ca"); info.IsTerminal || err != nil {
			t.Errorf("Stat of a folder = %+v, %v", info, err)
		}
		must.OK(t, other.Delete(ctx, "certificates/ca/a"))
		must.OK(t, other.Delete(ctx, "certificates/ca/a"))
		if c.Exists(ctx, "certificates/ca/a") || c.Exists(ctx, "certificates/ca/a/a.key") ||
			!c.Exists(ctx, "certificates/ca/b/b.crt") {
			t.Error("Delete did not delete exactly the keys below its key")
		}
	})
}

// Only one server holds a lock.
func TestLocks(t *testing.T) {
	on(t, func(t *testing.T, p *place) {
		var holders atomic.Int32
		var all sync.WaitGroup
		for range 2 {
			c := NewCertificates(p.store(t))
			all.Go(func() {
				if err := c.Lock(t.Context(), "issue_cert_a"); err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d servers hold the lock", n)
				}
				_, _ = c.List(t.Context(), "x", false)
				holders.Add(-1)
				if err := c.Unlock(t.Context(), "issue_cert_a"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

func TestLockErrors(t *testing.T) {
	p := startPlace(t, s3test.Start(t, "sim-aws"))
	c := NewCertificates(p.store(t))
	if err := c.Unlock(t.Context(), "a"); err == nil {
		t.Error("Unlock succeeds without a lock")
	}
	must.OK(t, c.Lock(t.Context(), "a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := NewCertificates(p.store(t)).Lock(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("Lock returns %v", err)
	}
	must.OK(t, c.Unlock(t.Context(), "a"))
	p.bucket = "no-such-bucket"
	if err := NewCertificates(p.store(t)).Lock(t.Context(), "a"); err == nil {
		t.Error("Lock succeeds without a bucket")
	}
}
