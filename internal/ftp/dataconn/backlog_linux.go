package dataconn

import "golang.org/x/sys/unix"

// backlog returns the number of connections that wait at a listener, which must be at least one. Linux reports it
// as tcpi_unacked (tcp(7)).
func backlog(fd int) int {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil || info.Unacked == 0 { // on systems that emulate Linux
		return maxBacklog
	}
	return int(info.Unacked)
}
