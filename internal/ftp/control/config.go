package control

import (
	"crypto/tls"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
	"github.com/babelftp/babelftp/internal/report/tracing"
	"github.com/babelftp/babelftp/internal/users/account"
)

// Config is what a Server needs. Bundle, Backend, Logger, Ports, Data, IdleTimeout, CommitDelay and
// MaxLogins are required. The zero value of every other field is its default.
type Config struct {
	Bundle          *i18n.Bundle
	Backend         account.Backend
	DefaultLanguage language.Tag // English when undetermined

	TLS         *tls.Config // nil: AUTH TLS is refused
	TLSRequired bool        // USER is refused before AUTH TLS, and data connections before PROT P
	// TLSOptional are networks whose clients need no TLS. Tenants and users decide otherwise, see [account.Backend].
	TLSOptional []netip.Prefix

	// AcceptUnknownHosts says that HOST may name what no tenant answers to, and then chooses none (RFC 7151 3.2),
	// where it is refused otherwise.
	AcceptUnknownHosts bool

	PublicAddress dataconn.Public // what PASV shows

	IdleTimeout time.Duration // between commands
	EngineIdle  time.Duration // without a command, after which the engine of a session ends; 10 s by default
	Ports       *dataconn.Ports
	Data        dataconn.Settings
	// CommitDelay is the maximum time that an upload that looks complete waits for the end of the control connection.
	// The kernel of a killed client closes the data connection first and the control connection just after. An upload
	// that took less than eight times as long waits less.
	CommitDelay time.Duration
	MaxLogins   int // failed logins a session

	Limits       *limits.Server // nil for none
	LoginTimeout time.Duration  // of a session, until the login; 0 for no limit

	// Unaudited reports whether to refuse logins (with empty names), transfers and changes now, because the audit log
	// takes no lines of the user. Nil refuses nothing.
	Unaudited func(tenant, user string) bool

	Observe func(*report.Client) report.Observers // of a session; nil for none but those of this package
	Logger  *slog.Logger
	Guard   *panics.Guard      // counts the panics of sessions; nil for none
	Debug   *sessionlog.Switch // says of which sessions the logger gets debug lines whatever its level; nil for none
	Traces  *tracing.Tracer    // nil for none
}

// requiresTLS reports whether the server requires TLS of clients with this address.
func (c *Config) requiresTLS(addr netip.Addr) bool {
	return c.TLSRequired && !slices.ContainsFunc(c.TLSOptional, func(p netip.Prefix) bool { return p.Contains(addr) })
}
