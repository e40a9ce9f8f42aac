package control

import (
	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/report/activity"
	"github.com/babelftp/babelftp/internal/report/tracing"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/users/account"
)

// An Observer gets what happens in a session, each thing once, and before the client reads of it. Its methods must not
// wait for long. An observer that needs few of them embeds [Silent].
type Observer interface {
	SessionOpened()
	SessionClosed()
	LoggedIn(login *account.Login, err error) // login is nil after an error
	LoggedOut()
	Refused(tenant, limit string) // what a limit refuses or ends
	Began() func(view.Note)       // a command; gets its notes, and may be nil
	Replied(o Outcome)
	Transferring(tenant, path string, t *dataconn.Transfer) // begins
	Transferred(t *dataconn.Transfer)                       // has ended, with its outcome
}

// An Outcome is how a command has ended.
type Outcome struct {
	Verb     string // other for one that the server does not know, empty for what is no command
	Argument string // as received; it may be a password
	Code     int    // of the last reply
	Language language.Tag
}

// Silent is the Observer that does nothing.
type Silent struct{}

var _ Observer = Silent{}

// SessionOpened implements [Observer], as do the others.
func (Silent) SessionOpened() {}

// SessionClosed does nothing.
func (Silent) SessionClosed() {}

// LoggedIn does nothing.
func (Silent) LoggedIn(*account.Login, error) {}

// LoggedOut does nothing.
func (Silent) LoggedOut() {}

// Refused does nothing.
func (Silent) Refused(string, string) {}

// Began wants no notes.
func (Silent) Began() func(view.Note) { return nil }

// Replied does nothing.
func (Silent) Replied(Outcome) {}

// Transferring does nothing.
func (Silent) Transferring(string, string, *dataconn.Transfer) {}

// Transferred does nothing.
func (Silent) Transferred(*dataconn.Transfer) {}

// observers are those of a session. Each gets everything, in this order.
type observers []Observer

var _ Observer = observers{}

func (all observers) SessionOpened() {
	for _, o := range all {
		o.SessionOpened()
	}
}

func (all observers) SessionClosed() {
	for _, o := range all {
		o.SessionClosed()
	}
}

func (all observers) LoggedIn(login *account.Login, err error) {
	for _, o := range all {
		o.LoggedIn(login, err)
	}
}

func (all observers) LoggedOut() {
	for _, o := range all {
		o.LoggedOut()
	}
}

func (all observers) Refused(tenant, limit string) {
	for _, o := range all {
		o.Refused(tenant, limit)
	}
}

func (all observers) Began() func(view.Note) {
	var wanted []func(view.Note)
	for _, o := range all {
		if note := o.Began(); note != nil {
			wanted = append(wanted, note)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	return func(n view.Note) {
		for _, note := range wanted {
			note(n)
		}
	}
}

func (all observers) Replied(outcome Outcome) {
	for _, o := range all {
		o.Replied(outcome)
	}
}

func (all observers) Transferring(tenant, path string, t *dataconn.Transfer) {
	for _, o := range all {
		o.Transferring(tenant, path, t)
	}
}

func (all observers) Transferred(t *dataconn.Transfer) {
	for _, o := range all {
		o.Transferred(t)
	}
}

// activityObserver shows administrators the transfer that runs.
type activityObserver struct {
	Silent
	activity *activity.Session
}

func (o activityObserver) Transferring(_, path string, t *dataconn.Transfer) {
	o.activity.Begin(t, path)
}
func (o activityObserver) Transferred(*dataconn.Transfer) { o.activity.End() }

// traceObserver completes the spans of a session and its commands.
type traceObserver struct {
	Silent
	trace *tracing.Session
}

func (o traceObserver) SessionClosed()          { o.trace.End() }
func (o traceObserver) Replied(outcome Outcome) { o.trace.Replied(outcome.Code) }
func (o traceObserver) Transferred(t *dataconn.Transfer) {
	o.trace.Transferred(t.Bytes(), t.FirstByte())
}
