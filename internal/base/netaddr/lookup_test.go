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

// Addresses are looked up again when they are older than they may be. An error of the name server changes nothing,
// and a host that is gone has none.
func TestAddrs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.8")
		found, foundErr, lookups := []netip.Addr{netip.MustParseAddr("::ffff:10.0.0.7")}, error(nil), 0
		h := NewHost("ftp.example", func(_ context.Context, name string) ([]netip.Addr, error) {
			lookups++
			if name != h0 {
				t.Errorf("%s is looked up", name)
			}
			return found, foundErr
		})
		want := func(age time.Duration, times int, addrs ...netip.Addr) {
			t.Helper()
			if got := h.Addrs(t.Context(), age); !slices.Equal(got, addrs) || lookups != times {
				t.Errorf("%v after %d lookups, want %v after %d", got, lookups, addrs, times)
			}
			if got := h.Known(); !slices.Equal(got, addrs) {
				t.Errorf("%v are known, want %v", got, addrs)
			}
		}
		if len(h.Known()) > 0 || h.Name() != h0 {
			t.Errorf("%s has %v before a lookup", h.Name(), h.Known())
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

// While the name server does not answer, the last addresses are used at once, for an hour. A caller that asks for new
// ones waits for it.
func TestNameServerAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		addr := netip.MustParseAddr("10.0.0.7")
		answers := true
		h := NewHost(h0, func(ctx context.Context, _ string) ([]netip.Addr, error) {
			if answers {
				return []netip.Addr{addr}, nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		want := func(
			look func(context.Context, time.Duration) []netip.Addr, within time.Duration, addrs ...netip.Addr,
		) {
			t.Helper()
			begun := time.Now()
			if got := look(t.Context(), time.Second); !slices.Equal(got, addrs) || time.Since(begun) != within {
				t.Errorf("%v after %v, want %v after %v", got, time.Since(begun), addrs, within)
			}
		}
		<-h.Look(t.Context(), time.Second)
		want(h.Addrs, 0, addr)
		answers = false
		time.Sleep(time.Second)
		want(h.Addrs, patience, addr)
		want(h.Renewed, timeout-patience, addr) // the same lookup
		time.Sleep(time.Second)
		want(h.Addrs, hasty, addr) // the lookup before has failed
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if got := h.Renewed(ended, 0); !slices.Equal(got, []netip.Addr{addr}) {
			t.Errorf("a client that has gone gets %v", got)
		}
		time.Sleep(keep)
		if got := h.Known(); len(got) > 0 {
			t.Errorf("%v are known after %v", got, keep)
		}
		want(h.Addrs, timeout)
		answers = true
		time.Sleep(time.Second)
		want(h.Addrs, 0, addr)
	})
}

// A bug in a lookup is one that has failed.
func TestPanic(t *testing.T) {
	h := NewHost(h0, func(context.Context, string) ([]netip.Addr, error) { panic("a bug") })
	if got := h.Addrs(t.Context(), time.Second); len(got) > 0 {
		t.Errorf("a lookup that panics finds %v", got)
	}
}

// h0 is the host of the test.
const h0 = "ftp.example"

// An address needs no name server.
func TestSystem(t *testing.T) {
	got, err := SystemLookup(t.Context(), "203.0.113.7")
	if err != nil || !slices.Equal(got, []netip.Addr{netip.MustParseAddr("203.0.113.7")}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := SystemLookup(t.Context(), "localhost"); err != nil || len(got) == 0 {
		t.Errorf("localhost is %v, %v", got, err)
	}
}
