package limits

import (
	"math"
	"syscall"
)

// A Reserve is a number of file descriptors that one kind of connection must leave free. If the process may open only
// few descriptors, the reserve is a share of them.
type Reserve uint64

const (
	// SessionReserve is left free by control connections, for the transfers of sessions that are already open.
	SessionReserve Reserve = 64
	// TransferReserve is left free by data connections and connections to S3, for everything else.
	TransferReserve Reserve = 32
)

// share limits [SessionReserve] to a quarter of all descriptors, and thus TransferReserve to an eighth.
const share = 4

// left returns how many descriptors can be opened until the reserve is reached, if descriptor is the highest in use and
// the process may have limit descriptors.
func (r Reserve) left(descriptor, limit uint64) uint64 {
	reserve := min(uint64(r), limit/uint64(share*SessionReserve/r))
	if descriptor+reserve >= limit {
		return 0
	}
	return limit - reserve - descriptor
}

// Left returns how many descriptors connections of this kind may use, including the descriptor of conn. It returns
// math.MaxUint64 if conn has no descriptor.
func (r Reserve) Left(conn any) uint64 {
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			left, _ := r.leftOf(raw)
			return left
		}
	}
	return math.MaxUint64
}

// leftOf is like Left for a socket. It returns an error if the socket is closed.
func (r Reserve) leftOf(conn syscall.RawConn) (left uint64, err error) {
	left = math.MaxUint64
	err = conn.Control(func(fd uintptr) {
		if limit, ok := limit(); ok {
			left = r.left(uint64(fd), limit)
		}
	})
	return left, err
}

// IsReached reports whether a connection or listener uses a descriptor of the reserve, so that it should be closed. It
// returns false if conn has no descriptor.
func (r Reserve) IsReached(conn any) bool { return r.Left(conn) == 0 }

// Control is the Control function for a [net.Dialer] or [net.ListenConfig]. It returns EMFILE, as if no descriptor were
// free, if the new socket uses a descriptor of the reserve.
func (r Reserve) Control(_, _ string, conn syscall.RawConn) error {
	left, err := r.leftOf(conn)
	if err == nil && left == 0 {
		return syscall.EMFILE
	}
	return err
}
