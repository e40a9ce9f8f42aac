//go:build !unix

package wire

import "net"

// keepUrgentData does nothing, because the system has no such option.
func keepUrgentData(net.Conn) {}
