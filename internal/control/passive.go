package control

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/wire"
)

// passiveSource waits for the client on a port of its own.
type passiveSource struct {
	listener *net.TCPListener
	client   netip.Addr // who may connect
}

// open accepts the first connection from the client's address; others are
// closed.
func (p *passiveSource) open(ctx context.Context) (net.Conn, error) {
	defer p.close()
	stop := context.AfterFunc(ctx, p.close)
	defer stop()
	if deadline, ok := ctx.Deadline(); ok {
		if err := p.listener.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return nil, err
		}
		if wire.AddrOf(conn.RemoteAddr()) == p.client {
			return conn, nil
		}
		_ = conn.Close()
	}
}

func (p *passiveSource) close() { _ = p.listener.Close() }

// pasv is PASV (RFC 959 4.1.2). It can name IPv4 addresses only.
func (s *session) pasv(string) {
	if s.data.epsvAll {
		s.say(503, i18n.ExtendedPassiveOnly)
		return
	}
	shown := s.server.cfg.PublicAddress
	if local := s.conn.Local(); !shown.IsValid() {
		shown = local
	}
	if !shown.Is4() {
		s.say(425, i18n.PassiveNeedsIPv4)
		return
	}
	port, ok := s.listenPassive()
	if !ok {
		return
	}
	ip := shown.As4()
	s.send(wire.NewReply(227, fmt.Sprintf("%s (%d,%d,%d,%d,%d,%d)", s.text(i18n.EnteringPassive),
		ip[0], ip[1], ip[2], ip[3], port>>8, port&0xff)))
}

// epsv is EPSV (RFC 2428 3).
func (s *session) epsv(arg string) {
	switch strings.ToUpper(arg) {
	case "":
	case "ALL":
		s.data.epsvAll = true
		s.say(200, i18n.OK)
		return
	default:
		if !isNumber(arg) {
			s.syntaxError()
			return
		}
		if own := s.protocol(); arg != own {
			s.unsupportedProtocol(own)
			return
		}
	}
	if port, ok := s.listenPassive(); ok {
		s.send(wire.NewReply(229, s.text(i18n.EnteringExtendedPassive)+" (|||"+strconv.Itoa(int(port))+"|)"))
	}
}

// protocol is the number that RFC 2428 2 gives to the control connection's
// network protocol.
func (s *session) protocol() string {
	if s.conn.Local().Is4() {
		return "1"
	}
	return "2"
}

func (s *session) unsupportedProtocol(supported string) {
	s.send(wire.NewReply(522, s.text(i18n.DataProtocolUnsupported)+" ("+supported+")"))
}

// listenPassive opens a port for the next transfer, on the address that the
// client has reached. When there is none it tells the client.
func (s *session) listenPassive() (port uint16, ok bool) {
	s.data.close()
	listener, err := s.server.cfg.PassivePorts.listen(s.ctx, s.conn.Local())
	if err != nil {
		s.log.Error("no passive port", "err", err)
		s.say(425, i18n.PassivePortUnavailable)
		return 0, false
	}
	s.data.prepare(&passiveSource{listener: listener, client: s.conn.Remote()})
	return listener.Addr().(*net.TCPAddr).AddrPort().Port(), true
}

// dynamicPorts are those for whoever needs one for a while (RFC 6335 6). The
// kernel, asked for any, looks for one that was not used for a minute: once some
// hundred transfers a second have used them all up that takes it milliseconds.
func dynamicPorts() PortRange { return PortRange{49152, 65535} }

func (r PortRange) size() int { return int(r.Last) - int(r.First) + 1 }

// listen opens a free port of the range, beginning anywhere in it so that the
// next one cannot be guessed.
func (r PortRange) listen(ctx context.Context, local netip.Addr) (*net.TCPListener, error) {
	if r == (PortRange{}) {
		r = dynamicPorts()
	}
	size := r.size()
	start := rand.IntN(size)
	config := net.ListenConfig{KeepAlive: -1} // stalls are watched for
	var err error
	for i := range size {
		port := r.First + uint16((start+i)%size)
		var l net.Listener
		l, err = config.Listen(ctx, "tcp", netip.AddrPortFrom(local, port).String())
		if err == nil {
			return l.(*net.TCPListener), nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return nil, err
}
