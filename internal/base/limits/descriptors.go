package limits

import (
	"math"
	"syscall"
)

// A Reserve is how many descriptors stay free of one kind of connections. Where the limit
// of the process is small, it is a share of that.
type Reserve uint64

const (
	// Sessions is what control connections leave to the transfers of those that are open.
	Sessions Reserve = 64
	// Transfers is what data connections and connections to S3 leave to all else.
	Transfers Reserve = 32
)

// share is the part of the limit that [Sessions] is at most; Transfers is half of it.
const share = 4

// left is how many descriptors above this one are not of the reserve, of limit descriptors in all.
func (r Reserve) left(descriptor, limit uint64) uint64 {
	reserve := min(uint64(r), limit/uint64(share*Sessions/r))
	if descriptor+reserve >= limit {
		return 0
	}
	return limit - reserve - descriptor
}

// Left is how many descriptors are free for connections of the kind, with the one that conn
// has. It is a very large number where conn has none.
func (r Reserve) Left(conn any) uint64 {
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			left, _ := r.leftOf(raw)
			return left
		}
	}
	return math.MaxUint64
}

// leftOf is the same for a socket. The error is that of one that is closed.
func (r Reserve) leftOf(conn syscall.RawConn) (left uint64, err error) {
	left = math.MaxUint64
	err = conn.Control(func(fd uintptr) {
		if limit, ok := limit(); ok {
			left = r.left(uint64(fd), limit)
		}
	})
	return left, err
}

// Scarce reports whether a connection or listener has a descriptor of the reserve. It is
// false for what has no descriptor.
func (r Reserve) Scarce(conn any) bool { return r.Left(conn) == 0 }

// Control is for [net.Dialer] and [net.ListenConfig]. It returns EMFILE, as the kernel does
// without a descriptor, where the new socket has one of the reserve.
func (r Reserve) Control(_, _ string, conn syscall.RawConn) error {
	left, err := r.leftOf(conn)
	if err == nil && left == 0 {
		return syscall.EMFILE
	}
	return err
}
