package admin

import (
	"context"
	"net"
	"net/http"
	"os/user"
	"strconv"
)

// fromSocket replaces the remote address in logs for clients of the admin socket, which have no address.
const fromSocket = "admin_socket"

// administratorKey is the context key of the administrator's name.
type administratorKey struct{}

// withAdministrator returns a context that carries the name of the administrator.
func withAdministrator(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, administratorKey{}, name)
}

// administrator returns the name of the administrator who sent the request.
func administrator(r *http.Request) string {
	name, _ := r.Context().Value(administratorKey{}).(string)
	return name
}

// remote returns the address of the client that sent the request.
func remote(r *http.Request) string {
	if _, ok := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr); ok {
		return fromSocket
	}
	return r.RemoteAddr
}

// WithPeer adds the administrator of a connection to the admin socket to ctx: the user of the peer process,
// as reported by the kernel. All requests on the connection use the returned context.
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
