package descriptors

import "syscall"

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

// reached says whether a descriptor is one of the reserve, of limit descriptors in all.
func (r Reserve) reached(descriptor, limit uint64) bool {
	reserve := min(uint64(r), limit/uint64(share*Sessions/r))
	return descriptor >= limit-reserve
}

// Scarce reports whether a connection or listener has a descriptor of the reserve. It is
// false for what has no descriptor.
func (r Reserve) Scarce(conn any) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	return err == nil && r.Control("", "", raw) != nil
}

// Control is for [net.Dialer] and [net.ListenConfig]. It returns EMFILE, as the kernel does
// without a descriptor, where the new socket has one of the reserve.
func (r Reserve) Control(_, _ string, conn syscall.RawConn) error {
	scarce := false
	err := conn.Control(func(fd uintptr) {
		limit, ok := limit()
		scarce = ok && r.reached(uint64(fd), limit)
	})
	if err == nil && scarce {
		return syscall.EMFILE
	}
	return err
}
