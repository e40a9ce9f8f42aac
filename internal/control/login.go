package control

import (
	"crypto/tls"
	"errors"
	"strings"

	"github.com/babelftp/babelftp/i18n"
)

// greet sends the first reply of a session (RFC 959 5.4): that of the tenant
// whose host the client has named to TLS, if it did.
func (s *session) greet() {
	var lines []string
	if s.tenant != nil {
		lines = s.greeting()
	}
	if lines == nil {
		lines = []string{s.text(i18n.ServiceReady)}
	}
	s.send(reply{220, lines})
}

// user is USER. The engine keeps a login until REIN, so a second one is refused.
func (s *session) user(name string) {
	switch {
	case s.login != nil:
		s.say(530, i18n.AlreadyLoggedIn)
	case s.server.cfg.TLSRequired && !s.encrypted():
		s.say(530, i18n.TLSRequired)
	default:
		s.name = name
		s.toEngine(name)
	}
}

// pass is PASS. The engine hangs up on a wrong password; the next USER gets
// another one.
func (s *session) pass(password string) {
	if s.login != nil {
		s.say(530, i18n.AlreadyLoggedIn)
		return
	}
	if s.name == "" {
		s.say(503, i18n.UserFirst)
		return
	}
	s.password = password
	r := s.forward("PASS")
	s.password = ""
	if s.login != nil {
		s.send(r)
		return
	}
	s.stopEngine()
	s.name = ""
	s.failedLogins++
	if s.failedLogins >= s.server.cfg.MaxLogins {
		s.closing = true
		r = reply{421, []string{s.text(i18n.TooManyLogins)}}
	}
	s.send(r)
}

// authenticate is called by the engine when it handles PASS.
func (s *session) authenticate() (Storage, string, error) {
	login, err := s.server.cfg.Backend.Login(s.ctx, &LoginRequest{
		Host:         s.hostname,
		User:         s.name,
		Password:     s.password,
		RemoteAddr:   s.tcp.RemoteAddr(),
		Encrypted:    s.encrypted(),
		BeforeCommit: s.beforeCommit,
	})
	if err != nil {
		s.noted = err
		s.observer.LoggedIn("", false)
		return nil, "", err
	}
	s.observer.LoggedIn(login.Tenant.Name, true)
	s.login = login
	home := login.Home
	if home == "" {
		home = "/"
	}
	return login.Storage, home, nil
}

// loggedIn is the reply to an accepted password: the tenant's greeting, in the
// tenant's language unless the client has chosen one.
func (s *session) loggedIn() reply {
	s.log = s.log.With("tenant", s.login.Tenant.Name, "user", s.login.User)
	s.log.Info("logged in", "encrypted", s.encrypted())
	s.setTenant(s.login.Tenant)
	return reply{230, append(s.greeting(), s.text(i18n.LoggedIn))}
}

// loginFailed is the reply to a password that was not accepted.
func (s *session) loginFailed() reply {
	if errors.Is(s.noted, ErrLoginRefused) {
		s.log.Info("login refused", "name", s.name)
		return reply{530, []string{s.text(i18n.LoginFailed)}}
	}
	s.log.Error("login not decided", "name", s.name, "err", s.noted)
	return reply{530, []string{s.text(i18n.LoginUnavailable)}}
}

// greeting is the tenant's own text in the session's language, by lines.
func (s *session) greeting() []string {
	text := strings.TrimSpace(i18n.Choose(s.tenant.Greeting, s.lang.Tag()))
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// acct is ACCT: there are no accounts beside users.
func (s *session) acct(string) { s.say(202, i18n.AccountNotNeeded) }

// host is HOST (RFC 7151 3): it chooses the tenant, before login.
func (s *session) host(name string) {
	if s.name != "" || s.login != nil {
		s.say(503, i18n.HostTooLate)
		return
	}
	name, ok := parseHost(name)
	if !ok {
		s.syntaxError()
		return
	}
	tenant, known := s.server.cfg.Backend.Host(name)
	if !known {
		s.say(504, i18n.HostUnknown)
		return
	}
	s.hostname = name
	s.chosen = false // RFC 2640 4.1: HOST negates LANG
	s.setTenant(tenant)
	lines := s.greeting()
	if lines == nil {
		lines = []string{s.text(i18n.HostAccepted, name)}
	}
	s.send(reply{220, lines})
}

// rein is REIN: the session starts again, in the clear unless TLS came with
// the connection (RFC 4217 13), and in the default language (RFC 2640 4.1).
func (s *session) rein(string) {
	s.logOut()
	s.hostname, s.tenant, s.chosen = "", nil, false
	s.setLanguage(s.defaultLanguage())
	conn, encrypted := s.conn.(*tls.Conn)
	if encrypted && s.implicit {
		s.serverName(conn.ConnectionState().ServerName)
	}
	s.say(220, i18n.SessionReset)
	if encrypted && !s.implicit {
		s.stopTLS(conn)
	}
}

// logOut forgets the user and the transfer parameters, as REIN and AUTH ask
// (RFC 4217 4).
func (s *session) logOut() {
	s.stopEngine()
	s.data.close()
	s.data = dataSettings{}
	s.facts = allFacts()
	s.name, s.login = "", nil
	s.log = s.server.cfg.Logger.With("remote", s.tcp.RemoteAddr().String())
}

// quit is QUIT. A transfer has ended before: commands are handled in order.
func (s *session) quit(string) {
	s.say(221, i18n.Goodbye)
	s.closing = true
}
