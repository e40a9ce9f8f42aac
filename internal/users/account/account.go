// Package account describes tenants and users to the session: who they are, and
// what they may do and see. Package tenant implements [Backend].
//
// HOST chooses the tenant (RFC 7151, section 3); USER and PASS the user (RFC 959,
// section 4.1.1).
package account

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/names/charset"
	"github.com/babelftp/babelftp/internal/names/pathname"
	"github.com/babelftp/babelftp/internal/storage/view"
)

// ErrLoginRefused is what a Backend's Login returns, wrapped, for a
// wrong user name or password (reply 530). The text goes to the log, so it names no unknown user:
// people type passwords there. Any other error means that the
// login could not be decided and may be tried again.
var ErrLoginRefused = errors.New("login refused")

// ErrTLSRequired is an ErrLoginRefused of a client that has not begun TLS.
var ErrTLSRequired = fmt.Errorf(
	"TLS is required (tls.required), and the client has not sent AUTH TLS: %w", ErrLoginRefused)

// ErrCertificate is an ErrLoginRefused whose reason is the client's certificate, or that there is none.
var ErrCertificate = fmt.Errorf("client certificate: %w", ErrLoginRefused)

// ErrAbandoned reports a login that has ended before it was decided. Its client, an administrator or the server has
// ended the session, or a time limit was over while the login waited for its turn. It is no fault of the server.
var ErrAbandoned = errors.New("the login was abandoned before it was decided")

// A LoginError is what a Backend's Login returns for a login that is not accepted. It says whose, and wraps why.
type LoginError struct {
	Tenant, User string // empty for an unknown user; only User is, where nothing can tell whether the tenant has it
	Err          error
}

// Error is for the log.
func (e *LoginError) Error() string {
	if e.User == "" && e.Tenant != "" {
		return e.Err.Error()
	}
	if e.User == "" {
		return "unknown user: " + e.Err.Error()
	}
	return fmt.Sprintf("user %q of tenant %q: %v", e.User, e.Tenant, e.Err)
}

// Unwrap returns why the login is not accepted.
func (e *LoginError) Unwrap() error { return e.Err }

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
	// Admit returns an error if the server requires a certificate of each client, and
	// the client has shown none that is valid. The client's own comes first.
	Admit(certificates []*x509.Certificate) error
	// ByCertificate tells whether a user needs no password, because the client has
	// shown a certificate of the user (RFC 2228 4).
	ByCertificate(req *LoginRequest) bool
	// Login checks a user's password, certificate, or both. The end of ctx, that of the command, ends it.
	// Nothing of the login outlives the contexts that its View gets, but what
	// its End ends.
	Login(ctx context.Context, req *LoginRequest) (*Login, error)
}

// A Tenant is what the control connection needs to know of one.
type Tenant struct {
	Name string
	// DefaultLanguage is used until the client says LANG; the zero value
	// means the server's default.
	DefaultLanguage language.Tag
	// Bundle has the tenant's languages and texts; nil means the server's.
	Bundle *i18n.Bundle
	// Greeting is shown when a host has chosen the tenant (220), and after login
	// (230) unless there is a Welcome: language tag to text.
	Greeting map[string]string
	// Welcome is shown after login.
	Welcome map[string]string
	// GreetAfterLang says that LANG is answered with Welcome or Greeting too, in
	// the new language (RFC 2640 4.1).
	GreetAfterLang bool
	// Encoding is that of the pathnames of clients which have not said that
	// theirs are UTF-8; nil means UTF-8.
	Encoding *charset.Encoding
	// Normalization is the Unicode form in which names are created.
	Normalization pathname.Normalization
	// Backslash is what a backslash in pathnames of clients stands for.
	Backslash pathname.Backslash
	// LenientDataEOF takes an upload under TLS for complete when the data
	// connection ends without close_notify, between two records. Then the server
	// cannot tell the end of the file from that of a connection which was cut.
	LenientDataEOF bool
	// RequireSessionReuse refuses a data connection under TLS that does not resume
	// the TLS session of its control connection.
	RequireSessionReuse bool
	// IgnoreChmod answers SITE CHMOD with 200, and does nothing.
	IgnoreChmod bool
	// KeepLineEnds stores and sends the bytes of TYPE A as they are.
	KeepLineEnds bool
}

