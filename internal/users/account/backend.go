package account

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/users/auth"
)

// ErrLoginRefused is the error that Login of a [Backend] wraps for a wrong user name or password (reply 530). Its
// text goes to the log, so it must not contain the name of an unknown user, because people sometimes type their
// password there. Any other error means that the login could not be decided and may be retried.
var ErrLoginRefused = auth.ErrRefused

// ErrTLSRequired is an [ErrLoginRefused] for a client that has not started TLS.
var ErrTLSRequired = fmt.Errorf(
	"TLS is required (tls.required), and the client has not sent AUTH TLS: %w", ErrLoginRefused)

// errSeveralTenants is an [ErrLoginRefused] for a name that several tenants have.
var errSeveralTenants = fmt.Errorf("several tenants have a user with this name: log in as user@tenant, or connect "+
	"to a host of the tenant: %w", ErrLoginRefused)

// ErrCertificate is an [ErrLoginRefused] for a missing or invalid client certificate.
var ErrCertificate = fmt.Errorf("client certificate: %w", ErrLoginRefused)

// ErrWrongTenant is an [ErrLoginRefused] for a user whose password is right, but whom the service assigns to no
// tenant, or to another tenant than the client requested.
var ErrWrongTenant = fmt.Errorf("no tenant for the user: %w", ErrLoginRefused)

// A ClosedError is an [ErrLoginRefused] for a user whose password is right, but whose account is disabled or has
// expired (reply 530).
type ClosedError struct {
	User  *User
	Limit string // limits.UserDisabled or limits.UserExpired
}

// Error returns the text for the log.
func (e *ClosedError) Error() string {
	if e.Limit == limits.UserExpired {
		return "the password is right, but the user expired on " + e.User.Expires.String() + " (expires)"
	}
	return "the password is right, but the user is disabled (disabled)"
}

// Unwrap returns [ErrLoginRefused].
func (e *ClosedError) Unwrap() error { return ErrLoginRefused }

// ErrAbandoned is the error of a login that ended before it was decided, because the client, an administrator or the
// server ended the session, or because it waited too long. It does not indicate a fault of the server.
var ErrAbandoned = errors.New("the login was abandoned before it was decided")

// A LoginError is the error of a login that was not accepted, with the tenant and the user as far as they are known.
type LoginError struct {
	// Tenant and User are both empty for an unknown user. User alone is empty if the service of the tenant could not
	// say whether the user exists; Tenant alone is empty for [ErrWrongTenant].
	Tenant, User string
	Err          error
}

// Error returns the text for the log.
func (e *LoginError) Error() string {
	if e.User == "" && e.Tenant != "" {
		return e.Err.Error()
	}
	switch {
	case e.User == "":
		return "unknown user: " + e.Err.Error()
	case e.Tenant == "":
		return fmt.Sprintf("user %q: %v", e.User, e.Err)
	}
	return fmt.Sprintf("user %q of tenant %q: %v", e.User, e.Tenant, e.Err)
}

// Unwrap returns the reason.
func (e *LoginError) Unwrap() error { return e.Err }

// A HostError is an [ErrLoginRefused] for a name that is not a user of the tenant that the host selects. Other
// tenants are not searched.
type HostError struct {
	Host   string
	ByTLS  bool   // whether the host comes from TLS (SNI) and not from HOST
	Tenant string // the tenant of the host
	Named  string // the tenant in user@tenant, if it is another one
}

// Error returns the text for the log.
func (e *HostError) Error() string {
	by := "HOST"
	if e.ByTLS {
		by = "TLS (SNI)"
	}
	text := fmt.Sprintf("%s named the host %s, which chose the tenant %q", by, e.Host, e.Tenant)
	if e.Named == "" {
		return text + ": correct the name, or let the client connect to a host of the tenant of the user"
	}
	return fmt.Sprintf("%s, and the name ends in @%s: let the client connect to a host of the tenant %[2]q, or to one "+
		"that is not in any \"hosts\"", text, e.Named)
}

// Unwrap returns [ErrLoginRefused].
func (e *HostError) Unwrap() error { return ErrLoginRefused }

// A FullError is the error of a login that exceeds a limit, such as the number of sessions (reply 421).
type FullError struct {
	Tenant *Tenant // nil before the password is verified
	Limit  *limits.Error
}

// Error returns the text for the log.
func (e *FullError) Error() string { return e.Limit.Error() }

// Unwrap returns the [limits.Error].
func (e *FullError) Unwrap() error { return e.Limit }

// An UnavailableError is the error of a login with the right password whose files cannot be reached, or of a user whose
// settings cannot be read (reply 421).
type UnavailableError struct {
	Tenant *Tenant // selects the language of the reply; nil if it is unknown
	Err    error
}

// Error returns the text for the log.
func (e *UnavailableError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *UnavailableError) Unwrap() error { return e.Err }

// A Backend authenticates users for the control connection.
type Backend interface {
	// Host returns the tenant of a virtual host (RFC 7151), and false if the host is unknown.
	Host(name string) (*Tenant, bool)
	// Charset returns the charset that clients with this address use until they select a tenant; nil means UTF-8.
	Charset(addr netip.Addr) *pathname.Encoding
	// Admit returns an error if the server requires a client certificate, but certificates, leaf first, has no valid
	// one.
	Admit(certificates []*x509.Certificate) error
	// RequiresTLS reports whether this login must be encrypted. It is called before the password is requested. The
	// setting of the user takes precedence over the tenant's, which takes precedence over the server's.
	RequiresTLS(req *LoginRequest) bool
	// NeedsNoPassword reports whether the user needs no password because the client has presented a certificate of this
	// user (RFC 2228, section 4).
	NeedsNoPassword(req *LoginRequest) bool
	// Login checks the password or the certificate of a user, or both. It stops when ctx, the context of the command,
	// is done. Resources of the login are released by its End, and by the contexts that are passed to its View.
	Login(ctx context.Context, req *LoginRequest) (*Login, error)
	// ChangePassword changes the password of a user who is logged in. req describes the login, with the current
	// password. If that is wrong, the error is an [ErrLoginRefused], and counts as a failed login. When it returns nil,
	// the new password is stored.
	ChangePassword(ctx context.Context, login *Login, req *LoginRequest, password string) error
}

// A LoginRequest holds what is known about a client that logs in.
type LoginRequest struct {
	Host       string // the virtual host given by HOST or TLS, or empty
	HostByTLS  bool   // whether the host comes from TLS (SNI)
	User       string
	Password   string
	RemoteAddr net.Addr
	Encrypted  bool // whether the control connection uses TLS
	// TLSRequired reports whether the server requires TLS from clients with this address.
	TLSRequired bool
	// Certificates are the certificates that the client presented during the TLS handshake, leaf first. The client
	// has proven that it owns the key of the leaf; the chain is not verified yet.
	Certificates []*x509.Certificate
	Limits       limits.Scopes // limits of the server and of the address
	Session      *limits.Session
	// BeforeCommit must be called before an upload becomes visible. It returns an error if the client has
	// disconnected.
	BeforeCommit func(context.Context) error
}
