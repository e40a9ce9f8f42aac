//go:build !unix

package wire

import "net"

// KeepUrgentData does nothing where the system offers no such option.
func KeepUrgentData(net.Conn) {}
