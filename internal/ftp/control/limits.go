package control

import (
	"cmp"
	"errors"
	"net/netip"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// scopes are those whose limits the session shares.
func (s *session) scopes() limits.Scopes {
	if s.login == nil {
		return s.limits
	}
	return s.login.Scopes
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
		s.log.Info("refused by a limit; the log shows one a minute",
			"limit", reached.Limit, "limit_tenant", reached.Tenant, "more", more)
	}
	return true
}

// A strangerLine is a line of the log about a client that is not logged in.
type strangerLine struct {
	client       netip.Prefix
	kind, detail string
}

// seldom tells whether the log gets a line about a client that is not logged in, and may do the same at any rate. It
// gets one a minute for an address, a kind and a detail. The line has the number of those before it that the log did
// not get.
func (s *session) seldom(kind, detail string) (more int, first bool) {
	return s.server.strangers.Pass(strangerLine{limits.Network(s.conn.Remote()), kind, detail})
}

// foreign tells the log of a client that speaks another protocol, empty for none.
func (s *session) foreign(protocol string) {
	advice := map[string]string{
		wire.ForeignTLS: "the client was disconnected: let it use explicit TLS, or the port of tls.implicit_listen",
		wire.ForeignPROXY: "the header was not believed: if a load balancer sent it, name its network in " +
			"proxy_protocol.trusted",
	}[protocol]
	if advice == "" {
		return
	}
	if more, first := s.seldom("foreign", protocol); first {
		s.log.Info("client began with another protocol; the log shows one a minute for an address",
			"protocol", protocol, "advice", advice, "more", more)
	}
}
