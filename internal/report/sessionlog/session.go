package sessionlog

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/users/account"
)

// A Log limits the lines about the sessions of a server. The zero value is ready to use.
type Log struct {
	refusals  limits.Sampler[limits.Error]
	strangers limits.Sampler[strangerLine]
}

// A strangerLine identifies lines about a client that is not logged in.
type strangerLine struct {
	client       netip.Prefix
	kind, detail string
	named        bool // sent CLNT, as babelftp doctor does; keeps doctor's lines from displacing lines of real clients
}

// A Session observes a session. It is also the logger of the session, and adds what is known about the client to each
// line.
type Session struct {
	report.Silent
	*slog.Logger
	log      *Log
	base     *slog.Logger
	debug    *Switch
	client   *report.Client
	failures limits.Sampler[failure]
}

// A failure identifies failed commands that are counted together.
type failure struct {
	command string
	code    int
}

// failuresShown limits the lines per minute for failures of one kind in a session. The next line has the number of
// omitted failures.
const failuresShown = 10

var _ report.Observer = (*Session)(nil)

// Session returns the observer of a session. It logs to base. If a rule of debug matches the session, it also writes
// debug lines, whatever the level of base. debug may be nil.
func (l *Log) Session(base *slog.Logger, debug *Switch, client *report.Client) *Session {
	return &Session{Logger: debug.logger(base, client), log: l, base: base, debug: debug, client: client}
}

// Identified implements [report.Observer].
func (s *Session) Identified(client *report.Client) {
	known := s.client
	s.client = client
	if known.Tenant != client.Tenant || known.User != client.User || known.Software != client.Software {
		s.Logger = s.debug.logger(s.base, client)
	}
}

// LoggedIn logs a successful login. [account.FailureLog] logs failed ones.
func (s *Session) LoggedIn(login *account.Login, err error) {
	if err == nil {
		s.Info("logged in", "tls", s.client.TLS, "certificate", login.Certificate)
	}
}

// Refused logs what a limit refused.
func (s *Session) Refused(tenant, limit string) {
	if more, first := s.log.refusals.Pass(limits.Error{Tenant: tenant, Limit: limit}); first {
		s.Info("refused by a limit; logged once a minute", "limit", limit, "limit_tenant", tenant, "more", more)
	}
}

// SampleStranger reports whether to log a line about a client that is not logged in, and may cause such lines at any
// rate. It allows one line per minute, address, kind and detail. more is the number of lines omitted before.
func (s *Session) SampleStranger(kind, detail string) (more int, first bool) {
	return s.log.strangers.Pass(strangerLine{limits.Network(s.client.Address), kind, detail, s.client.Software != ""})
}

// CommandBegan logs the command at debug level. In that case the context also logs requests to S3.
func (s *Session) CommandBegan(ctx context.Context, c report.Command) context.Context {
	if !s.Enabled(ctx, slog.LevelDebug) {
		return ctx
	}
	s.DebugContext(ctx, "command", "line", report.Clip(c.String()))
	return withRequests(ctx, s.Logger)
}

// PreliminaryReply logs the reply at debug level.
func (s *Session) PreliminaryReply(ctx context.Context, c report.Command, code int, lines []string) {
	if s.Enabled(ctx, slog.LevelDebug) {
		s.DebugContext(ctx, "reply", "code", code, "text", c.ReplyText(lines))
	}
}

// CommandEnded logs a transfer or the error of another command, and the reply at debug level.
func (s *Session) CommandEnded(ctx context.Context, o *report.Outcome) {
	switch {
	case o.Transfer != nil:
		s.transferEnded(ctx, o)
	case o.Err != nil:
		s.logFailure(ctx, o)
	}
	s.PreliminaryReply(ctx, o.Command, o.Code, o.Lines)
}

// logFailure logs why a command failed. Repeated failures of a session are limited to a few lines per minute.
func (s *Session) logFailure(ctx context.Context, o *report.Outcome) {
	if !s.Enabled(ctx, slog.LevelInfo) {
		return
	}
	more, shown := s.failures.PassSome(failure{o.Name, o.Code}, failuresShown)
	if !shown {
		return
	}
	about := []slog.Attr{
		slog.String("command", o.Name), slog.Int("code", o.Code), slog.String("err", report.Clip(o.Err.Error())),
	}
	if more > 0 {
		about = append(about, slog.Int("more", more))
	}
	s.LogAttrs(ctx, slog.LevelInfo, "command failed", about...)
}
