package admin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/users/account"
	"github.com/babelftp/babelftp/internal/users/bans"
)

// A source simulates a server with many sessions and tenants.
type source struct {
	sessions []*report.Activity
	tenants  int
	asked    atomic.Int64 // number of calls of Sessions
	bounded  atomic.Bool  // the last storage call had a deadline
}

func newSource(sessions, tenants int) *source {
	s := &source{tenants: tenants}
	for i := range sessions {
		s.sessions = append(s.sessions, report.NewActivity(&report.Client{
			ID: time.Duration(i).String(), Remote: "192.0.2.7:1024", Tenant: name(i % tenants), User: "alice",
		}))
	}
	return s
}

func name(i int) string { return "tenant" + string(rune('A'+i/26)) + string(rune('a'+i%26)) }

func (s *source) Server() Server { return Server{} }

func (s *source) Sessions() []report.SessionInfo {
	s.asked.Add(1)
	shown := make([]report.SessionInfo, len(s.sessions))
	for i, session := range s.sessions {
		shown[i] = session.Info()
	}
	return shown
}

func (s *source) LastLogins() []account.LastLogin {
	return []account.LastLogin{{Tenant: "t0", User: "alice", Time: time.Unix(0, 0).UTC()}}
}

func (s *source) Tenants(sessions []report.SessionInfo) []Tenant {
	counts := map[string]int{}
	for i := range sessions {
		counts[sessions[i].Tenant]++
	}
	all := make([]Tenant, s.tenants)
	for i := range all {
		all[i] = Tenant{Name: name(i), Sessions: counts[name(i)]}
	}
	return all
}

func (s *source) Uploads(ctx context.Context, _ string) (*Uploads, error) {
	_, bounded := ctx.Deadline()
	s.bounded.Store(bounded)
	return &Uploads{}, nil
}

func (s *source) Abort(ctx context.Context, _, _ string) error {
	_, bounded := ctx.Deadline()
	s.bounded.Store(bounded)
	return nil
}

func (*source) Disconnect(string) bool { return true }

func handlerOf(s *source, log *bytes.Buffer) *Handler {
	discarded := slog.New(slog.DiscardHandler)
	return NewHandler(Options{
		Source: s, Bans: bans.New(config.Bans{Time: time.Hour}, config.Networks{}, discarded, func(bans.Ban) {}),
		Debug: &sessionlog.Switch{},
		Log:   slog.New(slog.NewTextHandler(log, nil)),
	})
}

// asAdministrator returns a context of requests by an administrator.
func asAdministrator(ctx context.Context) context.Context {
	return withIdentity(ctx, Identity{Name: "ann", Role: Administrator, Login: loginPassword})
}

