package auth

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// FTP servers from Debian verify passwords over TLS, with a certificate without a host name.
func TestOldServers(t *testing.T) {
	for _, program := range servicetest.OldServers() {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			s := servicetest.StartOldServer(t, program)
			cfg := &config.Auth{FTP: config.OldServer{Address: s.Address, CAFile: s.CAFile, Timeout: time.Minute},
				User: config.UserSettings{Root: "/{user}"}}
			source := newSource(t, cfg)
			var wrong sync.WaitGroup // in parallel, because Pure-FTPd delays failed logins by seconds
			for _, login := range [][2]string{
				{servicetest.OldUser, "wrong"}, {servicetest.OldUser, ""}, {"nobody-there", servicetest.OldPassword},
				{servicetest.OldUser, servicetest.OldPassword + "\r\nNOOP"}, {"anonymous", "a@b"}, {"fTp", "a@b"}, {"ftp ", "a@b"}, {"\u00a0Anonymous\t", "a@b"},
			} {
				wrong.Go(func() {
					if _, err := ask(t, source, login[0], login[1]); !errors.Is(err, ErrRefused) {
						t.Errorf("%q: %v", login, err)
					}
				})
			}
			if err := Probe(t.Context(), cfg); err != nil {
				t.Error(err)
			}
			want := &Response{User: &config.User{Root: "/" + servicetest.OldUser}}
			if got, err := ask(t, source, servicetest.OldUser, servicetest.OldPassword); err != nil ||
				!reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, %v", got, err)
			}
			other := filepath.Join(t.TempDir(), "other.pem")
			must.WriteCertificate(t, other, other+".key", &x509.Certificate{})
			for name, change := range map[string]func(*config.OldServer){
				"system":           func(o *config.OldServer) { o.CAFile = "" },
				"other-authority":  func(o *config.OldServer) { o.CAFile = other },
				"in-the-clear":     func(o *config.OldServer) { o.TLS = config.NoOldTLS },
				"not-from-the-top": func(o *config.OldServer) { o.TLS = config.ImplicitOldTLS },
			} {
				next := *cfg
				change(&next.FTP)
				if _, err := ask(t, newSource(t, &next), servicetest.OldUser, servicetest.OldPassword); err == nil {
					t.Errorf("%s: the password was accepted", name)
				}
			}
			wrong.Wait()
			s.Stop()
			_, err := ask(t, source, servicetest.OldUser, servicetest.OldPassword)
			if err == nil || errors.Is(err, ErrRefused) {
				t.Errorf("without the server: %v", err)
			}
		})
	}
}

// A hostile or broken server lets nobody in, and the password is sent over TLS only.
func TestHostileOldServer(t *testing.T) {
	for name, tc := range map[string]struct {
		tls     config.OldServerTLS
		says    []string // the greeting and the reply to each command
		refused bool
		want    string // a part of the error
		sent    string // the received commands
	}{
		"no-tls":          {says: []string{"220 hello", "502 what?"}, want: "replied 502 to AUTH TLS", sent: "AUTH TLS"},
		"tls-in-the-text": {says: []string{"220-hello\r\n234 \r\n220 yes", "534 no"}, want: "534", sent: "AUTH TLS"},
		"injected":        {says: []string{"220 hello", "234 go\r\n331 \r\n230 in"}, want: "", sent: "AUTH TLS"},
		"busy":            {tls: config.NoOldTLS, says: []string{"421 later"}, want: "421 to the connection"},
		"soon":            {tls: config.NoOldTLS, says: []string{"120 soon\r\n220 now", "331 ", "230 in"}, sent: "USER|PASS"},
		"no-password":     {tls: config.NoOldTLS, says: []string{"220 ", "230 in"}, refused: true, want: "230 to USER", sent: "USER"},
		"account":         {tls: config.NoOldTLS, says: []string{"220 ", "331 ", "332 "}, want: "332 to PASS", sent: "USER|PASS"},
		"superfluous":     {tls: config.NoOldTLS, says: []string{"220 ", "331 ", "202 "}, want: "202 to PASS", sent: "USER|PASS"},
		"two-lines":       {tls: config.NoOldTLS, says: []string{"220 ", "331 ", "530-no\r\n230 in\r\n530 no"}, refused: true, want: "530", sent: "USER|PASS"},
		"wrong":           {tls: config.NoOldTLS, says: []string{"220 ", "331 ", "430 no"}, refused: true, want: "430 to PASS", sent: "USER|PASS"},
		"no-ftp":          {tls: config.NoOldTLS, says: []string{"HTTP/1.1 400"}, want: "invalid FTP reply"},
		"endless":         {tls: config.NoOldTLS, says: []string{"220-" + strings.Repeat("x", 2<<20)}, want: "EOF"},
		"hangs-up":        {tls: config.NoOldTLS, says: []string{"220 ", ""}, want: "EOF", sent: "USER"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			must.OK(t, err)
			defer l.Close()
			got := make(chan string, 1)
			go func() {
				conn, err := l.Accept()
				if err != nil {
					got <- err.Error()
					return
				}
				defer conn.Close()
				var commands []string
				for i, text := range tc.says {
					if i > 0 {
						line := make([]byte, 1024)
						n, err := conn.Read(line)
						if err != nil {
							break
						}
						command, _, _ := strings.Cut(strings.TrimSpace(string(line[:n])), " "+request.User)
						command, _, _ = strings.Cut(command, " "+request.Password)
						commands = append(commands, command)
					}
					if text == "" {
						break
					}
					_, _ = io.WriteString(conn, text+"\r\n")
				}
				got <- strings.Join(commands, "|")
			}()
			source := newSource(t, &config.Auth{FTP: config.OldServer{Address: l.Addr().String(), TLS: tc.tls,
				Timeout: 10 * time.Second}})
			_, err = source.Authenticate(t.Context(), &request)
			switch accepted := name == "soon"; {
			case (err == nil) != accepted, errors.Is(err, ErrRefused) != tc.refused:
				t.Errorf("unexpected error: %v", err)
			case err != nil && !strings.Contains(err.Error(), tc.want):
				t.Errorf("got error %v, want %q", err, tc.want)
			}
			if sent := <-got; sent != tc.sent {
				t.Errorf("server: got %q, want %q", sent, tc.sent)
			}
		})
	}
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // never accepts a connection
	must.OK(t, err)
	defer silent.Close()
	cfg := &config.Auth{FTP: config.OldServer{Address: silent.Addr().String(), Timeout: 100 * time.Millisecond}}
	if _, err := newSource(t, cfg).Authenticate(t.Context(), &request); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("silent server: %v", err)
	}
	cfg.FTP.CAFile = filepath.Join(t.TempDir(), "none.pem")
	if _, err := New(cfg); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("unknown authority: %v", err)
	}
}
