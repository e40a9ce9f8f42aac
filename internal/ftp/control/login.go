package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/users/account"
)

// user handles USER. A login lasts until REIN, so a second USER is refused.
func (s *session) user(name string) (wire.Reply, error) {
	s.identity.onlyTLS = false
	if s.identity.login != nil {
		return s.reply(530, i18n.AlreadyLoggedIn)
	}
	s.identity.name = name
	request := s.loginRequest()
	if !request.Encrypted && s.cfg.Backend.RequiresTLS(request) {
		s.identity.name = ""
		s.shared.failures.Log(s.log.Logger, s.dialogue.conn.Remote(), account.ErrTLSRequired)
		return s.reply(530, i18n.TLSRequired)
	}
	if s.cfg.Backend.NeedsNoPassword(request) { // RFC 2228 4
		return s.pass("")
	}
	return s.reply(331, i18n.PasswordRequired, s.identity.decodeForReply(name))
}

// pass handles PASS.
func (s *session) pass(password string) (wire.Reply, error) {
	switch {
	case s.identity.login != nil && s.identity.login.NoPassword:
		return s.reply(202, i18n.LoggedIn)
	case s.identity.login != nil:
		return s.reply(530, i18n.AlreadyLoggedIn)
	case s.identity.name == "":
		return s.reply(503, i18n.UserFirst)
	}
	login, err := s.authenticate(password)
	if err == nil {
		return s.loggedIn(login)
	}
	r, err := s.refuseLogin(err)
	s.identity.name = ""
	return r, err
}

// refuseLogin is like loginFailed, and ends the session if too many logins have failed.
func (s *session) refuseLogin(why error) (wire.Reply, error) {
	r, err := s.loginFailed(why)
	if s.identity.failedLogins++; s.identity.failedLogins >= s.cfg.MaxLogins && r.Code != 421 {
		r = wire.NewReply(421, s.identity.text(i18n.TooManyLogins))
	}
	return r, err
}

// authenticate requests a login from the backend and reports a failure to the observers. If the backend accepts
// the login after the session has stopped waiting, the login is ended at once.
func (s *session) authenticate(password string) (*account.Login, error) {
	op, request := s.op, s.loginRequest()
	request.Password = password
	ctx, cancel := s.dialogue.loginUntil.Context(op.Context)
	var login *account.Login
	work := panics.Start(func() (err error) {
		defer cancel()
		login, err = s.cfg.Backend.Login(ctx, request)
		return err
	})
	ended, err := s.await(work)
	if !ended {
		panics.Go(func() {
			if <-work == nil && login.End != nil {
				login.End()
			}
		})
		return nil, fmt.Errorf("%w: %w", account.ErrAbandoned, err)
	}
	panics.Raise(err)
	if err != nil {
		err = classifyLogin(ctx, op.Context, err)
		s.observers.LoggedIn(nil, err)
		return nil, err
	}
	return login, nil
}

// classifyLogin marks err as account.ErrAbandoned if the login ended because its command was canceled. Decisions of
// the backend stay as they are, and a login that ran out of time becomes a limit error.
func classifyLogin(login, command context.Context, err error) error {
	if _, full := errors.AsType[*account.FullError](err); full || errors.Is(err, account.ErrLoginRefused) {
		return err
	}
	cause := context.Cause(command)
	switch abandoned := errors.Is(err, account.ErrAbandoned); {
	case cause != nil && !abandoned:
		return fmt.Errorf("%w: %w", account.ErrAbandoned, err)
	case cause == nil && abandoned && errors.Is(login.Err(), context.DeadlineExceeded):
		return &account.FullError{Limit: &limits.Error{Limit: limits.LoginTimeout}}
	}
	return err
}

func (s *session) loginRequest() *account.LoginRequest {
	return &account.LoginRequest{
		Host: s.identity.hostname, HostByTLS: s.dialogue.namedToTLS() == s.identity.hostname,
		Session: s.identity.guarded, User: s.identity.name,
		Limits: s.identity.limits, BeforeCommit: s.beforeCommit,
		RemoteAddr: s.dialogue.conn.RemoteAddr(), Encrypted: s.dialogue.conn.Encrypted(),
		TLSRequired:  s.cfg.requiresTLS(s.dialogue.conn.Remote()),
		Certificates: s.dialogue.conn.Certificates(),
	}
}

