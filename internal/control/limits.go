package control

import (
	"cmp"
	"errors"
	"time"

	"github.com/babelftp/babelftp/internal/limits"
)

// scopes are those whose limits the session shares.
func (s *session) scopes() limits.Scopes {
	if s.login == nil {
		return s.limits
	}
	return s.login.Limits
}

// pace lets a command wait for its turn. It ends the session, and returns false, where that would take too long.
func (s *session) pace() bool {
	wait, err := s.scopes().Command()
	if err == nil && wait > 0 {
		err = s.perform(func() error { return limits.Sleep(s.op.Context, wait) })
	}
	if err != nil {
		r := s.errorReply(err)
		if s.closing = r.Code == 450; s.closing {
			r.Code = 421
		}
		s.send(r)
	}
	return err == nil
}

// tooLong is when the command has taken too long, nil for never.
func (s *session) tooLong() <-chan time.Time {
	longest := s.cfg.CommandTimeout
	if s.login != nil {
		longest = cmp.Or(s.login.CommandTimeout, longest)
	}
	return limits.After(longest)
}

// refused tells the observer and the log where a limit is the reason of an error, and returns whether one is.
func (s *session) refused(err error) bool {
	reached, ok := errors.AsType[*limits.Error](err)
	if !ok {
		return false
	}
	s.observer.Refused(reached.Tenant, reached.Limit)
	if more, first := s.server.refusals.Pass(*reached); first {
		s.log.Info("refused by a limit; the log shows one a minute", "limit", reached.Limit, "limit_tenant", reached.Tenant, "more", more)
	}
	return true
}
