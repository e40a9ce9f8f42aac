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
	// timeout bounds a lookup.
	timeout = 5 * time.Second
	// patience is how long Addrs waits for a lookup before it returns the last addresses, and hasty is the same after
	// a lookup that has failed.
	patience = 500 * time.Millisecond
	hasty    = 20 * time.Millisecond
	// keep is how long addresses stay while the name server does not answer. Others may have them then.
	keep = time.Hour
)

// A LookupFunc finds the addresses of a host.
type LookupFunc func(ctx context.Context, host string) ([]netip.Addr, error)

// SystemLookup asks the system. An address is its own.
func SystemLookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// A Host is a host whose addresses are remembered.
type Host struct {
	name  string
	find  LookupFunc
	known atomic.Pointer[answer]

	mu      sync.Mutex
	looking chan struct{} // closed when the lookup has ended that runs, nil where none does
}

// An answer is the addresses of a host.
type answer struct {
	addrs  []netip.Addr
	found  time.Time // when the name server has said so
	at     time.Time // when it was asked last
	failed bool      // and did not answer
}

// current are the addresses, and none where others may have them.
func (a *answer) current() []netip.Addr {
	if time.Since(a.found) > keep {
		return nil
	}
	return a.addrs
}

// NewHost remembers the addresses of a host, which find finds.
func NewHost(name string, find LookupFunc) *Host {
	h := &Host{name: name, find: find}
	h.known.Store(&answer{})
	return h
}

// Name is the name of the host.
func (h *Host) Name() string { return h.name }

// Known are the addresses that the last lookup has found.
func (h *Host) Known() []netip.Addr { return h.known.Load().current() }

// Addrs are the addresses of the host, looked up within the time age. Where a lookup takes long or fails they are the
// last ones, except if there is no such host. A lookup goes on after the end of ctx.
func (h *Host) Addrs(ctx context.Context, age time.Duration) []netip.Addr {
	known := h.known.Load()
	most := patience
	switch {
	case time.Since(known.at) < age:
		return known.current()
	case len(known.current()) == 0:
		return h.Renewed(ctx, age)
	case known.failed:
		most = hasty
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return h.Renewed(ctx, age)
}

// Renewed is Addrs, and waits for the name server until ctx ends.
func (h *Host) Renewed(ctx context.Context, age time.Duration) []netip.Addr {
	select {
	case <-h.Look(ctx, age):
	case <-ctx.Done():
	}
	return h.Known()
}

// ended is the channel of a lookup that is not needed.
func ended() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Look begins a lookup, unless there was one within the time age. The channel is closed when it has ended. All
// callers share one lookup.
func (h *Host) Look(ctx context.Context, age time.Duration) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case time.Since(h.known.Load().at) < age:
		return ended()
	case h.looking == nil:
		looking := make(chan struct{})
		h.looking = looking
		panics.Go(func() { h.lookUp(context.WithoutCancel(ctx), looking) })
	}
	return h.looking
}

// lookUp asks the name server.
func (h *Host) lookUp(ctx context.Context, done chan struct{}) {
	defer close(done)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found, err := panics.Result(func() ([]netip.Addr, error) { return h.find(ctx, h.name) })
	now := time.Now()
	next := &answer{found: now, at: now}
	missing, ok := errors.AsType[*net.DNSError](err)
	switch {
	case err == nil:
		for _, addr := range found {
			next.addrs = append(next.addrs, addr.Unmap())
		}
	case !ok || !missing.IsNotFound:
		before := h.known.Load()
		next.addrs, next.found, next.failed = before.addrs, before.found, true
	}
	h.known.Store(next)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looking = nil
}
