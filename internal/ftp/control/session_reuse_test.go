package control_test

import (
	"crypto/tls"
	"io"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// requireReuse starts a server whose tenant wants data connections to resume the session of the control connection.
func requireReuse(t *testing.T, version uint16) *site {
	t.Helper()
	s := newTenantSite(t, loginTo(config.Tenant{TLS: config.TenantTLS{RequireSessionReuse: true}}))
	s.tls = withCache(s.tls)
	s.tls.MaxVersion = version
	return s
}

// withCache is a client's configuration with no session to resume.
func withCache(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	cfg.ClientSessionCache = sessionCache{tls.NewLRUClientSessionCache(0)}
	return cfg
}

// A sessionCache keeps a session whose ticket the server does not renew, as OpenSSL does (RFC 5077 3.3). Go's client
// would keep the empty ticket.
type sessionCache struct{ tls.ClientSessionCache }

func (c sessionCache) Put(key string, session *tls.ClientSessionState) {
	if session != nil {
		if ticket, _, err := session.ResumptionState(); err == nil && len(ticket) == 0 {
			return
		}
	}
	c.ClientSessionCache.Put(key, session)
}

// A frozenCache keeps the sessions that it has.
type frozenCache struct{ tls.ClientSessionCache }

func (frozenCache) Put(string, *tls.ClientSessionState) {}

// frozen is the configuration of a client that shows the same ticket each time.
func frozen(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	cfg.ClientSessionCache = frozenCache{cfg.ClientSessionCache}
	return cfg
}

const notResumed = "522 Data connections must resume the TLS session of the control connection."

// wantNothing transfers on data connections of another TLS client at the same address, and wants the server to refuse
// that.
func (c *client) wantNothing(foreign *tls.Config) {
	c.t.Helper()
	for _, command := range []string{"RETR secret", "NLST", "STOR new"} {
		conn := tls.Client(c.dialClear(), foreign)
		c.do(command, "150 ")
		if err := conn.Handshake(); err != nil {
			c.t.Fatalf("%s: %v", command, err)
		}
		if command == "STOR new" {
			_, _ = io.WriteString(conn, "forged") // the server may have closed the connection
			_ = conn.CloseWrite()
		}
		if got, _ := io.ReadAll(conn); len(got) > 0 {
			c.t.Errorf("%s: the other client got %q", command, got)
		}
		_ = conn.Close()
		c.expect(notResumed)
	}
	c.do("SIZE new", "550 ")
}

// TestSessionReuseRequired: a data connection that does not resume the TLS session of its own control connection gets
// and stores nothing.
func TestSessionReuseRequired(t *testing.T) {
	for _, v := range versions {
		t.Run(v.name, func(t *testing.T) {
			s := requireReuse(t, v.version)
			other := s.loginTLS()
			others := s.tls
			s.tls = withCache(s.tls)
			c := s.loginTLS()
			own := s.tls
			c.Store("secret", "content")
			c.Want("content", "RETR secret")

			foreign := withCache(own)
			c.wantNothing(foreign)        // by full handshakes
			c.wantNothing(foreign)        // with the tickets of those
			c.wantNothing(frozen(others)) // with a ticket of another session of the same user
			other.Store("new", "x")
			other.do("DELE new", "250 ")
			c.wantNothing(frozen(others)) // with one of a data connection of that

			// The client and the server go on, also with a session that the client resumes on another control
			// connection.
			c.Store("more", "content")
			s.tls = own
			resumed := s.loginTLS()
			if !resumed.Conn.Conn.(*tls.Conn).ConnectionState().DidResume {
				t.Error("the second control connection has not resumed the session of the first one")
			}
			resumed.Want("content", "RETR more")
		})
	}
}

// rein ends the login and TLS (RFC 4217 13).
func (c *client) rein() {
	c.t.Helper()
	c.do("REIN", "220 ")
	under := c.Conn.Conn.(*tls.Conn)
	must.OK(c.t, under.CloseWrite())
	if rest, err := io.ReadAll(c.In); len(rest) > 0 || err != nil {
		c.t.Fatalf("behind REIN: %q, %v", rest, err)
	}
	c.Conn.Conn, c.TLS = under.NetConn(), nil
	_ = c.SetDeadline(time.Time{}) // tls.Conn has left one
	c.In.Reset(c.Conn.Conn)
}

// TestSessionReuseAfterREIN: REIN ends the TLS session, so its tickets open no data connection of the next login.
func TestSessionReuseAfterREIN(t *testing.T) {
	for _, v := range versions {
		t.Run(v.name, func(t *testing.T) {
			s := requireReuse(t, v.version)
			c := s.loginTLS()
			c.Store("secret", "content")
			before := s.tls
			c.rein()
			s.tls = withCache(s.tls)
			c.startTLS()
			c.protectData()
			c.do("USER demo", "331 ")
			c.do("PASS demo", "230 ")
			c.wantNothing(frozen(before))
			c.Want("content", "RETR secret")
		})
	}
}
