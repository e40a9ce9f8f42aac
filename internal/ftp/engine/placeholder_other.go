//go:build !unix

package engine

import "net"

// unconnectable listens on a port of the loopback interface, where no connection
// is ever accepted, because the system may not make a listener of another socket.
func unconnectable() (*net.TCPListener, error) {
	return net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
}
