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

// Config configures a [Server]. Bundle, Backend, Logger, Ports, Data, IdleTimeout, CommitDelay and MaxLogins are
// required. All other fields may be zero, which selects their defaults.
type Config struct {
	Bundle          *i18n.Bundle
	Backend         account.Backend
	DefaultLanguage language.Tag // if undetermined, English

	TLS         *tls.Config // if nil, AUTH TLS is refused
	TLSRequired bool        // refuses USER before AUTH TLS, and data connections before PROT P
	// TLSOptional lists networks whose clients need no TLS. Tenants and users can override it, see
	// [account.Backend].
	TLSOptional []netip.Prefix

	// AcceptUnknownHosts lets HOST name a host that belongs to no tenant. Such a HOST selects no tenant (RFC 7151,
	// 3.2). By default it is refused.
	AcceptUnknownHosts bool

	PublicAddress dataconn.Public // address in replies to PASV

	IdleTimeout time.Duration // maximum time between two commands
	EngineIdle  time.Duration // time without a command after which the engine of a session stops; default 10 s
	Ports       *dataconn.Ports
	Data        dataconn.Config
	// CommitDelay bounds how long an upload that looks complete waits to see whether the control connection closes
	// as well. If a client process is killed, its kernel closes the data connection first and the control
	// connection right after, and such an upload must not be committed. Uploads that took less than eight times
	// CommitDelay wait less.
	CommitDelay time.Duration
	MaxLogins   int // failed logins per session

	Limits       *limits.Server // if nil, there are no limits
	LoginTimeout time.Duration  // time until login; 0 means no limit

	// Unaudited reports whether the audit log cannot record events of the user, so that logins (with empty names),
	// transfers and changes must be refused. If nil, nothing is refused.
	Unaudited func(tenant, user string) bool

	Observe func(*report.Client) report.Observers // returns the observers of a session; may be nil
	Logger  *slog.Logger
	Guard   *panics.Guard      // counts the panics of sessions; may be nil
	Debug   *sessionlog.Switch // selects the sessions that log at debug level whatever the level of Logger; may be nil
	Traces  *tracing.Tracer    // may be nil
}

// requiresTLS reports whether the server requires TLS of clients with this address.
func (c *Config) requiresTLS(addr netip.Addr) bool {
	return c.TLSRequired && !slices.ContainsFunc(c.TLSOptional, func(p netip.Prefix) bool { return p.Contains(addr) })
}
