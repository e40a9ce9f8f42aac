package account

import (
	"errors"
	"log/slog"
	"net/netip"

	"github.com/babelftp/babelftp/internal/limits"
)

// A FailureLog logs refused logins: one line a minute for each address and user, so that those who guess passwords do not flood the log. All
// unknown users count as one. The zero value is ready.
type FailureLog struct{ sampler limits.Sampler[failure] }

// A failure is whose login from where is refused.
type failure struct {
	client       netip.Prefix
	tenant, user string // empty for an unknown user
}

// Log logs a refused login from an address. The line has the number of those that were not logged before it.
func (l *FailureLog) Log(log *slog.Logger, addr netip.Addr, err error) {
	key := failure{client: limits.Network(addr)}
	if of, ok := errors.AsType[*LoginError](err); ok {
		key.tenant, key.user = of.Tenant, of.User
	}
	if more, first := l.sampler.Pass(key); first {
		log.Info("login refused; the log shows one a minute for an address and user", "err", err, "more", more)
	}
}
