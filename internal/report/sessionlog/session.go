package sessionlog

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/users/account"
)

// A Log keeps the lines of a server's sessions from being too many. The zero value is ready.
type Log struct {
	refusals  limits.Sampler[limits.Error]
	strangers limits.Sampler[strangerLine]
}

// A strangerLine is a line about a client that is not logged in.
type strangerLine struct {
	client       netip.Prefix
	kind, detail string
	named        bool // by CLNT, as babelftp doctor does, whose lines must not take the place of a client's
}

// A Session observes a session. It is also the logger of the session, whose lines have what is known of the client.
type Session struct {
	report.Silent
	*slog.Logger
	log      *Log
	base     *slog.Logger
	debug    *Switch
	client   *report.Client
	failures limits.Sampler[failure]
}

// A failure is the kind under which failed commands of a session are counted.
type failure struct {
	command string
	code    int
}

// failuresShown is how many failures of one kind a session logs in a minute. The next line has the number of failures
// that were left out.
const failuresShown = 10

var _ report.Observer = (*Session)(nil)

// Session returns the log of a session. Its lines go to base, as long as debug has no rule for it: then base gets debug
// lines whatever its level. debug may be nil.
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

// LoggedIn writes an accepted login. [account.FailureLog] has the others.
func (s *Session) LoggedIn(login *account.Login, err error) {
	if err == nil {
		s.Info("logged in", "tls", s.client.TLS, "certificate", login.Certificate)
	}
}

// Refused writes what a limit refuses.
func (s *Session) Refused(tenant, limit string) {
	if more, first := s.log.refusals.Pass(limits.Error{Tenant: tenant, Limit: limit}); first {
		s.Info("refused by a limit; logged once a minute", "limit", limit, "limit_tenant", tenant, "more", more)
	}
}

// Seldom tells whether the log gets a line about a client that is not logged in, and may do the same at any rate. It
// gets one a minute for an address, a kind and a detail. The line has the number of those before it that the log did
// not get.
func (s *Session) Seldom(kind, detail string) (more int, first bool) {
	return s.log.strangers.Pass(strangerLine{limits.Network(s.client.Address), kind, detail, s.client.Software != ""})
}

// CommandBegan writes a command, where the log has commands. What it asks of S3 is in the log then.
func (s *Session) CommandBegan(ctx context.Context, c report.Command) context.Context {
	if !s.Enabled(ctx, slog.LevelDebug) {
		return ctx
	}
	s.DebugContext(ctx, "command", "line", report.Clip(c.String()))
	return withRequests(ctx, s.Logger)
}

// CommandGoesOn writes a preliminary reply, where the log has replies.
func (s *Session) CommandGoesOn(ctx context.Context, c report.Command, code int, lines []string) {
	if s.Enabled(ctx, slog.LevelDebug) {
		s.DebugContext(ctx, "reply", "code", code, "text", c.ReplyText(lines))
	}
}

// CommandEnded writes a transfer, or why another command has failed, and the reply where the log has replies.
func (s *Session) CommandEnded(ctx context.Context, o *report.Outcome) {
	switch {
	case o.Transfer != nil:
		s.transferEnded(ctx, o)
	case o.Err != nil:
		s.failed(ctx, o)
	}
	s.CommandGoesOn(ctx, o.Command, o.Code, o.Lines)
}

// failed logs why a command has failed. A session that repeats a failure, perhaps on purpose, gets a few lines a
// minute.
func (s *Session) failed(ctx context.Context, o *report.Outcome) {
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
