package admin

import (
	"context"
	"net"
	"net/http"
	"os/user"
	"strconv"
)

// fromSocket stands in logs for the address of a client of the admin socket, which has none.
const fromSocket = "admin_socket"

// administratorKey is the key of the name in the context of a request.
type administratorKey struct{}

// withAdministrator is the context of requests of an administrator.
func withAdministrator(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, administratorKey{}, name)
}

// administrator is the name of who sends a request.
func administrator(r *http.Request) string {
	name, _ := r.Context().Value(administratorKey{}).(string)
	return name
}

// remote is the address of who sends a request.
func remote(r *http.Request) string {
	if _, ok := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr); ok {
		return fromSocket
	}
	return r.RemoteAddr
}

// WithPeer names the administrator of a connection to the admin socket: the user of the process at its other end, as
// the kernel knows it. The context is that of all requests of the connection.
func WithPeer(ctx context.Context, conn net.Conn) context.Context {
	uid, known := peerUID(conn)
	if !known {
		return withAdministrator(ctx, fromSocket)
	}
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil && u.Username != "" {
		return withAdministrator(ctx, u.Username)
	}
	return withAdministrator(ctx, "uid "+id) // containers have users without names
}
