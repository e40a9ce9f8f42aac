package admin

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// The tail has what the log has about clients, and no more than its bound.
func TestLogTail(t *testing.T) {
	var out bytes.Buffer
	tail := &LogTail{}
	log := slog.New(tail.Handler(slog.NewTextHandler(&out, nil)))
	session := log.With("session", "1", "remote", "192.0.2.7:1024")
	log.Info("serving")
	session.Debug("hidden")
	session.Info("old")
	begun := time.Now()
	session.Info("logged in")
	log.Info("logged in", "remote", "[::ffff:192.0.2.8]:1")
	log.Info("logged in", "remote", "[2001:db8::1]:1")
	for _, test := range []struct {
		network string
		since   time.Time
		want    int
	}{
		{"192.0.2.7/32", begun, 1}, {"192.0.2.7/32", time.Time{}, 2}, {"192.0.2.0/24", time.Time{}, 3},
		{"2001:db8::/32", begun, 1}, {"198.51.100.0/24", time.Time{}, 0}, {"192.0.2.7/32", time.Now().Add(time.Hour), 0},
	} {
		found := tail.Of(netip.MustParsePrefix(test.network), test.since)
		if len(found) != test.want {
			t.Errorf("%v: %q", test, found)
		}
		for _, line := range found {
			if !strings.Contains(out.String(), line) {
				t.Errorf("the log has no %q", line)
			}
		}
	}
	for range 2 * maxLog / 1000 {
		session.Info("command", "line", strings.Repeat("x", 1000))
	}
	if tail.size > maxLog || tail.size < maxLog/2 || strings.Contains(tail.lines[0].text, "old") {
		t.Errorf("it keeps %d bytes from %.80s", tail.size, tail.lines[0].text)
	}
}

func TestLogOfAnAddress(t *testing.T) {
	h := NewHandler(Options{Tail: &LogTail{}, Log: slog.New(slog.DiscardHandler)})
	for query, want := range map[string]int{
		"address=192.0.2.7&since=2h": http.StatusOK, "address=192.0.2.0/24&since=1s": http.StatusOK,
		"address=192.0.2.7": http.StatusBadRequest, "address=alice&since=2h": http.StatusBadRequest,
		"address=192.0.2.7&since=-2h": http.StatusBadRequest,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Root+"/log?"+query, nil))
		if w.Code != want {
			t.Errorf("%s: %d %s, want %d", query, w.Code, w.Body, want)
		}
	}
}
