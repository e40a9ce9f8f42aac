package doctor_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/doctor"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// If the examination is canceled while it waits for the reply to MKD, it removes the directory that may exist.
func TestStoppedAtMKD(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.OK(t, err)
	defer l.Close()
	ctx, stop := context.WithCancel(t.Context())
	commands := make(chan string, 100)
	serve := func(conn net.Conn) {
		defer conn.Close()
		_, _ = io.WriteString(conn, "220 hello\r\n")
		for in := bufio.NewScanner(conn); in.Scan(); {
			verb, _, _ := strings.Cut(in.Text(), " ")
			if verb == "MKD" {
				commands <- in.Text()
				stop()
				continue
			}
			if verb == "RMD" {
				commands <- in.Text()
			}
			replies := map[string]string{"USER": "331 ", "PASS": "230 ", "AUTH": "502 "}
			reply, ok := replies[verb]
			if !ok {
				reply = "250 "
			}
			_, _ = io.WriteString(conn, reply+"\r\n")
		}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	target, err := doctor.ParseTarget("ftp://" + l.Addr().String())
	must.OK(t, err)
	_, err = doctor.Examine(ctx, target, doctor.Options{Samples: 2, Logins: 1, Progress: func(string) {}})
	if err == nil {
		t.Error("the end of the connection was not noticed")
	}
	made := strings.TrimPrefix(<-commands, "MKD ")
	select {
	case removed := <-commands:
		if removed != "RMD "+made {
			t.Errorf("created %s, but removed %s", made, removed)
		}
	default:
		t.Errorf("%s was not removed", made)
	}
}

// A password is sent without TLS only if requested, whatever the reason for the missing TLS.
func TestPasswordInTheClear(t *testing.T) {
	for _, test := range []struct {
		name, auth string
		insecure   bool
		want       string
	}{
		{"refused", "502 no", false, "password-kept tls-missing"},
		{"failed", "234 go on", false, "tls-failed"},
		{"failed-and-asked-for", "234 go on", true, "tls-failed"},
		{"refused-and-asked-for", "502 no", true, "login-refused tls-missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			lines := make(chan string, 100)
			address := serve(t, func(conn net.Conn) {
				_, _ = io.WriteString(conn, "220 hello\r\n")
				for in := bufio.NewScanner(conn); in.Scan(); {
					lines <- in.Text()
					verb, _, _ := strings.Cut(in.Text(), " ")
					reply := map[string]string{"AUTH": test.auth, "USER": "331 go on", "PASS": "530 no such " + in.Text()}[verb]
					if _, _ = io.WriteString(conn, reply+"\r\n"); verb == "AUTH" && test.auth[0] == '2' {
						_, _ = io.WriteString(conn, "500 what is this?\r\n")
						return
					}
				}
			})
			target := doctor.Target{Host: "127.0.0.1", Port: address.Port(), User: "alice", Password: "secret"}
			found, err := doctor.Examine(t.Context(), target, doctor.Options{Logins: 1, Insecure: test.insecure,
				Progress: func(string) {}})
			must.OK(t, err)
			var ids []string
			for _, f := range found.Shown(text) {
				ids = append(ids, string(f.ID))
				if shown := fmt.Sprint(f.Args, f.Evidence); strings.Contains(shown, "secret") {
					t.Errorf("%s shows the password: %s", f.ID, shown)
				}
			}
			if got := strings.Join(ids, " "); got != test.want {
				t.Errorf("found %s, want %s", got, test.want)
			}
			sent := false
			for range len(lines) {
				sent = sent || strings.Contains(<-lines, "secret")
			}
			if want := strings.HasPrefix(test.want, "login-refused"); sent != want {
				t.Errorf("sent the password: got %t, want %t", sent, want)
			}
		})
	}
}

