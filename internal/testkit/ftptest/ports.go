package ftptest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Range of ports for [FreePorts]. It is below the range that the kernel uses for outgoing connections.
const firstPort, lastPort = 10_000, 29_999

// FreePorts returns the first of n consecutive TCP ports that no program listens on at the hosts. No other test, in
// any process, gets one of these ports before this test ends.
func FreePorts(tb testing.TB, n int, hosts ...string) uint16 {
	tb.Helper()
	first, release := ReservePorts(n, hosts...)
	tb.Cleanup(release)
	return first
}

// FreeAddresses returns n addresses of 127.0.0.1 with ports from [FreePorts].
func FreeAddresses(tb testing.TB, n int) (addresses []string) {
	tb.Helper()
	const host = "127.0.0.1"
	first := int(FreePorts(tb, n, host))
	for port := first; port < first+n; port++ {
		addresses = append(addresses, net.JoinHostPort(host, strconv.Itoa(port)))
	}
	return addresses
}

// ReservePorts is like [FreePorts], but reserves the ports until release is called.
func ReservePorts(n int, hosts ...string) (first uint16, release func()) {
	for {
		first := firstPort + rand.IntN(lastPort-firstPort-n+2)
		if release, free := reserve(first, n, hosts); free {
			return uint16(first), release
		}
	}
}

// reserve takes ports for a test. It opens UDP sockets as a lock between tests, because the test itself listens on
// the TCP ports.
func reserve(first, n int, hosts []string) (release func(), free bool) {
	var reserved []net.PacketConn
	release = func() {
		for _, c := range reserved {
			_ = c.Close()
		}
	}
	for port := first; port < first+n; port++ {
		c, err := net.ListenPacket("udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			release()
			return nil, false
		}
		reserved = append(reserved, c)
		for _, host := range hosts {
			l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
			if err != nil {
				release()
				return nil, false
			}
			_ = l.Close()
		}
	}
	return release, true
}
