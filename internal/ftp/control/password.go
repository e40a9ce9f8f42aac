package control

import (
	"errors"
	"syscall"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/users/account"
)

// sitePswd handles SITE PSWD, which changes the password of the user. A wrong current password is a failed login. If
// the server has a certificate, the connection must be encrypted, even if logins need not be, because the client can
// use TLS.
func (s *session) sitePswd(arg string) (wire.Reply, error) {
	login, request := s.identity.login, s.loginRequest()
	current, sent, ok := wire.ParsePasswords(arg)
	if !ok {
		return wire.Reply{}, errSyntax
	}
	next, ok := login.ReadPassword(sent)
	if !ok {
		return wire.Reply{}, errSyntax
	}
	if !request.Encrypted && s.cfg.TLS != nil {
		return s.reply(530, i18n.TLSRequired)
	}
	request.Password = current
	ctx := s.op.Context
	err := s.perform(func() error { return s.cfg.Backend.ChangePassword(ctx, login, request, next) })
	switch {
	case err == nil:
		return s.reply(200, i18n.PasswordChanged)
	case errors.Is(err, account.ErrLoginRefused), errors.Is(err, syscall.EBUSY): // EBUSY: a limit or a ban
		return s.refuseLogin(err)
	}
	if errors.Is(err, account.ErrPasswordFixed) || errors.Is(err, account.ErrPasswordNotStored) {
		s.log.Warn("password not changed", "user", login.Name, "tenant", login.Tenant.Name, "err", err)
	}
	return wire.Reply{}, err
}
