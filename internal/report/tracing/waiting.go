package tracing

import (
	"sync"
	"sync/atomic"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/babelftp/babelftp/internal/report"
)

// Attributes that identify the owner of a span.
const tenantKey, userKey = "babelftp.tenant", "user.name"

// ownerKey is the context key of the owner attributes of a command.
type ownerKey struct{}

// A waiting limits the spans that wait for the collector, with shares for tenants and users. A span that does not fit
// is lost.
type waiting struct {
	sdk.SpanProcessor
	ended atomic.Int64

	mu    sync.Mutex
	bytes *report.Shares
}

// OnEnd implements [sdk.SpanProcessor].
func (w *waiting) OnEnd(s sdk.ReadOnlySpan) {
	w.ended.Add(1)
	if w.hold(s) {
		w.SpanProcessor.OnEnd(s)
	}
}

func (w *waiting) hold(s sdk.ReadOnlySpan) bool {
	owner, bytes := measure(s)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.bytes.Fits(owner, bytes) {
		return false
	}
	w.bytes.Add(owner, bytes)
	return true
}

// release subtracts spans that no longer wait.
func (w *waiting) release(spans []sdk.ReadOnlySpan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range spans {
		owner, bytes := measure(s)
		w.bytes.Add(owner, -bytes)
	}
}

// measure returns the owner of a span, and its approximate size in bytes.
func measure(s sdk.ReadOnlySpan) (owner report.Owner, bytes int) {
	const fixed = 64 // overhead of an attribute
	bytes = len(s.Name())
	for _, a := range s.Attributes() {
		value := a.Value.String()
		bytes += fixed + len(a.Key) + len(value)
		switch a.Key {
		case tenantKey:
			owner.Tenant = value
		case userKey:
			owner.User = value
		}
	}
	return owner, max(minSpan, bytes)
}
