package control_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/users/account"
)

// loginObserver keeps the errors of logins, and the limits that are reached.
type loginObserver struct {
	report.Silent
	mu     sync.Mutex
	logins []error
	limits []string
}

func (o *loginObserver) LoggedIn(_ *account.Login, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.logins = append(o.logins, err)
}

func (o *loginObserver) Refused(_, limit string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.limits = append(o.limits, limit)
}

// A login that ends before it is decided is no fault of the server: the log has no error, and the observer no
// failure. Only a service that never answers is one.
func TestAbandonedLogins(t *testing.T) {
	const timeout = 30 * time.Second
	bundle, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		user   string
		hangUp bool
		limit  string
		fault  bool
	}{
		"hang-up-while-it-waits":        {"waits", true, "", false},
		"hang-up-while-it-is-decided":   {"slow", true, "", false},
		"time-limit-while-it-waits":     {"waits", false, "login_timeout", false},
		"time-limit-while-a-hook-hangs": {"slow", false, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				observer := &loginObserver{}
				server := control.New(control.Config{
					Bundle: bundle, Backend: slowBackend{}, Observe: func(*report.Client) report.Observers {
						return report.Observers{observer}
					},
					Logger: slog.New(slog.NewTextHandler(&log, nil)), IdleTimeout: 5 * time.Minute,
					LoginTimeout: timeout, MaxLogins: 5,
				})
				listener := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
				served := make(chan error, 1)
				go func() { served <- server.Serve(t.Context(), listener) }()
				near, far := net.Pipe()
				listener.conns <- far
				go func() { _, _ = io.Copy(io.Discard, near) }()
				if _, err := io.WriteString(near, "USER "+tc.user+"\r\nPASS x\r\n"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if tc.hangUp {
					_ = near.Close()
				}
				time.Sleep(timeout)
				synctest.Wait()
				if err := server.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
				if err := <-served; err != nil {
					t.Error(err)
				}
				if len(observer.logins) != 1 {
					t.Fatalf("logins are %v", observer.logins)
				}
				_, full := errors.AsType[*account.FullError](observer.logins[0])
				if fault := !full && !errors.Is(observer.logins[0], account.ErrAbandoned); fault != tc.fault {
					t.Errorf("the login ends by %v", observer.logins[0])
				}
				if limits := strings.Join(observer.limits, " "); limits != tc.limit {
					t.Errorf("limits that are reached: %q, want %q", limits, tc.limit)
				}
				if logged := strings.Contains(log.String(), "level=ERROR"); logged != tc.fault {
					t.Errorf("the log:\n%s", log.String())
				}
			})
		})
	}
}
