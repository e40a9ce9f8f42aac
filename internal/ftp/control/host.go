package control

import (
	"net/netip"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// host handles HOST (RFC 7151, 3), which selects the tenant. The last HOST before login counts, even after USER.
func (s *session) host(arg string) (wire.Reply, error) {
	if s.identity.login != nil {
		return s.reply(503, i18n.HostTooLate)
	}
	name, ok := netaddr.ParseHost(arg)
	if !ok {
		return wire.Reply{}, errSyntax
	}
	if sni := s.dialogue.namedToTLS(); sni != "" && sni != name {
		return s.reply(504, i18n.HostMismatch) // RFC 7151 3.2.2
	}
	tenant, known := s.cfg.Backend.Host(name)
	if !known && !s.acceptsUnknown(name) {
		return s.reply(504, i18n.HostUnknown)
	}
	s.identity.name = ""
	s.identity.chooseHost(name, tenant)
	return s.identity.greeting(i18n.HostAccepted, name), nil
}

// acceptsUnknown reports whether HOST accepts a name that belongs to no tenant. An address is accepted if it is an
// address of this server (RFC 7151, 3.1). Other names are accepted if no tenant has a host name (RFC 7151, 3.2).
func (s *session) acceptsUnknown(name string) bool {
	if addr, err := netip.ParseAddr(name); err == nil {
		public, _ := s.publicAddress()
		return addr == s.dialogue.conn.Local().WithZone("") || addr == public
	}
	return s.cfg.AcceptUnknownHosts
}

// takeServerName treats the server name of the TLS handshake (SNI) as a HOST command if a tenant has that name.
func (s *session) takeServerName() {
	name := s.dialogue.namedToTLS()
	if tenant, known := s.cfg.Backend.Host(name); known && s.identity.hostname == "" {
		s.identity.hostname = name
		s.identity.setTenant(tenant)
	}
}
