//go:build !unix

package dataconn

import "net"

// pending returns 0, because the number is unknown on this system.
func pending(*net.TCPListener) int { return 0 }
