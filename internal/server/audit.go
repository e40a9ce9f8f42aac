package server

import (
	"io"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/report/audit"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/users/account"
)

// observeSessions returns the observers of sessions: the metrics, and the audit log where somebody reads it. recent
// is nil without administrators. flush is for the end of all sessions.
func observeSessions(
	m *metrics, out *audit.Output, recent *audit.Recent, guard *panics.Guard,
) (observe func(string, *wire.Conn) control.Observer, flush func()) {
	var to io.Writer = out
	switch {
	case recent != nil:
		to = io.MultiWriter(recent, out)
	case !out.Given():
		return func(string, *wire.Conn) control.Observer { return m }, func() {}
	}
	log := audit.New(to, out.Roomy, guard)
	return func(id string, conn *wire.Conn) control.Observer {
		return auditedSession{m, log.Session(id, conn)}
	}, log.Flush
}

// An auditedSession tells the audit log what it tells the metrics.
type auditedSession struct {
	*metrics
	audit *audit.Session
}

// LoggedIn implements [control.Observer].
func (s auditedSession) LoggedIn(login *account.Login, err error) {
	s.metrics.LoggedIn(login, err)
	s.audit.LoggedIn(login, err)
}

// LoggedOut implements [control.Observer].
func (s auditedSession) LoggedOut() { s.audit.LoggedOut() }

// Refused implements [control.Observer].
func (s auditedSession) Refused(tenant, limit string) {
	s.metrics.Refused(tenant, limit)
	s.audit.Refused(tenant, limit)
}

// Began implements [control.Observer].
func (s auditedSession) Began() func(view.Note) { return s.audit.Began() }

// Replied implements [control.Observer].
func (s auditedSession) Replied(command, argument string, code int, in language.Tag) {
	s.metrics.Replied(command, argument, code, in)
	s.audit.Replied(command, argument, code)
}

// Transferred implements [control.Observer].
func (s auditedSession) Transferred(t *dataconn.Transfer) {
	s.metrics.Transferred(t)
	s.audit.Transferred(t.Bytes())
}
