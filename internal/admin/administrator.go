package admin

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"os/user"
	"strconv"
)

// fromSocket replaces the remote address in logs for clients of the admin socket, which have no address.
const fromSocket = "admin_socket"

// The kinds of logins.
const (
	loginPassword    = "password"
	loginCertificate = "certificate"
	loginOIDC        = "oidc"
	loginLink        = "link"
	loginSocket      = "socket"
)

// An Identity is the login behind a request.
type Identity struct {
	Name  string `json:"name"`
	Role  Role   `json:"role"`
	Login string `json:"login"` // password, certificate, oidc, link or socket
}

// identityKey is the context key of an [Identity].
type identityKey struct{}

// withIdentity returns a context that carries the login.
func withIdentity(ctx context.Context, of Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, of)
}

// identity returns the login that sent the request. It is the zero value, which has no rights, without a login.
func identity(r *http.Request) Identity {
	of, _ := r.Context().Value(identityKey{}).(Identity)
	return of
}

// administrator returns the name of the administrator who sent the request.
func administrator(r *http.Request) string { return identity(r).Name }

// roleOf returns the role of the administrator who sent the request.
func roleOf(r *http.Request) Role { return identity(r).Role }

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
	of := Identity{Name: fromSocket, Role: Administrator, Login: loginSocket}
	if uid, known := peerUID(conn); known {
		id := strconv.FormatUint(uint64(uid), 10)
		of.Name = "uid " + id // containers have users without names
		if u, err := user.LookupId(id); err == nil {
			of.Name = cmp.Or(u.Username, of.Name)
		}
	}
	return withIdentity(ctx, of)
}
