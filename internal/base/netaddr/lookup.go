package netaddr

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/internal/base/panics"
)

const (
	// timeout limits a lookup.
	timeout = 5 * time.Second
	// maxWait limits the time that Addrs waits for a lookup before it returns the previous addresses. After a failed
	// lookup, it waits only for maxWaitAfterFailure.
	maxWait             = 500 * time.Millisecond
	maxWaitAfterFailure = 20 * time.Millisecond
	// keep is the time for which addresses are used while lookups fail. Afterwards another host may have them.
	keep = time.Hour
)

// A LookupFunc returns the addresses of a host.
type LookupFunc func(ctx context.Context, host string) ([]netip.Addr, error)

// SystemLookup looks up a host with the resolver of the system. If host is an IP address, it returns this address.
func SystemLookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// A Host caches the addresses of a host. It is safe for concurrent use.
type Host struct {
	name   string
	find   LookupFunc
	cached atomic.Pointer[result]

	mu       sync.Mutex
	inFlight chan struct{} // closed when the current lookup has ended, if any
}

// A result contains the addresses of a host.
type result struct {
	addrs    []netip.Addr
	foundAt  time.Time // when a lookup last succeeded
	lookedUp time.Time // when the last lookup ended
	failed   bool      // the last lookup failed
}

// current returns the addresses, or nil if they are too old.
func (r *result) current() []netip.Addr {
	if time.Since(r.foundAt) > keep {
		return nil
	}
	return r.addrs
}

// NewHost returns a Host whose addresses are looked up with find. It does not look them up yet.
func NewHost(name string, find LookupFunc) *Host {
	h := &Host{name: name, find: find}
	h.cached.Store(&result{})
	return h
}

// Name returns the name of the host.
func (h *Host) Name() string { return h.name }

// Cached returns the addresses that the last successful lookup has found, without a lookup.
func (h *Host) Cached() []netip.Addr { return h.cached.Load().current() }

// Addrs returns the addresses of the host, and looks them up first if the last lookup is older than age. If the lookup
// fails or takes long, Addrs returns the previous addresses. If the host does not exist, it returns nil. The lookup
// continues when ctx ends.
func (h *Host) Addrs(ctx context.Context, age time.Duration) []netip.Addr {
	cached := h.cached.Load()
	wait := maxWait
	switch {
	case time.Since(cached.lookedUp) < age:
		return cached.current()
	case len(cached.current()) == 0:
		return h.FreshAddrs(ctx, age)
	case cached.failed:
		wait = maxWaitAfterFailure
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return h.FreshAddrs(ctx, age)
}

// FreshAddrs is like Addrs, but waits for the lookup until ctx ends.
func (h *Host) FreshAddrs(ctx context.Context, age time.Duration) []netip.Addr {
	select {
	case <-h.Refresh(ctx, age):
	case <-ctx.Done():
	}
	return h.Cached()
}

// closed returns a closed channel.
func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Refresh starts a lookup unless the last one is younger than age. The channel is closed when the lookup has ended.
// Concurrent callers share one lookup.
func (h *Host) Refresh(ctx context.Context, age time.Duration) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case time.Since(h.cached.Load().lookedUp) < age:
		return closed()
	case h.inFlight == nil:
		done := make(chan struct{})
		h.inFlight = done
		panics.Go(func() { h.lookUp(context.WithoutCancel(ctx), done) })
	}
	return h.inFlight
}

// lookUp looks up the addresses and caches the result.
func (h *Host) lookUp(ctx context.Context, done chan struct{}) {
	defer close(done)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found, err := panics.Result(func() ([]netip.Addr, error) { return h.find(ctx, h.name) })
	now := time.Now()
	next := &result{foundAt: now, lookedUp: now}
	missing, ok := errors.AsType[*net.DNSError](err)
	switch {
	case err == nil:
		for _, addr := range found {
			next.addrs = append(next.addrs, addr.Unmap())
		}
	case !ok || !missing.IsNotFound:
		before := h.cached.Load()
		next.addrs, next.foundAt, next.failed = before.addrs, before.foundAt, true
	}
	h.cached.Store(next)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inFlight = nil
}
