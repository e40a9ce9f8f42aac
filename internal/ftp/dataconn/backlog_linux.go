package dataconn

import "golang.org/x/sys/unix"

// backlog is how many connections wait at a listener, which has some. Linux tells it as tcpi_unacked (tcp(7)).
func backlog(fd int) int {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil || info.Unacked == 0 { // a kernel that emulates Linux
		return maxBacklog
	}
	return int(info.Unacked)
}
