package control_test

import (
	"crypto/tls"
	"io"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// requireReuse starts a server whose tenant requires data connections to resume the TLS session of the control
// connection.
func requireReuse(t *testing.T, version uint16) *site {
	t.Helper()
	s := newTenantSite(t, loginTo(config.Tenant{TLS: config.TenantTLS{RequireSessionReuse: true}}))
	s.tls = withCache(s.tls)
	s.tls.MaxVersion = version
	return s
}

// withCache returns a copy of a client configuration with an empty session cache.
func withCache(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	cfg.ClientSessionCache = sessionCache{tls.NewLRUClientSessionCache(0)}
	return cfg
}

// A sessionCache keeps the old session if the server sends no new ticket, like OpenSSL (RFC 5077, 3.3). Go's TLS client
// would store the empty ticket.
type sessionCache struct{ tls.ClientSessionCache }

func (c sessionCache) Put(key string, session *tls.ClientSessionState) {
	if session != nil {
		if ticket, _, err := session.ResumptionState(); err == nil && len(ticket) == 0 {
			return
		}
	}
	c.ClientSessionCache.Put(key, session)
}

// A frozenCache never stores new sessions.
type frozenCache struct{ tls.ClientSessionCache }

func (frozenCache) Put(string, *tls.ClientSessionState) {}

// frozen returns the configuration of a client that offers the same ticket each time.
func frozen(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	cfg.ClientSessionCache = frozenCache{cfg.ClientSessionCache}
	return cfg
}

const notResumed = "522 Data connections must resume the TLS session of the control connection."

// wantNothing transfers on data connections of another TLS client at the same address and checks that the server
// refuses them.
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

// TestSessionReuseRequired: a data connection that does not resume the TLS session of its own control connection
// can neither read nor store data.
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
			c.wantNothing(foreign)        // with full handshakes
			c.wantNothing(foreign)        // with tickets of these connections
			c.wantNothing(frozen(others)) // with a ticket of another session of the same user
			other.Store("new", "x")
			other.do("DELE new", "250 ")
			c.wantNothing(frozen(others)) // with a ticket from a data connection of that session

			// The session still works, also for a client that resumes its TLS session on another control
			// connection.
			c.Store("more", "content")
			s.tls = own
			resumed := s.loginTLS()
			if !resumed.Conn.Conn.(*tls.Conn).ConnectionState().DidResume {
				t.Error("the second control connection did not resume the TLS session")
			}
			resumed.Want("content", "RETR more")
		})
	}
}

// rein sends REIN, which ends the login and TLS (RFC 4217, 13).
func (c *client) rein() {
	c.t.Helper()
	c.do("REIN", "220 ")
	under := c.Conn.Conn.(*tls.Conn)
	must.OK(c.t, under.CloseWrite())
	if rest, err := io.ReadAll(c.In); len(rest) > 0 || err != nil {
		c.t.Fatalf("after REIN: got %q, %v", rest, err)
	}
	c.Conn.Conn, c.TLS = under.NetConn(), nil
	_ = c.SetDeadline(time.Time{}) // tls.Conn has set one
	c.In.Reset(c.Conn.Conn)
}

// TestSessionReuseAfterREIN: REIN ends the TLS session, so its tickets cannot open data connections of the next
// login.
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
