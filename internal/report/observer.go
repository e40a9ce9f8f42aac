package report

import (
	"context"

	"github.com/babelftp/babelftp/internal/users/account"
)

// An Observer learns what happens in a session, each thing once, and before the client reads of it. Its methods are
// called by the goroutine of the session, and must not wait for long. An observer that needs few of them embeds
// [Silent].
type Observer interface {
	SessionOpened(ctx context.Context)
	SessionClosed()
	// Identified tells what is known of the client from now on. The value does not change.
	Identified(c *Client)
	LoggedIn(login *account.Login, err error) // login is nil after an error
	LoggedOut()                               // ends what a LoggedIn without an error has told
	Refused(tenant, limit string)             // what a limit refuses or ends

	// CommandBegan returns the context of all that is done for the command, which is ctx or made of it.
	CommandBegan(ctx context.Context, c Command) context.Context
	// CommandGoesOn tells of a preliminary reply.
	CommandGoesOn(ctx context.Context, c Command, code int, lines []string)
	// Transferring tells of a transfer that begins. It ends with its command.
	Transferring(t *Transfer)
	// CommandEnded tells of each final reply, also of one that no command has asked for.
	CommandEnded(ctx context.Context, o *Outcome)
}

// Silent is the Observer that does nothing.
type Silent struct{}

var _ Observer = Silent{}

// SessionOpened implements [Observer], as do the others.
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

// CommandBegan returns the context as it is.
func (Silent) CommandBegan(ctx context.Context, _ Command) context.Context { return ctx }

// CommandGoesOn does nothing.
func (Silent) CommandGoesOn(context.Context, Command, int, []string) {}

// Transferring does nothing.
func (Silent) Transferring(*Transfer) {}

// CommandEnded does nothing.
func (Silent) CommandEnded(context.Context, *Outcome) {}

// Observers are those of a session. Each gets everything, in this order.
type Observers []Observer

var _ Observer = Observers{}

// SessionOpened implements [Observer], as do the others.
func (all Observers) SessionOpened(ctx context.Context) {
	for _, o := range all {
		o.SessionOpened(ctx)
	}
}

// SessionClosed tells all.
func (all Observers) SessionClosed() {
	for _, o := range all {
		o.SessionClosed()
	}
}

// Identified tells all.
func (all Observers) Identified(c *Client) {
	for _, o := range all {
		o.Identified(c)
	}
}

// LoggedIn tells all.
func (all Observers) LoggedIn(login *account.Login, err error) {
	for _, o := range all {
		o.LoggedIn(login, err)
	}
}

// LoggedOut tells all.
func (all Observers) LoggedOut() {
	for _, o := range all {
		o.LoggedOut()
	}
}

// Refused tells all.
func (all Observers) Refused(tenant, limit string) {
	for _, o := range all {
		o.Refused(tenant, limit)
	}
}

// CommandBegan tells all. Each gets the context of the one before.
func (all Observers) CommandBegan(ctx context.Context, c Command) context.Context {
	for _, o := range all {
		ctx = o.CommandBegan(ctx, c)
	}
	return ctx
}

// CommandGoesOn tells all.
func (all Observers) CommandGoesOn(ctx context.Context, c Command, code int, lines []string) {
	for _, o := range all {
		o.CommandGoesOn(ctx, c, code, lines)
	}
}

// Transferring tells all.
func (all Observers) Transferring(t *Transfer) {
	for _, o := range all {
		o.Transferring(t)
	}
}

// CommandEnded tells all.
func (all Observers) CommandEnded(ctx context.Context, outcome *Outcome) {
	for _, o := range all {
		o.CommandEnded(ctx, outcome)
	}
}
