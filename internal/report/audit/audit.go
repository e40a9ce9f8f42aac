// Package audit writes the audit log, which has a JSON line for each login, refusal, change, transfer and action of an
// administrator. A line contains who did it, and the result.
//
// A [Session] observes a session and writes the outcomes of its commands. A [Log] passes the lines to a [Sink], which
// is usually an [Output] with a [Writer] for each destination: a file, standard output or a webhook. Each Writer has a
// queue and a goroutine, so that a slow destination does not block sessions for long. If a destination fails, its
// Writer counts the lost lines, or keeps them for a later attempt ([Writer.Keep]). With audit.required, sessions refuse
// commands that need a line while [Output.Refuses] returns true.
//
// [Follow] finds the history of a file in an audit log.
package audit

import (
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/users/account"
)

// A Log writes the lines of all sessions.
type Log struct {
	out       *slog.Logger
	strangers *strangers
}

// New returns a log that writes each line to out, with the keys and values of about. While room returns false, it only
// counts lines about clients that are not logged in, and about repeated failures. guard recovers from panics when a
// count is written later.
func New(out Sink, room func() bool, guard *panics.Guard, about ...any) *Log {
	log := slog.New(newLineHandler(out)).With(about...)
	return &Log{log, &strangers{out: log, room: room, guard: guard, kinds: map[kind]*counted{}}}
}

// Flush writes the counts of omitted lines. Call it after all sessions have ended. It does nothing if l is nil.
func (l *Log) Flush() {
	if l != nil {
		l.strangers.flush()
	}
}

// attribute renames slog's attributes for the audit log. It removes the level, because all events are equally
// important.
func attribute(groups []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.LevelKey:
		return slog.Attr{}
	case slog.MessageKey:
		a.Key = "event"
	case slog.TimeKey:
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return report.Escape(groups, a)
}

// A Session writes the lines of one session. Only the goroutine of the session may use it.
type Session struct {
	report.Silent
	out       *slog.Logger
	client    *report.Client
	strangers *strangers

	login    *account.Login // nil when logged out
	loggedIn time.Time
	files    map[report.Kind]int   // since the login
	bytes    map[report.Kind]int64 // on data connections since the login
}

var _ report.Observer = (*Session)(nil)

// Session returns the observer of a session.
func (l *Log) Session(client *report.Client) *Session {
	return &Session{out: l.out.With("session", client.ID, "client", client.Remote), client: client,
		strangers: l.strangers}
}

// Identified implements [report.Observer].
func (s *Session) Identified(client *report.Client) { s.client = client }

// Events of clients that may not be logged in.
const (
	eventLogin   = "login"
	eventRefused = "refused"
)

// Values of the key "outcome".
const (
	outcomeOK     = "ok"
	outcomeFailed = "failed"

	outcomeRefused = "refused" // by the tenant's inspector
)

func (s *Session) write(event, outcome string, about ...any) {
	about = append([]any{"outcome", outcome}, about...)
	if s.client.TLSVersion != "" {
		about = append([]any{"tls_version", s.client.TLSVersion, "tls_cipher", s.client.TLSCipher}, about...)
	}
	about = append([]any{"tls", s.client.TLS}, about...)
	if s.login != nil {
		about = append([]any{"tenant", s.login.Tenant.Name, "user", s.login.Name}, about...)
	}
	s.out.Info(event, about...)
}

// LoggedIn writes a login, or the reason why it failed. A login that a limit refused is left to [Session.Refused].
func (s *Session) LoggedIn(login *account.Login, err error) {
	if err == nil {
		s.login, s.loggedIn = login, time.Now()
		s.out = ownedBy(s.out, report.Owner{Tenant: login.Tenant.Name, User: login.Name})
		s.files, s.bytes = map[report.Kind]int{}, map[report.Kind]int64{}
		var about []any
		if login.Certificate != "" {
			about = []any{"certificate", login.Certificate}
		}
		if login.MovedFrom != "" {
			about = append(about, "moved_from", login.MovedFrom)
		}
		s.write(eventLogin, outcomeOK, about...)
		return
	}
	if _, full := errors.AsType[*account.FullError](err); full {
		return
	}
	about, why := []any{"reason", reason(err)}, s.kind(eventLogin, reason(err))
	if of, ok := errors.AsType[*account.LoginError](err); ok && of.User != "" {
		if of.Tenant != "" {
			about = append(about, "tenant", of.Tenant)
		}
		about = append(about, "user", of.User)
		why.tenant, why.user = of.Tenant, of.User
	}
	write := s.strangers.wanted
	if errors.Is(err, account.ErrAbandoned) { // it cost the client nothing, so it may be frequent
		write = s.strangers.sampled
	}
	if write(why) {
		s.write(eventLogin, outcomeFailed, about...)
	}
}

// reason returns the class of a failed login.
func reason(err error) string {
	of, known := errors.AsType[*account.LoginError](err)
	closed, isClosed := errors.AsType[*account.ClosedError](err)
	switch {
	case errors.Is(err, account.ErrAbandoned):
		return "abandoned"
	case !errors.Is(err, account.ErrLoginRefused):
		return "unavailable"
	case errors.Is(err, account.ErrCertificate):
		return "certificate"
	case errors.Is(err, account.ErrWrongTenant):
		return "wrong_tenant"
	case known && of.User != "" && errors.Is(err, account.ErrTLSRequired):
		return "tls_required"
	case known && of.User == "":
		return "unknown_user"
	case isClosed:
		return strings.ReplaceAll(closed.Limit, ".", "_")
	}
	return "wrong_password"
}

// LoggedOut writes the totals of the login.
func (s *Session) LoggedOut() {
	s.write("logout", outcomeOK, "duration_ms", time.Since(s.loggedIn).Milliseconds(),
		"uploads", s.files[report.Upload], "uploaded_bytes", s.bytes[report.Upload],
		"downloads", s.files[report.Download], "downloaded_bytes", s.bytes[report.Download])
	s.login, s.files, s.bytes = nil, nil, nil
	s.out = ownedBy(s.out, report.Owner{})
}

// Refused writes that a limit refused something. tenant is empty for a limit of the server. If the client is not
// logged in, the line may be omitted and counted.
func (s *Session) Refused(tenant, limit string) {
	about := []any{"limit", limit}
	if s.login == nil {
		why := s.kind(eventRefused, limit)
		if why.tenant = tenant; tenant != "" {
			about = append(about, "tenant", tenant)
		}
		if !s.strangers.sampled(why) {
			return
		}
	}
	s.write(eventRefused, outcomeFailed, about...)
}
