package control

import (
	"cmp"
	"errors"
	"net/netip"
	"strconv"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// pasv handles PASV (RFC 959, 4.1.2). Its reply has room for an IPv4 address only.
func (s *session) pasv(string) (wire.Reply, error) {
	if s.data.epsvAll {
		return s.reply(503, i18n.ExtendedPassiveOnly)
	}
	address, err := s.publicAddress()
	if err != nil {
		s.log.Error("no public address for PASV; check passive.public_address", "err", err)
		return s.reply(425, i18n.PassiveAddressUnknown)
	}
	if !address.Is4() {
		return s.reply(425, i18n.PassiveNeedsIPv4)
	}
	port, ok := s.listenPassive()
	if !ok {
		return s.reply(425, i18n.PassivePortUnavailable)
	}
	s.data.address = netip.AddrPortFrom(address, port).String()
	text := s.identity.locale.Words(i18n.EnteringPassive)
	return wire.NewReply(227, text+" ("+dataconn.FormatPort(address, port)+")"), nil
}

// publicAddress returns the address to show in the reply to PASV.
func (s *session) publicAddress() (netip.Addr, error) {
	address, err := s.cfg.PublicAddress.For(s.ctx, s.dialogue.conn.Remote())
	return cmp.Or(address, s.dialogue.conn.Local()), err
}

// epsv handles EPSV (RFC 2428, 3).
func (s *session) epsv(arg string) (wire.Reply, error) {
	switch wire.Upper(arg) {
	case "":
	case "ALL":
		s.data.epsvAll = true
		return s.reply(200, i18n.OK)
	default:
		if !wire.IsNumber(arg) {
			return wire.Reply{}, errSyntax
		}
		if own := s.dialogue.conn.Local(); arg != dataconn.Protocol(own) {
			return s.unsupportedProtocol(own)
		}
	}
	port, ok := s.listenPassive()
	if !ok {
		return s.reply(425, i18n.PassivePortUnavailable)
	}
	s.data.address = ":" + strconv.Itoa(int(port))
	text := s.identity.locale.Words(i18n.EnteringExtendedPassive)
	return wire.NewReply(229, text+" (|||"+strconv.Itoa(int(port))+"|)"), nil
}

// unsupportedProtocol returns reply 522 to EPRT and EPSV. It names the protocol of own, an address of the control
// connection, as the only one that data connections can use (RFC 2428, 2 and 3).
func (s *session) unsupportedProtocol(own netip.Addr) (wire.Reply, error) {
	text := s.identity.locale.Words(i18n.DataProtocolUnsupported)
	return wire.NewReply(522, text+" ("+dataconn.Protocol(own)+")"), nil
}

// listenPassive opens a port for the next transfer on the local address of the control connection. If it fails, it
// logs the reason.
func (s *session) listenPassive() (port uint16, ok bool) {
	s.closeDataPort()
	conn, login := s.dialogue.conn, s.identity.login
	client := dataconn.Client{Local: conn.Socket(), Addr: conn.Remote(), Tenant: login.Tenant.Name, User: login.Name}
	source, port, err := s.cfg.Ports.Listen(s.ctx, client, s.cfg.Data.OpenTimeout)
	if err != nil {
		if !s.reportLimit(err) {
			s.log.Error("no free port for a passive data connection; check passive.ports and the limit of descriptors",
				"err", err)
		}
		return 0, false
	}
	s.data.prepared.Prepare(source)
	return port, true
}

// closeDataPort closes a prepared data connection that no transfer has used. If the client never connected to the
// passive port, it logs that, because a firewall may drop the port or the public address may be wrong.
func (s *session) closeDataPort() {
	if missing := s.data.prepared.Close(); missing != nil {
		s.log.Info("no data connection came", "data_address", s.data.address,
			"reached_address", s.dialogue.conn.Local(), "err", missing)
	}
	s.data.address = ""
}

// mustEncrypt reports whether data connections must be encrypted.
func (s *session) mustEncrypt() bool {
	if login := s.identity.login; login != nil {
		return login.TLSRequired
	}
	return s.cfg.requiresTLS(s.dialogue.conn.Remote())
}

// port handles PORT (RFC 959, 4.1.2).
func (s *session) port(arg string) (wire.Reply, error) {
	return s.prepareActive(dataconn.ParsePort(arg))
}

// eprt handles EPRT (RFC 2428, 2).
func (s *session) eprt(arg string) (wire.Reply, error) {
	return s.prepareActive(dataconn.ParseExtendedPort(arg, s.dialogue.conn.Remote()))
}

// prepareActive accepts the address of an active data connection only if it is the address of the client, so that
// no client can reach another host through this server (RFC 2577, 3).
func (s *session) prepareActive(address netip.AddrPort, err error) (wire.Reply, error) {
	switch {
	case errors.Is(err, dataconn.ErrProtocol):
		return s.unsupportedProtocol(s.dialogue.conn.Remote())
	case err != nil:
		return wire.Reply{}, errSyntax
	case s.data.epsvAll:
		return s.reply(503, i18n.ExtendedPassiveOnly)
	case !dataconn.LeadsTo(address.Addr(), s.dialogue.conn.Remote().WithZone("")):
		s.log.Warn("refused a data connection to an address other than the client's", "address", address)
		return s.reply(501, i18n.DataAddressRefused)
	case address.Port() < dataconn.FirstUserPort:
		s.log.Warn("refused a data connection to a port below 1024", "address", address)
		return s.reply(504, i18n.DataPortRefused)
	default:
		address = netip.AddrPortFrom(s.dialogue.conn.Remote(), address.Port())
		s.closeDataPort()
		s.data.prepared.Prepare(dataconn.Dial(s.ctx, address, s.dialogue.conn.Socket()))
		return s.reply(200, i18n.DataAddressAccepted)
	}
}
