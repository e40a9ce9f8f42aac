//go:build !unix

package wire

import "net"

// keepUrgentData does nothing where the system offers no such option.
func keepUrgentData(net.Conn) {}
