package account

import (
	"errors"
	"log/slog"
	"net/netip"

	"github.com/babelftp/babelftp/internal/base/limits"
)

// A FailureLog logs refused logins, at most one line per minute for each address and user, so that guessing passwords
// does not flood the log. All unknown users count as one user. The zero value is ready to use.
type FailureLog struct{ sampler limits.Sampler[failure] }

// A failure is the key of a rate-limited log line.
type failure struct {
	client       netip.Prefix
	tenant, user string // empty for an unknown user
	unavailable  bool
	clear        bool // refused because the connection is not encrypted
}

// Log logs a refused login from an address. The attribute "more" is the number of refused logins that were omitted
// since the last line.
func (l *FailureLog) Log(log *slog.Logger, addr netip.Addr, err error) {
	key := failure{client: limits.Network(addr), clear: errors.Is(err, ErrTLSRequired)}
	if of, ok := errors.AsType[*LoginError](err); ok {
		key.tenant, key.user = of.Tenant, of.User
	}
	if more, first := l.sampler.Pass(key); first {
		log.Info("login refused; logged once a minute for each address and user", "err", err, "more", more)
		return
	}
	log.Debug("login refused", "err", err)
}

// FailedTenant returns the name of the tenant of a failed login, or an empty string if it is unknown.
func FailedTenant(err error) string {
	if of, ok := errors.AsType[*LoginError](err); ok {
		return of.Tenant
	}
	if down, ok := errors.AsType[*UnavailableError](err); ok && down.Tenant != nil {
		return down.Tenant.Name
	}
	if full, ok := errors.AsType[*FullError](err); ok && full.Tenant != nil {
		return full.Tenant.Name
	}
	return ""
}

// LogUnavailable logs a login that could not be decided, or whose files cannot be reached, at most one line per
// minute for each tenant. Unreachable files have the level INFO, because the watcher of the bucket has already logged
// an error.
func (l *FailureLog) LogUnavailable(log *slog.Logger, err error) {
	key, write := failure{unavailable: true, tenant: FailedTenant(err)}, log.Error
	if _, down := errors.AsType[*UnavailableError](err); down {
		write = log.Info
	}
	if more, first := l.sampler.Pass(key); first {
		write(
			"login failed because of an error, not a wrong password; logged once a minute for each tenant", "err", err,
			"more", more)
		return
	}
	log.Debug("login failed because of an error", "err", err)
}
