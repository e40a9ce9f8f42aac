package sessionlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/babelftp/babelftp/internal/report"
)

// MaxTime limits the duration of a rule, so that none is forgotten.
const MaxTime = 24 * time.Hour

// A Rule selects sessions whose commands and replies are logged. A session must match all fields that are not empty.
type Rule struct {
	Network netip.Prefix `json:"network,omitzero"` // network of the client
	Tenant  string       `json:"tenant,omitempty"` // selected with HOST, TLS or a login
	User    string       `json:"user,omitempty"`   // after the login: alice, or alice@acme
	Until   time.Time    `json:"until"`
}

// NewRule returns a rule for a duration. The address may be a network (CIDR). Empty arguments match everything, but at
// least one must be set.
func NewRule(address, tenant, user string, d time.Duration) (Rule, error) {
	r := Rule{Tenant: tenant, User: user, Until: time.Now().Add(d)}
	switch {
	case address == "" && tenant == "" && user == "":
		return Rule{}, errors.New("missing address, tenant or user")
	case d <= 0 || d > MaxTime:
		return Rule{}, fmt.Errorf("invalid duration %s: want more than 0 and at most %s", d, MaxTime)
	case address == "":
		return r, nil
	}
	var err error
	r.Network, err = ParseNetwork(address)
	return r, err
}

// ParseNetwork parses an address, the address and port of a session, or a network (CIDR).
func ParseNetwork(address string) (netip.Prefix, error) {
	addr, err := netip.ParseAddr(address)
	if session, wrong := netip.ParseAddrPort(address); wrong == nil {
		addr, err = session.Addr(), nil
	}
	if err == nil {
		addr = addr.Unmap().WithZone("")
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	network, err := netip.ParsePrefix(address)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("invalid address %q: want an address like 192.0.2.7 or a network like 192.0.2.0/24", address)
	}
	return network.Masked(), nil
}

// matches reports whether the rule applies to a session.
func (r *Rule) matches(c *report.Client) bool {
	return time.Now().Before(r.Until) &&
		(!r.Network.IsValid() || r.Network.Contains(c.Address)) &&
		(r.Tenant == "" || r.Tenant == c.Tenant) &&
		(r.User == "" || c.User != "" && (r.User == c.User || r.User == c.User+"@"+c.Tenant))
}

// A Switch holds the rules of a server. It is safe for concurrent use. The zero value and nil have no rules.
type Switch struct {
	mu    sync.Mutex
	rules atomic.Pointer[[]Rule] // nil without rules
}

// Add adds a rule. It also applies to open sessions.
func (w *Switch) Add(r Rule) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rules := append(w.Rules(), r)
	w.rules.Store(&rules)
}

// Clear removes all rules, and returns those that were in force.
func (w *Switch) Clear() []Rule {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := w.Rules()
	w.rules.Store(nil)
	return held
}

// Rules returns the rules in force.
func (w *Switch) Rules() []Rule {
	rules := w.rules.Load()
	if rules == nil {
		return []Rule{}
	}
	return slices.DeleteFunc(slices.Clone(*rules), func(r Rule) bool { return !time.Now().Before(r.Until) })
}

func (w *Switch) matches(c *report.Client) bool {
	if w == nil {
		return false
	}
	rules := w.rules.Load()
	return rules != nil && slices.ContainsFunc(*rules, func(r Rule) bool { return r.matches(c) })
}

// logger returns the logger of a session. It writes debug lines while a rule matches the session.
func (w *Switch) logger(base *slog.Logger, c *report.Client) *slog.Logger {
	about := []any{"session", c.ID, "remote", c.Remote}
	if c.Tenant != "" {
		about = append(about, "tenant", c.Tenant)
	}
	if c.User != "" {
		about = append(about, "user", c.User)
	}
	if c.Software != "" {
		about = append(about, "software", c.Software)
	}
	return slog.New(&handler{base.Handler(), func() bool { return w.matches(c) }}).With(about...)
}

// A handler allows debug lines that its parent would not, and adds the trace ID of a line. This works because the
// handlers of slog do not check the level again in Handle.
type handler struct {
	slog.Handler
	on func() bool
}

// Enabled implements [slog.Handler].
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, level) || level >= slog.LevelDebug && h.on()
}

// Handle implements [slog.Handler].
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if of := trace.SpanContextFromContext(ctx); of.IsSampled() {
		r.AddAttrs(slog.String("trace_id", of.TraceID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.Handler.WithAttrs(attrs), h.on}
}

// WithGroup implements [slog.Handler].
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.on}
}
