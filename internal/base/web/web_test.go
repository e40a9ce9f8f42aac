package web_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// serve returns the address of a server.
func serve(t *testing.T, handler http.HandlerFunc, opts web.Options) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	s := web.NewServer(handler, opts)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// ask sends a request, or its beginning.
func ask(t *testing.T, address, request string) net.Conn {
	t.Helper()
	conn := must.Dial(t, address)
	must.Write(t, conn, request)
	return conn
}

const request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

// answered reads the first answer on a connection, empty where the server has closed it.
func answered(t *testing.T, conn net.Conn) string {
	t.Helper()
	must.OK(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	answer := make([]byte, 1000)
	n, err := conn.Read(answer)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("the connection is open and has no answer")
	}
	return string(answer[:n])
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

// However many connections a client leaves idle, silent or in the middle of a request, the next one is answered, and
// the oldest closed.
func TestNextIsAnswered(t *testing.T) {
	for name, held := range map[string]string{"idle": request, "silent": "",
		"header": "GET / HTTP/1.1\r\nHost: local"} {
		for limit, opts := range map[string]web.Options{"network": {PerNetwork: 3}, "all": {Connections: 3}} {
			t.Run(name+"-"+limit, func(t *testing.T) {
				address := serve(t, ok, opts)
				first := ask(t, address, held)
				if held == request {
					answered(t, first)
				}
				for range 20 {
					if answer := answered(t, ask(t, address, request)); !strings.HasPrefix(answer, "HTTP/1.1 200") {
						t.Fatalf("a probe gets %q", answer)
					}
				}
				if answer := answered(t, first); answer != "" {
					t.Errorf("the oldest connection reads %q, want its end", answer)
				}
			})
		}
	}
}

// A request that is being answered keeps its connection, and one too many is closed at once.
func TestRequestsAreKept(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-end
		ok(w, r)
	}, web.Options{PerNetwork: 2})
	kept := []net.Conn{ask(t, address, request), ask(t, address, request)}
	for range kept {
		<-begun
	}
	if answer := answered(t, ask(t, address, "")); answer != "" {
		t.Errorf("a connection too many reads %q", answer)
	}
	close(end)
	for _, conn := range kept {
		if answer := answered(t, conn); !strings.HasPrefix(answer, "HTTP/1.1 200") {
			t.Errorf("a request that was running gets %q", answer)
		}
	}
}

// Where each connection has an answer that its client does not read, the next probe costs the oldest its place.
func TestUnreadAnswersKeepOutNoProbe(t *testing.T) {
	for limit, opts := range map[string]web.Options{
		"network": {PerNetwork: 2, Probes: true}, "all": {Connections: 2, Probes: true},
	} {
		t.Run(limit, func(t *testing.T) {
			begun, end := make(chan struct{}), make(chan struct{})
			defer close(end)
			address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/" {
					ok(w, r)
					return
				}
				begun <- struct{}{}
				<-end // as a write does that the client does not read
			}, opts)
			var held []net.Conn
			for range 2 {
				held = append(held, ask(t, address, strings.Replace(request, "GET / ", "GET /metrics ", 1)))
				<-begun
			}
			if answer := answered(t, ask(t, address, request)); !strings.HasPrefix(answer, "HTTP/1.1 200") {
				t.Errorf("a probe gets %q", answer)
			}
			if answer := answered(t, held[0]); answer != "" {
				t.Errorf("the oldest connection reads %q, want its end", answer)
			}
		})
	}
}

// No connection stays open without a request.
func TestIdleConnectionsEnd(t *testing.T) {
	address := serve(t, ok, web.Options{Timeout: 50 * time.Millisecond})
	for name, held := range map[string]string{"idle": request, "silent": "",
		"header": "GET / HTTP/1.1\r\nHost: local"} {
		t.Run(name, func(t *testing.T) {
			conn := ask(t, address, held)
			must.OK(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection stays open")
			}
		})
	}
}
