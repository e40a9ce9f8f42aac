package control_test

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/control"
)

// The session of a client that reads no reply ends after a minute, however many commands it has sent.
func TestUnreadReplies(t *testing.T) {
	bundle, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		server := control.New(control.Config{
			Bundle: bundle, Backend: slowBackend{},
			Logger:      slog.New(slog.NewTextHandler(t.Output(), nil)),
			IdleTimeout: 5 * time.Minute, LoginTimeout: 5 * time.Minute, MaxLogins: 5,
		})
		listener := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
		served := make(chan error, 1)
		go func() { served <- server.Serve(t.Context(), listener) }()
		near, far := net.Pipe()
		listener.conns <- far
		greeting := make([]byte, 1000)
		if n, err := near.Read(greeting); err != nil || !strings.HasPrefix(string(greeting[:n]), "220") {
			t.Fatalf("%q, %v", greeting[:n], err)
		}
		begin := time.Now()
		if _, err := io.WriteString(near, strings.Repeat("NOOP\r\n", 1000)); err == nil { // until the session has ended
			t.Error("the session has taken all commands")
		}
		if took := time.Since(begin); took > 61*time.Second {
			t.Errorf("the session ended after %v", took)
		}
		if err := server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}
