package audit

import (
	"net/netip"

	"github.com/babelftp/babelftp/internal/base/limits"
)

// An Action is done by an administrator or by the server itself: a reload of the configuration, or a ban after
// failures.
type Action struct {
	Event         string
	Administrator string // name of the administrator, or the cause of the server's action
	Client        string // address of the administrator, or how the request arrived
	About         []any  // additional keys and values
}

// Write writes the line of an action. It does nothing if l is nil.
func (l *Log) Write(a *Action, err error) {
	if l == nil {
		return
	}
	about := []any{"client", a.Client, "administrator", a.Administrator, "outcome", outcomeOK}
	if err != nil {
		about[len(about)-1] = outcomeFailed
	}
	about = append(about, a.About...)
	if err != nil {
		about = append(about, "error", err.Error())
	}
	l.out.Info(a.Event, about...)
}

// Events of the logins of administrators.
const (
	EventAdministrator       = "admin_login"
	EventAdministratorLogout = "admin_logout"
)

// AdministratorRefused writes a failed login of an administrator. The name is empty if no such administrator exists.
// It does nothing if l is nil.
func (l *Log) AdministratorRefused(name string, client netip.AddrPort) {
	if name == "" {
		l.writeRefused(client, "unknown_user")
		return
	}
	l.writeRefused(client, "wrong_password", "administrator", name)
}

// CertificateRefused writes that a client certificate was accepted as a login in the TLS handshake, but is no longer
// valid. It does nothing if l is nil.
func (l *Log) CertificateRefused(subject string, client netip.AddrPort) {
	l.writeRefused(client, "certificate", "certificate", subject)
}

// ProviderRefused writes a failed login of an administrator at an OpenID Connect provider. The name is empty if the
// provider has not confirmed who it is. It does nothing if l is nil.
func (l *Log) ProviderRefused(name, reason string, client netip.AddrPort) {
	about := []any{"login", "oidc"}
	if name != "" {
		about = append(about, "administrator", name)
	}
	l.writeRefused(client, reason, about...)
}

// writeRefused writes a refused login of an administrator.
func (l *Log) writeRefused(client netip.AddrPort, reason string, about ...any) {
	if l == nil {
		return
	}
	why := kind{client: limits.Network(client.Addr()), event: EventAdministrator, reason: reason}
	if l.strangers.wanted(why) {
		about = append([]any{"client", client.String()}, about...)
		l.out.Info(why.event, append(about, "outcome", outcomeFailed, "reason", reason)...)
	}
}
