package control

import (
	"net/netip"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/names/hostname"
	"github.com/babelftp/babelftp/internal/users/account"
)

// host is HOST (RFC 7151 3): it chooses the tenant. Before the login the last HOST counts, also after USER.
func (s *session) host(arg string) (wire.Reply, error) {
	if s.login != nil {
		return s.reply(503, i18n.HostTooLate)
	}
	name, ok := hostname.Parse(arg)
	if !ok {
		return s.syntaxError()
	}
	if sni := s.namedToTLS(); sni != "" && sni != name {
		return s.reply(504, i18n.HostMismatch) // RFC 7151 3.2.2
	}
	tenant, known := s.cfg.Backend.Host(name)
	if !known && !s.acceptsUnknown(name) {
		return s.reply(504, i18n.HostUnknown)
	}
	s.name = ""
	s.chooseHost(name, tenant)
	return s.greeting(i18n.HostAccepted, name), nil
}

// acceptsUnknown says whether HOST accepts a host that no tenant has, and then chooses no tenant. It accepts an
// address that is the server's own, never another one (RFC 7151 3.1). It accepts a name if the configuration says so
// (RFC 7151 3.2).
func (s *session) acceptsUnknown(name string) bool {
	if addr, err := netip.ParseAddr(name); err == nil {
		public, _ := s.publicAddress()
		return addr == s.conn.Local().WithZone("") || addr == public
	}
	return s.cfg.AcceptUnknownHosts
}

// chooseHost begins anew with a host, or none, and its tenant, which ends what LANG has chosen (RFC 2640 4.1). What
// names no tenant, such as the server's own address, leaves a session without one as it is: lftp sends LANG, then
// that.
func (s *session) chooseHost(name string, tenant *account.Tenant) {
	if tenant == nil {
		name = "" // users are those of all tenants
	}
	if name != s.hostname || tenant != nil {
		s.locale.Unselect()
	}
	s.hostname = name
	s.setTenant(tenant)
}

// namedToTLS is the host that the client has named to TLS (SNI, RFC 6066 3), empty when there is none.
func (s *session) namedToTLS() string {
	name, _ := hostname.Parse(s.conn.ServerName())
	return name
}
