package control

import (
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/ftp/reply"
)

// pace lets a command wait for its turn. It ends the session by 421 where that would take too long.
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

// unaudited refuses what would be a line of the audit log while none can be written: a login by 421, and other commands
// by 451.
func (s *session) unaudited(row command) error {
	login := row.starts && s.identity.login == nil
	switch {
	case s.cfg.Unaudited == nil || !login && row.kind == "" || !s.cfg.Unaudited():
		return nil
	case login:
		return &reply.CodeError{Code: 421, Err: reply.ErrNotAudited}
	}
	return reply.ErrNotAudited
}

// foreign tells the log of a client that speaks another protocol, empty for none.
func (s *session) foreign(protocol string) {
	if protocol == "" {
		return
	}
	advice := map[string]string{
		wire.ForeignTLS: "the client was disconnected: let it use explicit TLS, or the port of tls.implicit_listen",
		wire.ForeignPROXY: "the header was not believed: if a load balancer sent it, name its network in " +
			"proxy_protocol.trusted",
	}[protocol]
	if more, first := s.log.Seldom("foreign", protocol); first {
		s.log.Info("client began with another protocol; the log shows one a minute for an address",
			"protocol", protocol, "advice", advice, "more", more)
	}
}
