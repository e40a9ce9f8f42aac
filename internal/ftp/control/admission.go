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
