package audit

import (
	"net/netip"

	"github.com/babelftp/babelftp/internal/base/limits"
)

// An Act is what an administrator does, or what the server does by itself: a reload of the configuration, or a ban
// after failures.
type Act struct {
	Event         string
	Administrator string // the name, or what has made the server do it
	Client        string // the address of the administrator, or what else the demand came by
	About         []any  // keys and values
}

// Write writes the line of an act. A nil log has none.
func (l *Log) Write(a *Act, err error) {
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

// EventAdministrator is the event of an administrator's login.
const EventAdministrator = "admin_login"

// AdministratorRefused writes that a login as an administrator had a wrong password. The name is empty where no
// administrator has it. A nil log has no lines.
func (l *Log) AdministratorRefused(name string, client netip.AddrPort) {
	if name == "" {
		l.refused(client, "unknown_user")
		return
	}
	l.refused(client, "wrong_password", "administrator", name)
}

// CertificateRefused writes that a client certificate, which was a login of an administrator in the TLS handshake, is
// none any more. A nil log has no lines.
func (l *Log) CertificateRefused(subject string, client netip.AddrPort) {
	l.refused(client, "certificate", "certificate", subject)
}

// refused writes a login as an administrator that was refused.
func (l *Log) refused(client netip.AddrPort, reason string, about ...any) {
	if l == nil {
		return
	}
	why := kind{client: limits.Network(client.Addr()), event: EventAdministrator, reason: reason}
	if l.strangers.wanted(why) {
		about = append([]any{"client", client.String()}, about...)
		l.out.Info(why.event, append(about, "outcome", outcomeFailed, "reason", reason)...)
	}
}
