package control_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/users/account"
)

// loginObserver records the errors of logins and the limits that were reached.
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

// A login that ends before it is decided is not a server failure: nothing is logged as an error, and observers see
// no failed login. Only a service that never responds is a failure.
func TestAbandonedLogins(t *testing.T) {
	const timeout = 30 * time.Second
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
				near, end := inBubble(t, control.Config{
					Observe: func(*report.Client) report.Observers { return report.Observers{observer} },
					Logger:  slog.New(slog.NewTextHandler(&log, nil)), LoginTimeout: timeout,
				})
				go func() { _, _ = io.Copy(io.Discard, near) }()
				must.Write(t, near, "USER "+tc.user+"\r\nPASS x\r\n")
				time.Sleep(time.Second)
				if tc.hangUp {
					_ = near.Close()
				}
				time.Sleep(timeout)
				synctest.Wait()
				end()
				if len(observer.logins) != 1 {
					t.Fatalf("unexpected logins %v", observer.logins)
				}
				_, full := errors.AsType[*account.FullError](observer.logins[0])
				if fault := !full && !errors.Is(observer.logins[0], account.ErrAbandoned); fault != tc.fault {
					t.Errorf("unexpected end of the login: %v", observer.logins[0])
				}
				if reached := strings.Join(observer.limits, " "); reached != tc.limit {
					t.Errorf("reached limits: got %q, want %q", reached, tc.limit)
				}
				if logged := strings.Contains(log.String(), "level=ERROR"); logged != tc.fault {
					t.Errorf("the log:\n%s", log.String())
				}
			})
		})
	}
}

// A lateBackend accepts a login long after its session was cut.
type lateBackend struct {
	slowBackend
	ended chan struct{}
}

func (b lateBackend) Login(_ context.Context, r *account.LoginRequest) (*account.Login, error) {
	r.Session.Cut(&limits.Error{Limit: limits.Bans})
	time.Sleep(time.Minute)
	login, err := b.slowBackend.Login(context.Background(), r)
	login.End = func() { close(b.ended) }
	return login, err
}

// A login that is accepted after its session has ended is ended at once, so that it occupies no limit. The ban
// that cut the session is counted once.
func TestLoginThatComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observer, backend := &loginObserver{}, lateBackend{ended: make(chan struct{})}
		near, end := inBubble(t, control.Config{
			Backend: backend,
			Observe: func(*report.Client) report.Observers { return report.Observers{observer} },
			Logger:  slog.New(slog.DiscardHandler),
		})
		go func() { _, _ = io.Copy(io.Discard, near) }()
		must.Write(t, near, "USER late\r\nPASS x\r\n")
		time.Sleep(2 * time.Minute)
		select {
		case <-backend.ended:
		default:
			t.Error("the login did not end")
		}
		end()
		if reached := strings.Join(observer.limits, " "); reached != limits.Bans || len(observer.logins) > 0 {
			t.Errorf("reached limits: got %q, logins %v; want bans and no login", reached, observer.logins)
		}
	})
}
