package relay

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// listen listens for connections. Connections from 127.0.0.2 must have headers.
func listen(t *testing.T, log *servicetest.Log) (l net.Listener, refused *atomic.Int32) {
	t.Helper()
	tcp := must.Listen(t)
	refused = new(atomic.Int32)
	trust := NewTrust([]netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}, func() {
		refused.Add(1)
	}, nil, log.Logger())
	l = trust.Listen(tcp)
	t.Cleanup(func() { _ = l.Close() })
	return l, refused
}

// A header is required from a trusted network, and only trusted from there. A connection that waits for its header
// does not delay other connections.
func TestListen(t *testing.T) {
	log := &servicetest.Log{}
	l, refused := listen(t, log)
	silent := ftptest.DialFrom(t, "127.0.0.2", l.Addr().String())
	const header = "PROXY TCP4 203.0.113.7 192.0.2.1 12345 21\r\n"
	for _, tc := range []struct{ from, client, text string }{
		{"127.0.0.2", "203.0.113.7:12345", "hello"},
		{"127.0.0.1", "", header + "hello"},
	} {
		conn := ftptest.DialFrom(t, tc.from, l.Addr().String())
		must.Write(t, conn, header+"hello")
		_ = conn.CloseWrite()
		got, err := l.Accept()
		must.OK(t, err)
		want := tc.client
		if want == "" {
			want = conn.LocalAddr().String()
		}
		if got.RemoteAddr().String() != want {
			t.Errorf("from %s: got client %s, want %s", tc.from, got.RemoteAddr(), want)
		}
		if text, err := io.ReadAll(got); err != nil || string(text) != tc.text {
			t.Errorf("from %s: got %q, %v, want %q", tc.from, text, err, tc.text)
		}
		_ = got.Close()
	}
	must.Write(t, silent, "USER alice\r\n")
	if _, err := silent.Read(make([]byte, 1)); err == nil {
		t.Error("a connection without a header received data")
	}
	if refused.Load() != 1 {
		t.Errorf("got %d refused connections, want 1", refused.Load())
	}
	if !strings.Contains(log.String(), "without a PROXY header") || !strings.Contains(log.String(), "from=127.0.0.2") {
		t.Errorf("unexpected log %q", log.String())
	}
}

// A load balancer that checks whether the port is open causes no warning.
func TestListenProbe(t *testing.T) {
	log := &servicetest.Log{}
	l, refused := listen(t, log)
	probe := ftptest.DialFrom(t, "127.0.0.2", l.Addr().String())
	_ = probe.CloseWrite()
	if _, err := probe.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("probe: got error %v, want EOF", err)
	}
	if refused.Load() != 0 || log.String() != "" {
		t.Errorf("got %d refused connections, log %q", refused.Load(), log.String())
	}
}

// Close ends Accept and closes connections that it has not returned.
func TestListenClose(t *testing.T) {
	l, _ := listen(t, &servicetest.Log{})
	conn := ftptest.DialFrom(t, "127.0.0.1", l.Addr().String())
	for range 2 {
		_ = l.Close()
		if _, err := l.Accept(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept: %v", err)
		}
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a connection that was not accepted received data")
	}
}

// Without trusted networks Listen returns the listener unchanged.
func TestListenWithoutTrust(t *testing.T) {
	tcp := must.Listen(t)
	if l := NewTrust(nil, nil, nil, nil).Listen(tcp); l != tcp {
		t.Errorf("the listener is %T", l)
	}
}

// A panic while a header is read ends only that connection.
func TestPanicInHeader(t *testing.T) {
	tcp := must.Listen(t)
	guard := panics.NewGuard(slog.New(slog.DiscardHandler))
	log := slog.New(slog.DiscardHandler)
	l := NewTrust([]netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}, func() {
		panic("a bug")
	}, guard, log).Listen(tcp)
	defer l.Close()
	broken := ftptest.DialFrom(t, "127.0.0.2", l.Addr().String())
	_, _ = io.WriteString(broken, "no header\r\n")
	if n, err := broken.Read(make([]byte, 1)); err == nil {
		t.Errorf("the client received %d bytes", n)
	}
	ftptest.DialFrom(t, "127.0.0.1", l.Addr().String())
	if _, err := l.Accept(); err != nil {
		t.Errorf("the next connection: %v", err)
	}
	if n := guard.Count(); n != 1 {
		t.Errorf("got %d counted panics, want 1", n)
	}
}
