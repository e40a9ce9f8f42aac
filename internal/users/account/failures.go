package account

import (
	"errors"
	"log/slog"
	"net/netip"

	"github.com/babelftp/babelftp/internal/base/limits"
)

// A FailureLog logs refused logins: one line a minute for each address and user, so that those who guess passwords do
// not flood the log. All unknown users count as one. The zero value is ready.
type FailureLog struct{ sampler limits.Sampler[failure] }

// A failure is whose login from where is refused.
type failure struct {
	client       netip.Prefix
	tenant, user string // empty for an unknown user
	unavailable  bool
	clear        bool // refused for want of TLS
}

// Log logs a refused login from an address. The line has the number of those that were not logged before it.
func (l *FailureLog) Log(log *slog.Logger, addr netip.Addr, err error) {
	key := failure{client: limits.Network(addr), clear: errors.Is(err, ErrTLSRequired)}
	if of, ok := errors.AsType[*LoginError](err); ok {
		key.tenant, key.user = of.Tenant, of.User
	}
	if more, first := l.sampler.Pass(key); first {
		log.Info("login refused; the log shows one a minute for an address and user", "err", err, "more", more)
		return
	}
	log.Debug("login refused", "err", err)
}

// FailedTenant returns the name of the tenant whose login has failed, or nothing where the login has found none.
func FailedTenant(err error) string {
	if of, ok := errors.AsType[*LoginError](err); ok {
		return of.Tenant
	}
	if down, ok := errors.AsType[*UnavailableError](err); ok {
		return down.Tenant.Name
	}
	if full, ok := errors.AsType[*FullError](err); ok && full.Tenant != nil {
		return full.Tenant.Name
	}
	return ""
}

// LogUnavailable logs a login that could not be decided, or whose files cannot be reached: one line a minute for each
// tenant. Of the files the watcher of the bucket has told before.
func (l *FailureLog) LogUnavailable(log *slog.Logger, err error) {
	key, write := failure{unavailable: true, tenant: FailedTenant(err)}, log.Error
	if _, down := errors.AsType[*UnavailableError](err); down {
		write = log.Info
	}
	if more, first := l.sampler.Pass(key); first {
		write(
			"login failed by an error, not by a wrong password; the log shows one a minute for a tenant", "err", err,
			"more", more)
		return
	}
	log.Debug("login failed by an error", "err", err)
}
