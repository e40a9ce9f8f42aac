package control

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/babelftp/babelftp/i18n"
)

// activeSource connects to the client.
type activeSource struct {
	address netip.AddrPort
	local   netip.Addr
	ctx     context.Context
	cancel  context.CancelFunc
}

func (a *activeSource) open(ctx context.Context) (net.Conn, error) {
	defer a.cancel()
	stop := context.AfterFunc(ctx, a.cancel)
	defer stop()
	dialer := net.Dialer{
		LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(a.local, 0)),
		KeepAlive: -1, // stalls are watched for
	}
	if deadline, ok := ctx.Deadline(); ok {
		dialer.Timeout = time.Until(deadline)
	}
	return dialer.DialContext(a.ctx, "tcp", a.address.String())
}

func (a *activeSource) close() { a.cancel() }

// port is PORT (RFC 959 4.1.2).
func (s *session) port(arg string) {
	var b [6]byte
	fields := strings.Split(arg, ",")
	ok := len(fields) == len(b)
	for i := range b {
		if !ok {
			break
		}
		var n uint64
		n, err := strconv.ParseUint(fields[i], 10, 8)
		b[i], ok = byte(n), err == nil && isNumber(fields[i])
	}
	if !ok {
		s.syntaxError()
		return
	}
	s.prepareActive(netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[:4])), uint16(b[4])<<8|uint16(b[5])))
}

// eprt is EPRT (RFC 2428 2): the first character is the delimiter.
func (s *session) eprt(arg string) {
	fields := strings.Split(arg, arg[:1])
	if len(fields) != 5 || fields[0] != "" || fields[4] != "" || !isNumber(fields[1]) || !isNumber(fields[3]) {
		s.syntaxError()
		return
	}
	if fields[1] != "1" && fields[1] != "2" {
		s.unsupportedProtocol("1,2")
		return
	}
	addr, err := netip.ParseAddr(fields[2])
	port, portErr := strconv.ParseUint(fields[3], 10, 16)
	if err != nil || portErr != nil || addr.Zone() != "" || addr.Is4() != (fields[1] == "1") {
		s.syntaxError()
		return
	}
	s.prepareActive(netip.AddrPortFrom(addr.Unmap(), uint16(port)))
}

// firstUserPort is the first port that needs no privileges: connections to
// lower ones could be meant for another service, and are answered with 504
// (RFC 2577 3).
const firstUserPort = 1024

// prepareActive accepts the address of a data connection when it is the
// client's own, so that nobody can be reached through this server (RFC 2577 3).
func (s *session) prepareActive(address netip.AddrPort) {
	switch {
	case s.data.epsvAll:
		s.say(503, i18n.ExtendedPassiveOnly)
	case address.Addr() != s.conn.Remote():
		s.log.Warn("data connection to a foreign address refused", "address", address)
		s.say(501, i18n.DataAddressRefused)
	case address.Port() < firstUserPort:
		s.log.Warn("data connection to a low port refused", "address", address)
		s.say(504, i18n.ParameterNotImplemented, s.verb)
	default:
		ctx, cancel := context.WithCancel(s.ctx)
		s.data.prepare(&activeSource{address: address, local: s.conn.Local(), ctx: ctx, cancel: cancel})
		s.say(200, i18n.DataAddressAccepted)
	}
}
