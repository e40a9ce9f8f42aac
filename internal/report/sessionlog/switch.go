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

// MaxTime is how long a rule holds at most, so that none is forgotten.
const MaxTime = 24 * time.Hour

// A Rule says for which sessions the log has all commands and replies. A session must match each field that is not
// empty.
type Rule struct {
	Network netip.Prefix `json:"network,omitzero"` // of the client
	Tenant  string       `json:"tenant,omitempty"` // by HOST, TLS or login
	User    string       `json:"user,omitempty"`   // after the login: alice, or alice@acme
	Until   time.Time    `json:"until"`
}

// NewRule makes a rule that holds for a time. The address may be a network (CIDR). An empty text means any, but not
// in all of them.
func NewRule(address, tenant, user string, d time.Duration) (Rule, error) {
	r := Rule{Tenant: tenant, User: user, Until: time.Now().Add(d)}
	switch {
	case address == "" && tenant == "" && user == "":
		return Rule{}, errors.New("name an address, a tenant or a user")
	case d <= 0 || d > MaxTime:
		return Rule{}, fmt.Errorf("the time %s is out of range: want more than 0 and at most %s", d, MaxTime)
	case address == "":
		return r, nil
	}
	var err error
	r.Network, err = ParseNetwork(address)
	return r, err
}

// ParseNetwork returns the network of an address, which may have the port of a session, or of a network (CIDR).
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
		return netip.Prefix{}, fmt.Errorf("%q is neither an address like 192.0.2.7 nor a network like 192.0.2.0/24", address)
	}
	return network.Masked(), nil
}

// matches says whether a session has what the rule wants.
func (r *Rule) matches(c *report.Client) bool {
	return time.Now().Before(r.Until) &&
		(!r.Network.IsValid() || r.Network.Contains(c.Address)) &&
		(r.Tenant == "" || r.Tenant == c.Tenant) &&
		(r.User == "" || c.User != "" && (r.User == c.User || r.User == c.User+"@"+c.Tenant))
}

// A Switch has the rules of a server. Any goroutine may use it. The zero value and nil have none.
type Switch struct {
	mu    sync.Mutex
	rules atomic.Pointer[[]Rule] // nil for none
}

// Add makes a rule hold, for open sessions too.
func (w *Switch) Add(r Rule) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rules := append(w.Rules(), r)
	w.rules.Store(&rules)
}

// Clear ends all rules, and returns those that held.
func (w *Switch) Clear() []Rule {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := w.Rules()
	w.rules.Store(nil)
	return held
}

// Rules returns those that hold.
func (w *Switch) Rules() []Rule {
	rules := w.rules.Load()
	if rules == nil {
		return []Rule{}
	}
	return slices.DeleteFunc(slices.Clone(*rules), func(r Rule) bool { return !time.Now().Before(r.Until) })
}

func (w *Switch) on(c *report.Client) bool {
	if w == nil {
		return false
	}
	rules := w.rules.Load()
	return rules != nil && slices.ContainsFunc(*rules, func(r Rule) bool { return r.matches(c) })
}

// logger returns the logger of a session. It lets debug lines pass while the session matches a rule of the switch.
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
	return slog.New(&handler{base.Handler(), func() bool { return w.on(c) }}).With(about...)
}

// A handler lets lines pass that its parent would not, and adds the ID of the trace that a line belongs to. No
// handler of slog looks at the level again when it handles a line.
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