// The log has each change with its parameters. Requests that only read are not logged.
func TestLogOfChanges(t *testing.T) {
	s := newSource(1, 22)
	var log bytes.Buffer
	h := handlerOf(s, &log)
	for _, tc := range []struct {
		method, path, form string
		logged             []string
	}{
		{http.MethodGet, "/bans", "", nil},
		{http.MethodHead, "/bans", "", nil},
		{http.MethodHead, "/sessions", "", nil},
		{http.MethodPut, "/bans?name=192.0.2.1", "",
			[]string{"method=PUT path=/api/v1/bans ", "form=\"name=192.0.2.1\" remote=192.0.2.1:1234\n"}},
		{http.MethodPut, "/bans", "name=192.0.2.2&time=5m", []string{"name=192.0.2.2&time=5m"}},
		{http.MethodPut, "/bans", "name=nobody", []string{"failed", "name=nobody", "is not an address"}},
		{http.MethodPut, "/bans", "name=192.0.2.3&time=-1s", []string{"failed", "must be longer than 0"}},
		{http.MethodDelete, "/bans?name=192.0.2.2", "", []string{"method=DELETE", "name=192.0.2.2"}},
		{http.MethodDelete, "/bans?name=192.0.2.2", "", []string{"failed", "no ban of 192.0.2.2 on this replica"}},
		{http.MethodDelete, "/bans?name=nobody", "", []string{"failed", "is not an address"}},
		{http.MethodPut, "/debug?tenant=tenantAb&user=nobody&time=1m", "", []string{"path=/api/v1/debug "}},
		{http.MethodPut, "/debug?tenant=typo&time=1m", "", []string{
			"failed", `unknown tenant \"typo\": want one of tenantAa, tenantAb, `, "tenantAt, 2 more\"\n"}},
		{http.MethodDelete, "/sessions/5f2c", "", []string{"path=/api/v1/sessions/5f2c "}},
	} {
		log.Reset()
		r := httptest.NewRequestWithContext(
			asAdministrator(t.Context()), tc.method, Root+tc.path, strings.NewReader(tc.form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		h.ServeHTTP(httptest.NewRecorder(), r)
		if tc.logged == nil && log.Len() > 0 {
			t.Errorf("%s %s: unexpected log %s", tc.method, tc.path, &log)
		}
		for _, want := range tc.logged {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s %s: got log %q, want %s", tc.method, tc.path, &log, want)
			}
		}
	}
}

// The log names the administrator on the socket, where clients have no address.
func TestLogOfSocket(t *testing.T) {
	var log bytes.Buffer
	ctx := context.WithValue(
		asAdministrator(t.Context()), http.LocalAddrContextKey, &net.UnixAddr{Name: "admin.sock", Net: "unix"})
	handlerOf(newSource(1, 1), &log).ServeHTTP(
		httptest.NewRecorder(), httptest.NewRequestWithContext(
			ctx, http.MethodPut, Root+"/bans?name=192.0.2.1", http.NoBody))
	if !strings.Contains(log.String(), " remote=admin_socket\n") {
		t.Errorf("the log has %q", &log)
	}
}

// Requests to S3 have a deadline.
func TestStorageDeadline(t *testing.T) {
	for _, request := range [][2]string{{http.MethodGet, "/uploads"}, {http.MethodDelete, "/uploads/acme/a-b-c"}} {
		s := newSource(1, 1)
		w := httptest.NewRecorder()
		handlerOf(s, &bytes.Buffer{}).ServeHTTP(
			w, httptest.NewRequestWithContext(asAdministrator(t.Context()), request[0], Root+request[1], nil))
		if w.Code != http.StatusOK || !s.bounded.Load() {
			t.Errorf("%v: %d, with a deadline: %t", request, w.Code, s.bounded.Load())
		}
	}
}

// The status distinguishes a storage error from a server that keeps no record of uploads.
func TestStorageErrors(t *testing.T) {
	for want, err := range map[int]error{
		http.StatusNotFound:       &Error{http.StatusNotFound, "tenant acme: upload a-b-c not found"},
		http.StatusConflict:       fmt.Errorf("acme: %w", syscall.EBUSY),
		http.StatusNotImplemented: fmt.Errorf("acme: %w", errNoJournal),
		http.StatusBadGateway:     errSlow,
	} {
		w := httptest.NewRecorder()
		Fail(w, storageError(err))
		if w.Code != want {
			t.Errorf("%v: the status is %d, want %d", err, w.Code, want)
		}
	}
}

// All streams of events share one State per second. Without streams, no State is built.
func TestStreamsShareTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const seconds, streams = 10, 5
		s := newSource(2_000, 100)
		h := handlerOf(s, &bytes.Buffer{})
		ctx, cancel := context.WithCancel(asAdministrator(t.Context()))
		for range streams {
			time.Sleep(130 * time.Millisecond) // fake time; the streams start at different times
			go h.ServeHTTP(
				httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, Root+"/events", nil))
		}
		time.Sleep(seconds * time.Second)
		cancel()
		synctest.Wait()
		if got := s.asked.Load(); got < seconds || got > seconds+2 {
			t.Errorf("%d streams read the sessions in %d s %d times", streams, seconds, got)
		}
		before := s.asked.Load()
		time.Sleep(seconds * time.Second)
		if got := s.asked.Load() - before; got != 0 {
			t.Errorf("the sessions were read %d times without streams", got)
		}
	})
}

// An event has the first items of a long list, in order.
func TestFirst(t *testing.T) {
	list := make([]int, 10*maxListed+1)
	for i := range list {
		list[i] = i * 7919 % len(list) // a permutation
	}
	got := first(list, func(a, b int) int { return a - b })
	for i, n := range got {
		if n != i {
			t.Fatalf("got %d at index %d", n, i)
		}
	}
	short := first(list[:3], func(a, b int) int { return b - a })
	if len(got) != maxListed || len(short) != 3 || short[0] < short[1] {
		t.Errorf("got %d entries, and %v of three", len(got), short)
	}
}

// BenchmarkState measures one event of a replica with 100,000 sessions of 100 tenants.
func BenchmarkState(b *testing.B) {
	h := handlerOf(newSource(100_000, 100), &bytes.Buffer{})
	b.ReportAllocs()
	for b.Loop() {
		if state := h.state(); state.Totals.Sessions != 100_000 || len(state.Sessions) != maxListed {
			b.Fatalf("got %d sessions", state.Totals.Sessions)
		}
	}
}

// If a request was sent but the response is lost or incomplete, the client does not report that the server is
// not running.
func TestClientWithoutAResponse(t *testing.T) {
	for name, handle := range map[string]http.HandlerFunc{
		"no-response":      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"partial-response": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"name": "192.0.`) },
		"part-of-error": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(http.StatusBadGateway)
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(handle)
			t.Cleanup(srv.Close)
			c, err := NewRemoteClient(srv.URL, "", "", nil)
			must.OK(t, err)
			_, err = c.Ban(t.Context(), "192.0.2.7", time.Minute)
			want := "no response from the server at " + srv.URL + ", which may have executed the request: "
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("error for a change: %v", err)
			}
			_, err = c.Bans(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), "no response from the server at "+srv.URL+": ") {
				t.Errorf("error for a query: %v", err)
			}
		})
	}
}
