package netaddr

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestAddrs checks that addresses are looked up again when they are too old, that they are kept if the lookup fails,
// and dropped if the host no longer exists.
func TestAddrs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.8")
		found, foundErr, lookups := []netip.Addr{netip.MustParseAddr("::ffff:10.0.0.7")}, error(nil), 0
		h := NewHost("ftp.example", func(_ context.Context, name string) ([]netip.Addr, error) {
			lookups++
			if name != h0 {
				t.Errorf("lookup of %s", name)
			}
			return found, foundErr
		})
		want := func(age time.Duration, times int, addrs ...netip.Addr) {
			t.Helper()
			if got := h.Addrs(t.Context(), age); !slices.Equal(got, addrs) || lookups != times {
				t.Errorf("got %v after %d lookups, want %v after %d", got, lookups, addrs, times)
			}
			if got := h.Cached(); !slices.Equal(got, addrs) {
				t.Errorf("cached: got %v, want %v", got, addrs)
			}
		}
		if len(h.Cached()) > 0 || h.Name() != h0 {
			t.Errorf("%s has %v before a lookup", h.Name(), h.Cached())
		}
		want(time.Minute, 1, before)
		found = []netip.Addr{after}
		want(time.Minute, 1, before)
		time.Sleep(time.Second)
		want(time.Second, 2, after)
		time.Sleep(time.Minute)
		foundErr = errors.New("the name server does not answer")
		want(time.Minute, 3, after)
		want(time.Minute, 3, after)
		time.Sleep(time.Minute)
		found, foundErr = nil, &net.DNSError{Err: "no such host", IsNotFound: true}
		want(time.Minute, 4)
	})
}

// TestNameServerDown checks that the previous addresses are used for an hour while the name server does not respond,
// and that FreshAddrs waits for it.
func TestNameServerDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		addr := netip.MustParseAddr("10.0.0.7")
		responds := true
		h := NewHost(h0, func(ctx context.Context, _ string) ([]netip.Addr, error) {
			if responds {
				return []netip.Addr{addr}, nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		want := func(
			addrsOf func(context.Context, time.Duration) []netip.Addr, within time.Duration, addrs ...netip.Addr,
		) {
			t.Helper()
			begun := time.Now()
			if got := addrsOf(t.Context(), time.Second); !slices.Equal(got, addrs) || time.Since(begun) != within {
				t.Errorf("got %v after %v, want %v after %v", got, time.Since(begun), addrs, within)
			}
		}
		<-h.Refresh(t.Context(), time.Second)
		want(h.Addrs, 0, addr)
		responds = false
		time.Sleep(time.Second)
		want(h.Addrs, maxWait, addr)
		want(h.FreshAddrs, timeout-maxWait, addr) // waits for the same lookup
		time.Sleep(time.Second)
		want(h.Addrs, maxWaitAfterFailure, addr) // the previous lookup has failed
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if got := h.FreshAddrs(ended, 0); !slices.Equal(got, []netip.Addr{addr}) {
			t.Errorf("got %v after the end of the context, want %v", got, addr)
		}
		time.Sleep(keep)
		if got := h.Cached(); len(got) > 0 {
			t.Errorf("cached after %v: %v", keep, got)
		}
		want(h.Addrs, timeout)
		responds = true
		time.Sleep(time.Second)
		want(h.Addrs, 0, addr)
	})
}

// TestPanic checks that a panic in a lookup counts as a failure.
func TestPanic(t *testing.T) {
	h := NewHost(h0, func(context.Context, string) ([]netip.Addr, error) { panic("a bug") })
	if got := h.Addrs(t.Context(), time.Second); len(got) > 0 {
		t.Errorf("got %v after a panic", got)
	}
}

const h0 = "ftp.example"

// TestSystemLookup checks that addresses and localhost are resolved without a name server.
func TestSystemLookup(t *testing.T) {
	got, err := SystemLookup(t.Context(), "203.0.113.7")
	if err != nil || !slices.Equal(got, []netip.Addr{netip.MustParseAddr("203.0.113.7")}) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := SystemLookup(t.Context(), "localhost"); err != nil || len(got) == 0 {
		t.Errorf("localhost: got %v, %v", got, err)
	}
}
