//go:build !unix

package dataconn

import "net"

// pending does not know where the kernel cannot be asked.
func pending(*net.TCPListener) int { return 0 }