// loggedIn stores the login and starts the session of ftpserverlib. The reply has the tenant's greeting, in the
// tenant's language unless the client has selected one.
func (s *session) loggedIn(login *account.Login) (wire.Reply, error) {
	s.identity.login, s.dialogue.loginUntil = login, limits.Deadline{}
	s.state.directory = cmp.Or(login.Home, "/")
	s.identity.setTenant(login.Tenant)
	s.identify()
	s.observers.LoggedIn(login, nil)
	if err := s.engine.Start(s.op.Context); err != nil {
		return wire.Reply{}, s.op.failure(err)
	}
	code := 230
	if login.NoPassword {
		code = 232
	}
	lines := reply.Greeting(s.identity.locale, s.identity.tenant, login)
	if login.MustChangePassword() {
		lines = append(lines, s.identity.text(i18n.PasswordMustChange))
	}
	return wire.NewReply(code, append(lines, s.identity.text(i18n.LoggedIn))...), nil
}

// loginFailed returns the reply to a login that failed with the error why.
func (s *session) loginFailed(why error) (wire.Reply, error) {
	err := s.op.failure(why)
	if cut := context.Cause(s.ctx); cut != nil {
		err = cut // for example a ban that this login caused
	}
	if errors.Is(err, dataconn.ErrPeerClosed) {
		err = why // the backend decided before the client left
	}
	switch {
	case errors.Is(err, syscall.EBUSY): // a limit was reached, or a ban has cut the session
		s.reportLimit(err)
		if full, ok := errors.AsType[*account.FullError](err); ok && full.Tenant != nil {
			s.identity.setTenant(full.Tenant)
			s.identify()
		}
		return s.reply(421, reply.ForRefusal(err))
	case errors.Is(err, account.ErrLoginRefused):
		text := i18n.LoginFailed
		if closed, ok := errors.AsType[*account.ClosedError](err); ok {
			s.identity.tenant = closed.User.Tenant
			preferences := reply.PreferencesOf(closed.User.Tenant, s.identity.charset())
			s.identity.locale.SetTenant(preferences, closed.User.Language)
			s.identify()
			text = reply.ForRefusal(&limits.Error{Limit: closed.Limit})
		} else if errors.Is(err, account.ErrTLSRequired) {
			text = i18n.TLSRequired
		}
		s.shared.failures.Log(s.log.Logger, s.dialogue.conn.Remote(), err)
		return s.reply(530, text)
	case errors.Is(err, dataconn.ErrAborted):
		return wire.Reply{}, err
	}
	if down, ok := errors.AsType[*account.UnavailableError](err); ok && down.Tenant != nil {
		s.identity.setTenant(down.Tenant)
		s.identify()
	}
	if !errors.Is(why, account.ErrAbandoned) {
		s.shared.failures.LogUnavailable(s.log.Logger, err)
	}
	return s.reply(421, i18n.LoginUnavailable) // 421 is the only temporary failure that PASS may return (RFC 959, 5.4)
}

// rein handles REIN, which resets the session. TLS ends unless it is implicit (RFC 4217, 13), and the language
// returns to the default (RFC 2640, 4.1).
func (s *session) rein(string) (wire.Reply, error) {
	s.logOut()
	s.identity.locale.Unselect()
	s.identity.locale.Choice, s.identity.listed = pathname.Undecided, false
	s.identity.chooseHost("", nil)
	if s.dialogue.implicit {
		s.takeServerName()
	}
	return s.reply(220, i18n.SessionReset)
}

// endTLS runs after the reply to REIN.
func (s *session) endTLS() wire.Reply {
	if s.dialogue.conn.Encrypted() && !s.dialogue.implicit {
		s.dialogue.closing = s.dialogue.conn.StopTLS() != nil
		s.identify()
	}
	return wire.Reply{}
}

// logOut resets the user and the command state, as REIN and AUTH require (RFC 4217, 4).
func (s *session) logOut() {
	s.engine.Stop()
	s.closeDataPort()
	s.resetState()
	if s.identity.login != nil {
		s.endLogin()
		s.dialogue.loginUntil = limits.In(s.cfg.LoginTimeout)
	}
	s.identity.forget()
	s.identify()
}

// endLogin ends the login, if any.
func (s *session) endLogin() {
	login := s.identity.login
	if login == nil {
		return
	}
	s.observers.LoggedOut()
	if login.End != nil {
		login.End()
	}
	s.identity.login = nil
}

// quit handles QUIT. Commands are handled in order, so a transfer has already ended.
func (s *session) quit(string) (wire.Reply, error) {
	s.dialogue.closing = true
	return s.reply(221, i18n.Goodbye)
}
