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

// serve starts a server and returns its address.
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

// send connects and sends a request or its beginning.
func send(t *testing.T, address, request string) net.Conn {
	t.Helper()
	conn := must.Dial(t, address)
	must.Write(t, conn, request)
	return conn
}

const request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

// response reads the beginning of a response. It returns "" if the server has closed the connection.
func response(t *testing.T, conn net.Conn) string {
	t.Helper()
	must.OK(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	received := make([]byte, 1000)
	n, err := conn.Read(received)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("the connection is open but there is no response")
	}
	return string(received[:n])
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

// TestOldestIsClosed checks that a new connection is served even if a client keeps many connections idle, silent or in
// the middle of a request. The oldest of them is closed.
func TestOldestIsClosed(t *testing.T) {
	for name, held := range map[string]string{"idle": request, "silent": "",
		"header": "GET / HTTP/1.1\r\nHost: local"} {
		for limit, opts := range map[string]web.Options{"network": {PerNetwork: 3}, "all": {Connections: 3}} {
			t.Run(name+"-"+limit, func(t *testing.T) {
				address := serve(t, ok, opts)
				first := send(t, address, held)
				if held == request {
					response(t, first)
				}
				for range 20 {
					if got := response(t, send(t, address, request)); !strings.HasPrefix(got, "HTTP/1.1 200") {
						t.Fatalf("response to a probe: %q", got)
					}
				}
				if got := response(t, first); got != "" {
					t.Errorf("the oldest connection is open and has received %q", got)
				}
			})
		}
	}
}

// TestBusyConnectionsStayOpen checks that connections with a request are not closed for a new one, which is refused.
func TestBusyConnectionsStayOpen(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-end
		ok(w, r)
	}, web.Options{PerNetwork: 2})
	kept := []net.Conn{send(t, address, request), send(t, address, request)}
	for range kept {
		<-begun
	}
	if got := response(t, send(t, address, "")); got != "" {
		t.Errorf("connection above the limit: got %q", got)
	}
	close(end)
	for _, conn := range kept {
		if got := response(t, conn); !strings.HasPrefix(got, "HTTP/1.1 200") {
			t.Errorf("response to a running request: %q", got)
		}
	}
}

// TestProbesReplaceBusyConnections checks that a server for probes closes the oldest connection if the clients of all
// connections do not read their responses.
func TestProbesReplaceBusyConnections(t *testing.T) {
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
				<-end // blocks like a write to a client that does not read
			}, opts)
			var held []net.Conn
			for range 2 {
				held = append(held, send(t, address, strings.Replace(request, "GET / ", "GET /metrics ", 1)))
				<-begun
			}
			if got := response(t, send(t, address, request)); !strings.HasPrefix(got, "HTTP/1.1 200") {
				t.Errorf("response to a probe: %q", got)
			}
			if got := response(t, held[0]); got != "" {
				t.Errorf("the oldest connection is open and has received %q", got)
			}
		})
	}
}

// TestIdleTimeout checks that connections without a complete request are closed.
func TestIdleTimeout(t *testing.T) {
	address := serve(t, ok, web.Options{Timeout: 50 * time.Millisecond})
	for name, held := range map[string]string{"idle": request, "silent": "",
		"header": "GET / HTTP/1.1\r\nHost: local"} {
		t.Run(name, func(t *testing.T) {
			conn := send(t, address, held)
			must.OK(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection stays open")
			}
		})
	}
}
