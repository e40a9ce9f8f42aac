package control

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/users/account"
)

// unknownVerb is reported instead of verbs without a row, so that clients cannot choose metric labels.
const unknownVerb = "other"

// find returns the row of a command line, a description for the observers, and the argument for the row. Each SITE
// command has a row of its own, whose argument follows the name of the command.
func (s *session) find(verb, arg string, hasArg bool) (row command, line report.Command, rest string, hasRest bool) {
	row, known := s.shared.commands[verb]
	line = report.Command{Name: verb, Verb: verb, Argument: arg, Known: known, Began: time.Now()}
	if !known {
		line.Name = unknownVerb
	}
	rest, hasRest = arg, hasArg
	if verb == "SITE" {
		name, after, more := strings.Cut(arg, " ")
		var service command
		service, line.Known = s.shared.commands[siteName(name)]
		if offers(s.shared.commands, &s.identity, name) {
			row, rest, hasRest = service, after, more
		}
	}
	line.Kind = row.kind
	return row, line, rest, hasRest
}

// dispatch runs a command line: it finds the row, runs the command and reports its outcome.
func (s *session) dispatch(text string) {
	row, line, arg, hasArg := s.find(wire.ParseCommand(text))
	s.op = s.newOperation(row, line)
	s.op.renaming, s.state.renaming = s.state.renaming, nil // RNTO must follow RNFR at once (RFC 959 4.1.3)
	r, err := s.handle(row, arg, hasArg)
	s.finish(r, err)
	if row.after == nil || err != nil || r.Code >= firstFailure {
		return
	}
	if r = row.after(s); r.Code != 0 {
		s.report(s.ctx, &report.Outcome{Command: line, Code: r.Code, Lines: r.Lines, Language: s.identity.locale.Tag()})
		s.flush()
	}
}

// handle checks the command against its row and the limits, and runs it.
func (s *session) handle(row command, arg string, hasArg bool) (wire.Reply, error) {
	if err := s.pace(); err != nil {
		return wire.Reply{}, err
	}
	if row.takesParameters {
		next := &s.state.parameters
		s.op.parameters, *next = *next, next.AfterTransfer()
		if row.kind == report.Upload {
			*next = next.AfterUpload()
		}
	}
	switch {
	case row.run == nil:
		s.cfg.Limits.Offended(s.dialogue.conn.Remote())
		return s.reply(500, i18n.UnknownCommand)
	case row.needsLogin && s.identity.login == nil:
		return s.reply(530, i18n.NotLoggedIn)
	case row.needsLogin && !row.beforeChange && s.identity.login.MustChangePassword():
		return s.reply(530, i18n.PasswordMustChange)
	}
	read, ok := row.argument.Read(arg, hasArg)
	if !ok {
		return s.reply(501, i18n.Syntax, row.syntax)
	}
	if err := s.checkAudited(row); err != nil {
		return wire.Reply{}, err
	}
	r, err := row.run(s, read)
	if errors.Is(err, errSyntax) {
		return s.reply(501, i18n.Syntax, row.syntax)
	}
	return r, err
}

// newOperation creates the operation of a command and reports it to the observers.
func (s *session) newOperation(row command, line report.Command) *operation {
	op := &operation{command: line, reads: row.reads}
	s.identify()
	op.Context, op.cancel = context.WithCancelCause(s.observers.CommandBegan(s.ctx, line))
	if login := s.identity.login; login != nil {
		op.Storage = login.Files(op.Context, account.Client{
			Session: s.client.ID, Address: s.client.Address, Language: s.client.Language,
		}, op.note)
		op.Names = s.identity.resolver(op.Storage, s.state.directory)
	}
	return op
}

// pace delays a command to keep the rate limit. If the delay would be too long, it ends the session with 421.
func (s *session) pace() error {
	wait, err := s.identity.scopes().Command()
	if err == nil && wait > 0 {
		err = s.perform(func() error { return limits.Sleep(s.op.Context, wait) })
	}
	if err == nil {
		return nil
	}
	if code, _, _ := reply.ForError(err); code == 450 {
		return &reply.CodeError{Code: 421, Err: err}
	}
	return err
}

// checkAudited refuses commands that need a line in the audit log while the log cannot be written: logins with 421,
// transfers and changes with 451.
func (s *session) checkAudited(row command) error {
	login := row.starts && s.identity.login == nil
	var tenant, user string
	if known := s.identity.login; known != nil {
		tenant, user = known.Tenant.Name, known.Name
	}
	switch {
	case s.cfg.Unaudited == nil || !login && row.kind == "" || !s.cfg.Unaudited(tenant, user):
		return nil
	case login:
		return &reply.CodeError{Code: 421, Err: reply.ErrNotAudited}
	}
	return reply.ErrNotAudited
}
