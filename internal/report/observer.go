package report

import (
	"context"

	"github.com/babelftp/babelftp/internal/users/account"
)

// An Observer is notified of each event in a session once, before the client gets the reply. Its methods are called by
// the goroutine of the session, and must not block for long. Embed [Silent] to implement only some of the methods.
type Observer interface {
	SessionOpened(ctx context.Context)
	SessionClosed()
	// Identified reports new knowledge about the client. The caller does not change c afterwards.
	Identified(c *Client)
	LoggedIn(login *account.Login, err error) // login is nil after an error
	LoggedOut()                               // ends a login that LoggedIn reported without an error
	Refused(tenant, limit string)             // a limit refused or ended something

	// CommandBegan returns the context for everything that is done for the command, which is ctx or derived from it.
	CommandBegan(ctx context.Context, c Command) context.Context
	// PreliminaryReply reports a 1xx reply.
	PreliminaryReply(ctx context.Context, c Command, code int, lines []string)
	// Transferring reports the start of a transfer. It ends with its command.
	Transferring(t *Transfer)
	// CommandEnded reports each final reply, even if there was no command.
	CommandEnded(ctx context.Context, o *Outcome)
}

// Silent is an Observer that does nothing.
type Silent struct{}

var _ Observer = Silent{}

// SessionOpened implements [Observer]; the other methods do too.
func (Silent) SessionOpened(context.Context) {}

// SessionClosed does nothing.
func (Silent) SessionClosed() {}

// Identified does nothing.
func (Silent) Identified(*Client) {}

// LoggedIn does nothing.
func (Silent) LoggedIn(*account.Login, error) {}

// LoggedOut does nothing.
func (Silent) LoggedOut() {}

// Refused does nothing.
func (Silent) Refused(string, string) {}

// CommandBegan returns ctx.
func (Silent) CommandBegan(ctx context.Context, _ Command) context.Context { return ctx }

// PreliminaryReply does nothing.
func (Silent) PreliminaryReply(context.Context, Command, int, []string) {}

// Transferring does nothing.
func (Silent) Transferring(*Transfer) {}

// CommandEnded does nothing.
func (Silent) CommandEnded(context.Context, *Outcome) {}

// Observers calls several observers, in this order.
type Observers []Observer

var _ Observer = Observers{}

// SessionOpened implements [Observer]; the other methods do too.
func (all Observers) SessionOpened(ctx context.Context) {
	for _, o := range all {
		o.SessionOpened(ctx)
	}
}

// SessionClosed calls all observers.
func (all Observers) SessionClosed() {
	for _, o := range all {
		o.SessionClosed()
	}
}

// Identified calls all observers.
func (all Observers) Identified(c *Client) {
	for _, o := range all {
		o.Identified(c)
	}
}

// LoggedIn calls all observers.
func (all Observers) LoggedIn(login *account.Login, err error) {
	for _, o := range all {
		o.LoggedIn(login, err)
	}
}

// LoggedOut calls all observers.
func (all Observers) LoggedOut() {
	for _, o := range all {
		o.LoggedOut()
	}
}

// Refused calls all observers.
func (all Observers) Refused(tenant, limit string) {
	for _, o := range all {
		o.Refused(tenant, limit)
	}
}

// CommandBegan calls all observers. Each one gets the context that the previous one returned.
func (all Observers) CommandBegan(ctx context.Context, c Command) context.Context {
	for _, o := range all {
		ctx = o.CommandBegan(ctx, c)
	}
	return ctx
}

// PreliminaryReply calls all observers.
func (all Observers) PreliminaryReply(ctx context.Context, c Command, code int, lines []string) {
	for _, o := range all {
		o.PreliminaryReply(ctx, c, code, lines)
	}
}

// Transferring calls all observers.
func (all Observers) Transferring(t *Transfer) {
	for _, o := range all {
		o.Transferring(t)
	}
}

// CommandEnded calls all observers.
func (all Observers) CommandEnded(ctx context.Context, outcome *Outcome) {
	for _, o := range all {
		o.CommandEnded(ctx, outcome)
	}
}