// A LoginRequest is what a client showed of itself.
type LoginRequest struct {
	Host       string // the virtual host chosen with HOST, empty without
	User       string
	Password   string
	RemoteAddr net.Addr
	Encrypted  bool // whether the control connection is under TLS
	// Certificates are what the client has shown to TLS, its own first. The client has
	// its key, but nothing else of them has been verified.
	Certificates []*x509.Certificate
	Limits       limits.Scopes // of the server and of the address
	Session      *limits.Session
	// BeforeCommit must be asked before an upload becomes visible: it returns
	// an error when the client is no longer there.
	BeforeCommit func(context.Context) error
}

// A Login is an accepted user.
type Login struct {
	User   string
	Tenant *Tenant
	// Language is the user's until the client says LANG; undetermined means the
	// tenant's.
	Language language.Tag
	// Certificate is the subject of the client's certificate, which is valid; empty without one.
	Certificate string
	// NoPassword says that the certificate was enough.
	NoPassword bool
	// End is called once, when the user has logged out or the session has ended; nil
	// where nothing waits for it.
	End func()
	// Limits are those of the request, of the tenant and of the user.
	Limits limits.Scopes
	// IdleTimeout and CommandTimeout replace those of the server; 0 leaves them.
	IdleTimeout, CommandTimeout time.Duration
	// View is what the user sees of the storage.
	View *view.View
	// Scarce tells whether others wait for memory that uploads of this user hold, or
	// may hold; nil where that is not known.
	Scarce func() bool
	Home   string // the working directory after login, absolute; empty means "/"
	// Rights says what the user may do with what an absolute pathname names, for
	// the fact "perm" (RFC 3659 7.5.5), which is left out where it is nil. The
	// storage itself refuses everything else. Rights is asked for every entry of a
	// listing, so it must be quick.
	Rights func(name string) view.Rights
	// NoOverwrite says that the storage lets no file be replaced or appended to,
	// which "perm" tells too.
	NoOverwrite bool
	// LastLogin is when the user logged in before, zero where that is not known.
	LastLogin time.Time
	// Quota is how many bytes are stored of those that may be, and false as long
	// as the first is not known; nil where there is no bound.
	Quota func() (used, limit int64, known bool)
	// QuotaHidden says that the user must not see Quota, which would show whether files exist
	// that the user may not list.
	QuotaHidden bool
	// DirectoryEncodings are the directories, absolute, whose names have another
	// encoding than the tenant's, and those below them.
	DirectoryEncodings map[string]*charset.Encoding
	// Resumable says that the tenant keeps interrupted uploads, of which the
	// storage's PendingUpload tells.
	Resumable bool
	// MayPresign says that there are files to which the user may make links, for HTTPS clients.
	MayPresign bool
	// LinkLifetime is how long such a link is good at most; 0 where the tenant
	// hands out none.
	LinkLifetime time.Duration
}

// Files returns what the user sees of the storage for a command. The end of ctx ends its operations. note gets what
// they ask, for the audit log.
func (l *Login) Files(ctx context.Context, note func(view.Note)) *view.Files {
	return l.View.For(InTenant(ctx, l.Tenant.Name), note)
}

// NameRules say how the names of the user are written.
func (l *Login) NameRules() pathname.Rules {
	return pathname.Rules{
		Encoding: l.Tenant.Encoding, DirectoryEncodings: l.DirectoryEncodings,
		Normalization: l.Tenant.Normalization, Backslash: l.Tenant.Backslash,
	}
}
