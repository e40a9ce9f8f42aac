package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/list"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/syntax"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/users/account"
)

// user is USER. The engine keeps a login until REIN, so a second one is refused. There is none before PASS: strangers
// take no more than a session needs.
func (s *session) user(name string) (wire.Reply, error) {
	s.onlyTLS = false
	switch {
	case s.login != nil:
		return s.reply(530, i18n.AlreadyLoggedIn)
	case s.cfg.TLSRequired && !s.conn.Encrypted():
		s.server.failures.Log(s.log.Logger, s.conn.Remote(), account.ErrTLSRequired)
		return s.reply(530, i18n.TLSRequired)
	}
	s.name = name
	if s.cfg.Backend.ByCertificate(s.loginRequest()) { // RFC 2228 4
		return s.pass("")
	}
	return s.reply(331, i18n.PasswordRequired, name)
}

// pass is PASS. The engine hangs up on a wrong password; the next USER gets another one.
func (s *session) pass(password string) (wire.Reply, error) {
	switch {
	case s.login != nil && s.login.NoPassword:
		return s.reply(202, i18n.LoggedIn)
	case s.login != nil:
		return s.reply(530, i18n.AlreadyLoggedIn)
	case s.name == "":
		return s.reply(503, i18n.UserFirst)
	}
	s.password = password
	r, err := s.forward("PASS", "")
	s.password = ""
	if s.login != nil {
		return r, err
	}
	s.decide()
	if err != nil {
		r, err = s.loginFailed(err)
	}
	s.stopEngine()
	s.name = ""
	if s.failedLogins++; s.failedLogins >= s.cfg.MaxLogins && r.Code != 421 {
		r = wire.NewReply(421, s.text(i18n.TooManyLogins))
	}
	return r, err
}

// A decision is what has come of a login.
type decision struct {
	login *account.Login // nil after an error
	err   error
}

// authenticate is called by the engine when it handles PASS.
func (s *session) authenticate() (home string, err error) {
	op := s.op
	ctx, cancel := s.loginUntil.Context(op.Context)
	defer cancel()
	login, err := s.cfg.Backend.Login(ctx, s.loginRequest())
	if err != nil {
		err = undecided(ctx, op.Context, err)
	}
	op.decision.Store(&decision{login, err})
	if err != nil {
		return "", err
	}
	return cmp.Or(login.Home, "/"), nil
}

// decide takes over what has come of a login, once.
func (s *session) decide() {
	d := s.op.decision.Swap(nil)
	if d == nil {
		return
	}
	if d.err == nil {
		s.login, s.loginUntil = d.login, limits.Deadline{}
		s.setTenant(s.login.Tenant)
	}
	s.observers.LoggedIn(d.login, d.err)
}

// undecided is the error of a login, as one that was abandoned if it has ended with its command and not by a decision
// or a fault.
func undecided(login, command context.Context, err error) error {
	if _, full := errors.AsType[*account.FullError](err); full || errors.Is(err, account.ErrLoginRefused) {
		return err
	}
	cause := context.Cause(command)
	switch abandoned := errors.Is(err, account.ErrAbandoned); {
	case cause != nil && !errors.Is(cause, limits.ErrTooLong) && !abandoned:
		return fmt.Errorf("%w: %w", account.ErrAbandoned, err)
	case cause == nil && abandoned && errors.Is(login.Err(), context.DeadlineExceeded):
		return &account.FullError{Limit: &limits.Error{Limit: limits.LoginTimeout}}
	}
	return err
}

func (s *session) loginRequest() *account.LoginRequest {
	return &account.LoginRequest{
		Host: s.hostname, Session: s.guarded, User: s.name, Password: s.password, RemoteAddr: s.conn.RemoteAddr(),
		Encrypted: s.conn.Encrypted(), Certificates: s.conn.Certificates(), Limits: s.limits,
		BeforeCommit: s.beforeCommit,
	}
}

// loggedIn is the reply to an accepted password: the tenant's greeting, in the tenant's language unless the client
// has chosen one.
func (s *session) loggedIn() wire.Reply {
	s.decide()
	code := 230
	if s.login.NoPassword {
		code = 232
	}
	return wire.NewReply(code, append(reply.Greeting(s.locale, s.tenant, s.login), s.text(i18n.LoggedIn))...)
}

// loginFailed is the reply to a password that was not accepted. Observers know the reason already, but for ABOR.
func (s *session) loginFailed(err error) (wire.Reply, error) {
	if cut := context.Cause(s.ctx); cut != nil {
		err = cut // such as the ban that this login has brought
	}
	if errors.Is(err, dataconn.ErrPeerClosed) {
		err = s.op.Err // the login was decided, or abandoned, before its client left
	}
	switch {
	case errors.Is(err, syscall.EBUSY): // by a limit, or a ban has cut the session
		s.refused(err)
		if full, ok := errors.AsType[*account.FullError](err); ok && full.Tenant != nil {
			s.setTenant(full.Tenant)
		}
		return s.reply(421, reply.ForRefusal(err))
	case errors.Is(err, account.ErrLoginRefused):
		s.server.failures.Log(s.log.Logger, s.conn.Remote(), err)
		return s.reply(530, i18n.LoginFailed)
	case errors.Is(err, dataconn.ErrAborted):
		return wire.Reply{}, err
	}
	if down, ok := errors.AsType[*account.UnavailableError](err); ok {
		s.setTenant(down.Tenant)
	}
	if !errors.Is(s.op.Err, account.ErrAbandoned) {
		s.server.failures.LogUnavailable(s.log.Logger, err)
	}
	return s.reply(421, i18n.LoginUnavailable) // of the replies to PASS only 421 asks to try again (RFC 959 5.4)
}

// acct is ACCT: only users log in.
func (s *session) acct(string) (wire.Reply, error) { return s.reply(202, i18n.AccountNotNeeded) }

// rein is REIN: the session starts again, in the clear unless TLS came with the connection (RFC 4217 13), and in the
// default language (RFC 2640 4.1).
func (s *session) rein(string) (wire.Reply, error) {
	s.logOut()
	s.locale.Unselect()
	s.locale.UTF8 = false
	s.chooseHost("", nil)
	if s.implicit {
		s.takeServerName()
	}
	return s.reply(220, i18n.SessionReset)
}

// endTLS comes after the reply to REIN.
func (s *session) endTLS() wire.Reply {
	if s.conn.Encrypted() && !s.implicit {
		s.closing = s.conn.StopTLS() != nil
		s.identify()
	}
	return wire.Reply{}
}

// logOut forgets the user and the transfer parameters, as REIN and AUTH ask (RFC 4217 4).
func (s *session) logOut() {
	s.stopEngine()
	s.closeDataPort()
	s.data = s.newDataSettings()
	s.facts = list.DefaultFacts()
	s.name = ""
	if s.login != nil {
		s.endLogin()
		s.loginUntil = limits.In(s.cfg.LoginTimeout)
	}
	if s.hostname == "" {
		s.tenant = nil // it was the user's
	}
	s.setTenant(s.tenant)
	s.parameters = syntax.TransferParameters{}
	s.copySource, s.algorithm = nil, syntax.DefaultHash
}

// endLogin ends the login, if there is one.
func (s *session) endLogin() {
	s.observers.LoggedOut()
	if s.login != nil && s.login.End != nil {
		s.login.End()
	}
	s.login = nil
}

// quit is QUIT. A transfer has ended before: commands are handled in order.
func (s *session) quit(string) (wire.Reply, error) {
	s.closing = true
	return s.reply(221, i18n.Goodbye)
}
