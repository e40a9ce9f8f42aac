package control

import (
	"net/netip"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// host is HOST (RFC 7151 3): it chooses the tenant. Before the login the last HOST counts, also after USER.
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

// acceptsUnknown says whether HOST accepts a host that no tenant has, and then chooses no tenant. It accepts an
// address that is the server's own, never another one (RFC 7151 3.1). It accepts any name where no tenant has
// one (RFC 7151 3.2).
func (s *session) acceptsUnknown(name string) bool {
	if addr, err := netip.ParseAddr(name); err == nil {
		public, _ := s.publicAddress()
		return addr == s.dialogue.conn.Local().WithZone("") || addr == public
	}
	return s.cfg.AcceptUnknownHosts
}

// takeServerName takes the name that a client has given to TLS (SNI) for HOST, if a tenant has that name.
func (s *session) takeServerName() {
	name := s.dialogue.namedToTLS()
	if tenant, known := s.cfg.Backend.Host(name); known && s.identity.hostname == "" {
		s.identity.hostname = name
		s.identity.setTenant(tenant)
	}
}
