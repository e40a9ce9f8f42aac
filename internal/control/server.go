package control

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
)

// Config is what a Server needs. Bundle and Backend are required; the zero
// value of every other field is its default.
type Config struct {
	Bundle          *i18n.Bundle
	Backend         Backend
	DefaultLanguage language.Tag // English when undetermined

	TLS         *tls.Config // nil: AUTH TLS is refused
	TLSRequired bool        // USER is refused before AUTH TLS, and data connections before PROT P

	// PassivePorts is the range that PASV and EPSV listen on; the zero value
	// means any free port.
	PassivePorts PortRange
	// PublicAddress is what PASV shows; invalid means the address that the
	// client reached.
	PublicAddress netip.Addr

	IdleTimeout time.Duration // between commands, DefaultIdleTimeout when 0
	DataTimeout time.Duration // to open a data connection, DefaultDataTimeout when 0
	// StallTimeout ends a transfer whose data connection moves no byte for so
	// long, DefaultStallTimeout when 0.
	StallTimeout time.Duration
	// CommitDelay is how long an upload that looks complete waits for news
	// that its client died, DefaultCommitDelay when 0: a killed client's kernel
	// closes the data connection first and the control connection just after.
	CommitDelay time.Duration
	MaxLogins   int // failed logins a session, DefaultMaxLogins when 0

	Observer Observer // nil: nobody watches
	Logger   *slog.Logger
}

// The defaults of Config.
const (
	DefaultIdleTimeout  = 5 * time.Minute // RFC 1123 4.1.3.2 asks for five minutes at least
	DefaultDataTimeout  = 30 * time.Second
	DefaultStallTimeout = 5 * time.Minute
	DefaultCommitDelay  = 5 * time.Millisecond
	DefaultMaxLogins    = 5
)

// A PortRange is an inclusive range of TCP ports.
type PortRange struct{ First, Last uint16 }

// An Observer is told what happens, for metrics. Its methods are called from
// many sessions at once and must not wait.
type Observer interface {
	SessionOpened()
	SessionClosed()
	LoggedIn(tenant string, accepted bool) // tenant is empty for an unknown user
	Replied(command string, code int)      // command is upper case, "" for what is none
	Transferred(tenant string, upload bool, bytes int64, err error)
}

// A Server accepts control connections and runs a session on each.
type Server struct {
	cfg Config

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	sessions  map[*session]struct{}
	draining  bool
	idle      chan struct{} // closed when draining and the last session has ended
}
