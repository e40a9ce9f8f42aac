package server

import (
	"io"

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
) (observe func(string, *wire.Conn) []control.Observer, flush func()) {
	var to io.Writer = out
	switch {
	case recent != nil:
		to = io.MultiWriter(recent, out)
	case !out.Given():
		return func(string, *wire.Conn) []control.Observer { return []control.Observer{m} }, func() {}
	}
	log := audit.New(to, out.Roomy, guard)
	return func(id string, conn *wire.Conn) []control.Observer {
		return []control.Observer{m, auditObserver{Session: log.Session(id, conn)}}
	}, log.Flush
}

// auditObserver writes the audit log of a session.
type auditObserver struct {
	control.Silent
	*audit.Session
}

// LoggedIn implements [control.Observer], as do the others.
func (o auditObserver) LoggedIn(login *account.Login, err error) { o.Session.LoggedIn(login, err) }

// LoggedOut ends the login.
func (o auditObserver) LoggedOut() { o.Session.LoggedOut() }

// Refused writes what a limit refuses.
func (o auditObserver) Refused(tenant, limit string) { o.Session.Refused(tenant, limit) }

// Began gets what a command does.
func (o auditObserver) Began() func(view.Note) { return o.Session.Began() }

// Replied writes the line of a command.
func (o auditObserver) Replied(of control.Outcome) { o.Session.Replied(of.Verb, of.Argument, of.Code) }

// Transferred keeps how many bytes a transfer has moved.
func (o auditObserver) Transferred(t *dataconn.Transfer) { o.Session.Transferred(t.Bytes()) }
