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

// ErrLoginRefused is what a Backend's Login returns, wrapped, for a
// wrong user name or password (reply 530). The text goes to the log, so it names no unknown user:
// people type passwords there. Any other error means that the
// login could not be decided and may be tried again.
var ErrLoginRefused = auth.ErrRefused

// ErrTLSRequired is an ErrLoginRefused of a client that has not begun TLS.
var ErrTLSRequired = fmt.Errorf(
	"TLS is required (tls.required), and the client has not sent AUTH TLS: %w", ErrLoginRefused)

// errSeveralTenants is an ErrLoginRefused of a name that needs its tenant.
var errSeveralTenants = fmt.Errorf("the name is a user of several tenants: let the client write user@tenant, or connect "+
	"to a host of the tenant: %w", ErrLoginRefused)

// ErrCertificate is an ErrLoginRefused whose reason is the client's certificate, or that there is none.
var ErrCertificate = fmt.Errorf("client certificate: %w", ErrLoginRefused)

// ErrWrongTenant is an ErrLoginRefused of the right password, whose user the service puts into no tenant, or into
// another one than the client has asked for.
var ErrWrongTenant = fmt.Errorf("no tenant for the user: %w", ErrLoginRefused)

// A ClosedError is an ErrLoginRefused for the right password of a user who may not log in (reply 530).
type ClosedError struct {
	User  *User
	Limit string // limits.UserDisabled or limits.UserExpired
}

// Error is for the log.
func (e *ClosedError) Error() string {
	if e.Limit == limits.UserExpired {
		return "the password is right, but the user expired on " + e.User.Expires.String() + " (expires)"
	}
	return "the password is right, but the user is disabled (disabled)"
}

// Unwrap returns that the login is refused.
func (e *ClosedError) Unwrap() error { return ErrLoginRefused }

// ErrAbandoned reports a login that has ended before it was decided. Its client, an administrator or the server has
// ended the session, or a time limit was over while the login waited for its turn. It is no fault of the server.
var ErrAbandoned = errors.New("the login was abandoned before it was decided")

// A LoginError is what a Backend's Login returns for a login that is not accepted. It says whose, and wraps why.
type LoginError struct {
	// Tenant and User are empty for an unknown user. Only User is, where nothing can tell whether the tenant has it,
	// and only Tenant, for [ErrWrongTenant].
	Tenant, User string
	Err          error
}

// Error is for the log.
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

// Unwrap returns why the login is not accepted.
func (e *LoginError) Unwrap() error { return e.Err }

// A HostError is an ErrLoginRefused for a name that the tenant of a host does not have. No other tenant was asked,
// because the host has chosen that tenant.
type HostError struct {
	Host   string
	ByTLS  bool   // whether TLS has named the host (SNI), and not HOST
	Tenant string // of the host
	Named  string // the tenant that the name asks for; empty if it asks for none
}

// Error is for the log.
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
		"that is in no \"hosts\"", text, e.Named)
}

// Unwrap returns [ErrLoginRefused].
func (e *HostError) Unwrap() error { return ErrLoginRefused }

// A FullError is what a Backend's Login returns when there are as many sessions or logins
// as may be (reply 421).
type FullError struct {
	Tenant *Tenant // nil before the right password
	Limit  *limits.Error
}

// Error is for the log.
func (e *FullError) Error() string { return e.Limit.Error() }

// Unwrap returns the limit.
func (e *FullError) Unwrap() error { return e.Limit }

// An UnavailableError is what a Backend's Login returns for the right password when the files of
// the user cannot be reached (reply 421).
type UnavailableError struct {
	Tenant *Tenant // has the language of the reply
	Err    error
}

// Error is for the log.
func (e *UnavailableError) Error() string { return e.Err.Error() }

// Unwrap returns why the files cannot be reached.
func (e *UnavailableError) Unwrap() error { return e.Err }

// A Backend knows the tenants and their users.
type Backend interface {
	// Host returns the tenant that answers to a virtual host (RFC 7151),
	// and false where there is none.
	Host(name string) (*Tenant, bool)
	// Charset is how clients at an address write, as long as they have chosen no tenant; nil is UTF-8.
	Charset(addr netip.Addr) *pathname.Encoding
	// Admit returns an error if the server requires a certificate of each client, and
	// the client has shown none that is valid. The client's own comes first.
	Admit(certificates []*x509.Certificate) error
	// RequiresTLS tells whether a login must be encrypted, before its password is asked. The user decides, then the
	// tenant, then the server.
	RequiresTLS(req *LoginRequest) bool
	// ByCertificate tells whether a user needs no password, because the client has
	// shown a certificate of the user (RFC 2228 4).
	ByCertificate(req *LoginRequest) bool
	// Login checks a user's password, certificate, or both. The end of ctx, that of the command, ends it.
	// Nothing of the login outlives the contexts that its View gets, but what
	// its End ends.
	Login(ctx context.Context, req *LoginRequest) (*Login, error)
}

// A LoginRequest is what a client showed of itself.
type LoginRequest struct {
	Host       string // the virtual host that HOST or TLS has named, empty without
	HostByTLS  bool   // whether TLS has named it (SNI)
	User       string
	Password   string
	RemoteAddr net.Addr
	Encrypted  bool // whether the control connection is under TLS
	// TLSRequired says that the server requires TLS of clients from this address.
	TLSRequired bool
	// Certificates are what the client has shown to TLS, its own first. The client has
	// its key, but nothing else of them has been verified.
	Certificates []*x509.Certificate
	Limits       limits.Scopes // of the server and of the address
	Session      *limits.Session
	// BeforeCommit must be asked before an upload becomes visible: it returns
	// an error when the client is no longer there.
	BeforeCommit func(context.Context) error
}
