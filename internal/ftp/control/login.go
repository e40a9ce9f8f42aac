package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/users/account"
)

// user is USER. The engine keeps a login until REIN, so a second one is refused. There is none before PASS: strangers
// take no more than a session needs.
func (s *session) user(name string) (wire.Reply, error) {
	s.identity.onlyTLS = false
	if s.identity.login != nil {
		return s.reply(530, i18n.AlreadyLoggedIn)
	}
	s.identity.name = name
	request := s.loginRequest()
	if !request.Encrypted && s.cfg.Backend.RequiresTLS(request) {
		s.identity.name = ""
		s.server.failures.Log(s.log.Logger, s.dialogue.conn.Remote(), account.ErrTLSRequired)
		return s.reply(530, i18n.TLSRequired)
	}
	if s.cfg.Backend.ByCertificate(request) { // RFC 2228 4
		return s.pass("")
	}
	return s.reply(331, i18n.PasswordRequired, s.identity.shown(name))
}

// pass is PASS. The engine hangs up on a wrong password; the next PASS gets another one.
func (s *session) pass(password string) (wire.Reply, error) {
	switch {
	case s.identity.login != nil && s.identity.login.NoPassword:
		return s.reply(202, i18n.LoggedIn)
	case s.identity.login != nil:
		return s.reply(530, i18n.AlreadyLoggedIn)
	case s.identity.name == "":
		return s.reply(503, i18n.UserFirst)
	}
	s.identity.password = password
	r, err := s.forward("PASS", "")
	s.identity.password = ""
	if s.identity.login != nil {
		return r, err
	}
	s.decide()
	if err != nil && r.Code == 0 {
		r, err = s.loginFailed(err)
	}
	s.stopEngine()
	s.identity.name = ""
	if s.identity.failedLogins++; s.identity.failedLogins >= s.cfg.MaxLogins && r.Code != 421 {
		r = wire.NewReply(421, s.identity.text(i18n.TooManyLogins))
	}
	return r, err
}

// A decision is what has come of a login. The empty one stands for a session that no longer waits for any.
type decision struct {
	login *account.Login // nil after an error
	err   error
}

// authenticate is called by the engine when it handles PASS.
func (s *session) authenticate() (home string, err error) {
	op := s.op
	ctx, cancel := s.dialogue.loginUntil.Context(op.Context)
	defer cancel()
	login, err := s.cfg.Backend.Login(ctx, s.loginRequest())
	if err != nil {
		err = undecided(ctx, op.Context, err)
	}
	if waited := op.decision.CompareAndSwap(nil, &decision{login, err}); !waited && login != nil && login.End != nil {
		login.End()
	}
	if err != nil {
		return "", err
	}
	return cmp.Or(login.Home, "/"), nil
}

// decide takes over what has come of a login, once. What comes later ends by itself.
func (s *session) decide() {
	d := s.op.decision.Swap(&decision{})
	if d == nil || d.login == nil && d.err == nil {
		return
	}
	if d.err == nil {
		s.identity.login, s.dialogue.loginUntil = d.login, limits.Deadline{}
		s.identity.setTenant(s.identity.login.Tenant)
		s.identify()
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
	case cause != nil && !abandoned:
		return fmt.Errorf("%w: %w", account.ErrAbandoned, err)
	case cause == nil && abandoned && errors.Is(login.Err(), context.DeadlineExceeded):
		return &account.FullError{Limit: &limits.Error{Limit: limits.LoginTimeout}}
	}
	return err
}

// requiresTLS tells whether the server requires TLS of clients from this address.
func (s *session) requiresTLS() bool {
	addr := s.dialogue.conn.Remote()
	return s.cfg.TLSRequired && !slices.ContainsFunc(s.cfg.TLSOptional, func(p netip.Prefix) bool {
		return p.Contains(addr)
	})
}

// mustEncrypt tells whether data connections must be encrypted.
func (s *session) mustEncrypt() bool {
	if login := s.identity.login; login != nil {
		return login.TLSRequired
	}
	return s.requiresTLS()
}

func (s *session) loginRequest() *account.LoginRequest {
	return &account.LoginRequest{
		Host: s.identity.hostname, HostByTLS: s.dialogue.namedToTLS() == s.identity.hostname,
		Session: s.identity.guarded, User: s.identity.name, Password: s.identity.password,
		Limits: s.identity.limits, Context: s.ctx, BeforeCommit: s.beforeCommit,
		RemoteAddr: s.dialogue.conn.RemoteAddr(), Encrypted: s.dialogue.conn.Encrypted(), TLSRequired: s.requiresTLS(),
		Certificates: s.dialogue.conn.Certificates(),
	}
}

// loggedIn is the reply to an accepted password: the tenant's greeting, in the tenant's language unless the client
// has chosen one.
func (s *session) loggedIn() wire.Reply {
	s.decide()
	code := 230
	if s.identity.login.NoPassword {
		code = 232
	}
	lines := reply.Greeting(s.identity.locale, s.identity.tenant, s.identity.login)
	return wire.NewReply(code, append(lines, s.identity.text(i18n.LoggedIn))...)
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
		s.server.failures.Log(s.log.Logger, s.dialogue.conn.Remote(), err)
		return s.reply(530, text)
	case errors.Is(err, dataconn.ErrAborted):
		return wire.Reply{}, err
	}
	if down, ok := errors.AsType[*account.UnavailableError](err); ok {
		s.identity.setTenant(down.Tenant)
		s.identify()
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
	s.identity.locale.Unselect()
	s.identity.locale.Choice, s.identity.listed = pathname.Undecided, false
	s.identity.chooseHost("", nil)
	if s.dialogue.implicit {
		s.takeServerName()
	}
	return s.reply(220, i18n.SessionReset)
}

// endTLS comes after the reply to REIN.
func (s *session) endTLS() wire.Reply {
	if s.dialogue.conn.Encrypted() && !s.dialogue.implicit {
		s.dialogue.closing = s.dialogue.conn.StopTLS() != nil
		s.identify()
	}
	return wire.Reply{}
}

// logOut forgets the user and the settings, as REIN and AUTH ask (RFC 4217 4).
func (s *session) logOut() {
	s.stopEngine()
	s.closeDataPort()
	s.settings = newSettings(s.server.facts, s.dialogue.implicit)
	if s.identity.login != nil {
		s.endLogin()
		s.dialogue.loginUntil = limits.In(s.cfg.LoginTimeout)
	}
	s.identity.forget()
	s.identify()
}

// endLogin ends the login, if there is one.
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

// quit is QUIT. A transfer has ended before: commands are handled in order.
func (s *session) quit(string) (wire.Reply, error) {
	s.dialogue.closing = true
	return s.reply(221, i18n.Goodbye)
}
