package control_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/users/account"
)

// A pipeListener accepts one connection in memory, so that a session can run in a synctest bubble.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	close  sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// inBubble starts a server with one session and returns the client side of its connection and a function that
// stops the server. By default the backend is a slowBackend and the log goes to the test.
func inBubble(t *testing.T, cfg control.Config) (client net.Conn, end func()) {
	t.Helper()
	bundle, err := i18n.Load()
	must.OK(t, err)
	cfg.Bundle, cfg.IdleTimeout, cfg.MaxLogins = bundle, 5*time.Minute, 5
	cfg.Ports = dataconn.NewPorts(dataconn.PortOptions{})
	if cfg.Backend == nil {
		cfg.Backend = slowBackend{}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	server := control.New(cfg)
	listener := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(t.Context(), listener) }()
	near, far := net.Pipe()
	listener.conns <- far
	return near, func() {
		t.Helper()
		if err := server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

// slowBackend never decides about the password of one user, delays the login of another user, and accepts all
// other logins.
type slowBackend struct{}

func (slowBackend) Host(string) (*account.Tenant, bool) { return nil, false }

func (slowBackend) Charset(netip.Addr) *pathname.Encoding { return nil }

func (slowBackend) Admit([]*x509.Certificate) error { return nil }

func (slowBackend) RequiresTLS(req *account.LoginRequest) bool { return req.TLSRequired }
func (slowBackend) NeedsNoPassword(*account.LoginRequest) bool { return false }

func (slowBackend) ChangePassword(context.Context, *account.Login, *account.LoginRequest, string) error {
	return account.ErrPasswordFixed
}

func (slowBackend) Login(ctx context.Context, r *account.LoginRequest) (*account.Login, error) {
	switch r.User {
	case "slow":
		<-ctx.Done()
		return nil, ctx.Err()
	case "waits":
		<-ctx.Done()
		return nil, fmt.Errorf("%w: %w", account.ErrAbandoned, ctx.Err())
	}
	return &account.Login{
		User:  userOf(&account.Tenant{Name: "demo", Tenant: &config.Tenant{}}),
		View:  &view.View{Mounts: view.NewMounts(view.Mount{Dir: "/"})}, // unused by the commands of the tests
		Usage: noQuota,
	}, nil
}

// A client that does not log in before the timeout gets 421, whatever commands it sends.
func TestLoginTimeout(t *testing.T) {
	const timeout = 30 * time.Second
	for _, tc := range []struct {
		name string
		// Each step is a pause, a command and the code of its reply.
		steps string
		ends  time.Duration
	}{
		{"idle", ``, timeout},
		{"commands", `10s NOOP 200; 10s LANG 200; 9s NOSUCH 500`, timeout},
		{"user-without-password", `29s USER demo 331`, timeout},
		{"rein-without-login", `20s REIN 220; 5s USER demo 331`, timeout},
		{"password-undecided", `5s USER slow 331; 5s PASS x 421`, timeout},
		{"password-waits", `5s USER waits 331; 5s PASS x 421`, timeout},
		{"logged-in-and-idle", `5s USER demo 331; 5s PASS x 230; 50s NOOP 200`, time.Minute + 5*time.Minute},
		{"after-rein", `5s USER demo 331; 5s PASS x 230; 50s REIN 220; 29s USER demo 331`, time.Minute + timeout},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				near, end := inBubble(t, control.Config{LoginTimeout: timeout})
				c := ftptest.NewConn(near)
				c.Timeout = time.Hour
				expect := func(reply string, err error, code string) {
					t.Helper()
					if err != nil || !strings.HasPrefix(reply, code+" ") {
						t.Fatalf("after %v: reply %q, %v, want %s", time.Since(begin), reply, err, code)
					}
				}
				reply, err := c.Reply()
				expect(reply, err, "220")
				for step := range strings.SplitSeq(tc.steps, "; ") {
					words := strings.Fields(step)
					if len(words) == 0 {
						continue
					}
					pause, err := time.ParseDuration(words[0])
					must.OK(t, err)
					time.Sleep(pause)
					last := len(words) - 1
					reply, err := c.Send(strings.Join(words[1:last], " "))
					expect(reply, err, words[last])
				}
				if !strings.HasSuffix(tc.steps, " 421") {
					reply, err = c.Reply()
					expect(reply, err, "421")
				}
				if after := time.Since(begin); after != tc.ends {
					t.Errorf("the session ended after %v, want %v", after, tc.ends)
				}
				if _, err := c.In.ReadByte(); !errors.Is(err, io.EOF) {
					t.Errorf("after 421: %v", err)
				}
				end()
			})
		})
	}
}