// A server that first looks up names is recognized, and not taken for another protocol.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	address := serve(t, func(conn net.Conn) {
		<-time.After(4200 * time.Millisecond)
		_, _ = io.WriteString(conn, "220 hello\r\n")
		for in := bufio.NewScanner(conn); in.Scan(); {
			_, _ = io.WriteString(conn, "530 no\r\n")
		}
	})
	target := doctor.Target{Host: "127.0.0.1", Port: address.Port(), User: "anonymous"}
	found, err := doctor.Examine(t.Context(), target, doctor.Options{Logins: 1, Progress: func(string) {}})
	must.OK(t, err)
	if !slices.ContainsFunc(found.Shown(text), func(f doctor.Finding) bool { return f.ID == "slow" }) {
		t.Errorf("found %+v", found.Shown(text))
	}
}

// A server that only supports TLS 1.1 is reported, although current clients would refuse it.
func TestOldTLS(t *testing.T) {
	cert, key := must.Certificate(t, &x509.Certificate{NotAfter: time.Now().AddDate(0, 1, 0)})
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	must.OK(t, err)
	address := serve(t, func(conn net.Conn) {
		secure := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS10,
			MaxVersion: tls.VersionTLS11})
		_, _ = io.WriteString(secure, "220 hello\r\n")
		for in := bufio.NewScanner(secure); in.Scan(); {
			_, _ = io.WriteString(secure, "530 no\r\n")
		}
	})
	target := doctor.Target{Host: "127.0.0.1", Port: address.Port(), Implicit: true, User: "anonymous"}
	found, err := doctor.Examine(t.Context(), target, doctor.Options{Logins: 1, Progress: func(string) {}})
	must.OK(t, err)
	if !slices.ContainsFunc(found.Shown(text), func(f doctor.Finding) bool { return f.ID == "tls-old" }) {
		t.Errorf("found %+v", found.Shown(text))
	}
}

// Only one session waits for an endless reply to FEAT, and the servers are compared without it.
func TestFeaturesWithoutAnEnd(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	address := serve(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "220 hello\r\n")
		for in := bufio.NewScanner(conn); in.Scan(); {
			verb, _, _ := strings.Cut(in.Text(), " ")
			reply, ok := map[string]string{"USER": "331 go on", "PASS": "230 hello", "FEAT": "211-Features:\r\n UTF8",
				"CWD": "250 ok", "OPTS": "200 ok", "QUIT": "221 bye"}[verb]
			if !ok {
				reply = "502 no"
			}
			if verb == "FEAT" {
				asked.Add(1)
			}
			_, _ = io.WriteString(conn, reply+"\r\n")
		}
	})
	target := doctor.Target{Host: "127.0.0.1", Port: address.Port(), User: "anonymous"}
	found, err := doctor.Examine(t.Context(), target, doctor.Options{Samples: 2, Logins: 4, Progress: func(string) {}})
	must.OK(t, err)
	var ids []string
	for _, f := range found.Shown(text) {
		ids = append(ids, strings.Join(append([]string{string(f.ID)}, f.Args...), " "))
	}
	want := []string{"command-broken FEAT", "command-broken EPSV", "command-broken PASV", "tls-missing", "active-failed"}
	if !slices.Equal(ids, want) {
		t.Errorf("found %q, want %q", ids, want)
	}
	if asked.Load() != 1 {
		t.Errorf("sent FEAT %d times", asked.Load())
	}
}

// If a server stops responding, the examination ends, and the error says that it is incomplete.
func TestLimit(t *testing.T) {
	address := serve(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "220 hello\r\n")
		_, _ = io.Copy(io.Discard, conn)
	})
	target := doctor.Target{Host: "127.0.0.1", Port: address.Port(), User: "anonymous"}
	found, err := doctor.Examine(t.Context(), target, doctor.Options{Logins: 1, Limit: 100 * time.Millisecond,
		Progress: func(string) {}})
	if err == nil || !strings.Contains(err.Error(), "stopped after 100ms") {
		t.Errorf("unexpected error: %v", err)
	}
	if shown := found.Shown(text); len(shown) > 0 {
		t.Errorf("found %+v", shown) // the examination has ended
	}
}

// serve runs a server for one connection after another, until the test ends.
func serve(t *testing.T, session func(net.Conn)) netip.AddrPort {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.OK(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			session(conn)
			_ = conn.Close()
		}
	}()
	address, err := netip.ParseAddrPort(l.Addr().String())
	must.OK(t, err)
	return address
}
