package dataconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// active is a [Source] that connects to the client.
type active struct {
	address netip.AddrPort
	local   netip.Addr
	ctx     context.Context
	cancel  context.CancelFunc
}

func (a *active) Open(ctx context.Context) (net.Conn, error) {
	defer a.cancel()
	stop := context.AfterFunc(ctx, a.cancel)
	defer stop()
	dialer := net.Dialer{
		KeepAlive: -1, // stalls are detected here
		Control:   limits.TransferReserve.Control,
	}
	if a.local.Is4() == a.address.Addr().Is4() { // they may differ behind a proxy
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(a.local, 0))
	}
	if deadline, ok := ctx.Deadline(); ok {
		dialer.Timeout = time.Until(deadline)
	}
	return dialer.DialContext(a.ctx, "tcp", a.address.String())
}

// Waits returns false, because the client listens since PORT.
func (a *active) Waits() bool { return false }

func (a *active) Close() { a.cancel() }

// Missing returns nil, because active connections use no passive port.
func (*active) Missing() error { return nil }

// Dial prepares the data connection of an active transfer. It connects to the client from an address of this
// server. ctx is the context of the session.
func Dial(ctx context.Context, client netip.AddrPort, local netip.Addr) Source {
	ctx, cancel := context.WithCancel(ctx)
	return &active{address: client, local: local, ctx: ctx, cancel: cancel}
}

// FirstUserPort is the first port that needs no privileges. A lower port may belong to another service, so the
// session refuses it with 504 (RFC 2577, 3).
const FirstUserPort = 1024

// LeadsTo reports whether the address in PORT or EPRT is the address of the client. The unspecified address of the
// same protocol is accepted too, because lftp sends :: over the loopback interface.
func LeadsTo(address, client netip.Addr) bool {
	return address == client || address.IsUnspecified() && address.Is4() == client.Is4()
}

// ErrProtocol reports an EPRT with a network protocol that cannot reach the client.
var ErrProtocol = errors.New("network protocol differs from the control connection")

var errSyntax = errors.New("invalid data address")

// Numbers of network protocols in EPSV and EPRT (RFC 2428, 2).
const (
	protocolIPv4 = "1"
	protocolIPv6 = "2"
)

// Protocol returns the number of the network protocol of an address (RFC 2428, 2): 1 for IPv4, 2 for IPv6.
func Protocol(addr netip.Addr) string {
	if addr.Is4() {
		return protocolIPv4
	}
	return protocolIPv6
}

// FormatPort formats an IPv4 address and a port for PORT and for the reply to PASV (RFC 959, 4.1.2): h1,h2,h3,h4,p1,p2.
func FormatPort(addr netip.Addr, port uint16) string {
	ip := addr.As4()
	return fmt.Sprintf("%d,%d,%d,%d,%d,%d", ip[0], ip[1], ip[2], ip[3], port>>8, port&0xff)
}

// ParsePort parses the argument of PORT (RFC 959, 4.1.2).
func ParsePort(arg string) (netip.AddrPort, error) {
	var b [6]byte
	fields := strings.Split(arg, ",")
	if len(fields) != len(b) {
		return netip.AddrPort{}, errSyntax
	}
	for i, field := range fields {
		n, err := strconv.ParseUint(field, 10, 8)
		if err != nil {
			return netip.AddrPort{}, errSyntax
		}
		b[i] = byte(n)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[:4])), uint16(b[4])<<8|uint16(b[5])), nil
}

// ParseExtendedPort parses the argument of EPRT (RFC 2428, 2) from the client at an address. The first character
// is the delimiter. If the network protocol is not the protocol of the client, the error is [ErrProtocol], even if
// the rest is malformed, because no data connection over another protocol reaches the client. An IPv4-mapped IPv6
// address counts as IPv4.
func ParseExtendedPort(arg string, client netip.Addr) (netip.AddrPort, error) {
	fields := strings.Split(arg, arg[:1])
	if len(fields) != 5 || fields[0] != "" || fields[4] != "" || !wire.IsNumber(fields[1]) {
		return netip.AddrPort{}, errSyntax
	}
	protocol := fields[1]
	if known := protocol == protocolIPv4 || protocol == protocolIPv6; known && !wire.IsNumber(fields[3]) {
		return netip.AddrPort{}, errSyntax
	}
	addr, err := netip.ParseAddr(fields[2])
	mapped := client.Is4() && protocol == protocolIPv6 && addr.Is4In6()
	if protocol != Protocol(client) && !mapped {
		return netip.AddrPort{}, ErrProtocol
	}
	port, portErr := strconv.ParseUint(fields[3], 10, 16)
	if err != nil || portErr != nil || addr.Zone() != "" || Protocol(addr) != protocol {
		return netip.AddrPort{}, errSyntax
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(port)), nil
}
