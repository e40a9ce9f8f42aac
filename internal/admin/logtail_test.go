package admin

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/doctor"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// The tail keeps the latest lines about clients up to its limit while others read it. Lines about a noisy
// client do not evict lines about others.
func TestLogTail(t *testing.T) {
	tail := NewLogTail()
	read := func() string {
		text, err := io.ReadAll(tail.reader())
		if err != nil || len(text) > maxLog {
			t.Errorf("got %d bytes, %v", len(text), err)
		}
		return string(text)
	}
	write := func(text string) {
		if n, err := io.WriteString(tail, text); n != len(text) || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
	}
	const quiet = "msg=first remote=192.0.2.7:1\n" + `{"msg":"second","remote":"192.0.2.7:1"}` + "\n" +
		"msg=third remote=[2001:db8::1]:2\n"
	write("msg=serving\n")
	for line := range strings.Lines(quiet) {
		write(line)
	}
	if got := read(); got != quiet {
		t.Errorf("got %q", got)
	}
	write(strings.Repeat("x", maxLog) + " remote=192.0.2.8:1\n")
	early := tail.reader()
	var others sync.WaitGroup
	for i := range 4 {
		others.Go(func() {
			for n := range maxLog / 1000 {
				write(fmt.Sprintf("n=%d.%04d remote=192.0.2.9:%d err=%s\n", i, n, 1000+n%9000, strings.Repeat("x", 1000)))
			}
		})
		others.Go(func() { _ = read() })
	}
	others.Wait()
	write("n=9.9999 remote=192.0.2.9:9 err=\n")
	got := read()
	loud, kept := strings.CutPrefix(got, quiet)
	if !kept || len(loud) < maxLog/2 || !strings.Contains(loud, "n=9.9999 ") {
		t.Errorf("got %d bytes from %.80s", len(got), got)
	}
	for line := range strings.Lines(got) {
		if len(line) > 1100 || !strings.HasSuffix(line, "\n") {
			t.Fatalf("unexpected line %.80s", line)
		}
	}
	if text, _ := io.ReadAll(early); string(text) != quiet {
		t.Errorf("early reader: got %.80s", text)
	}
}

func TestFindings(t *testing.T) {
	bundle, err := i18n.Load()
	must.OK(t, err)
	tail := NewLogTail()
	log := slog.New(slog.NewTextHandler(tail, nil))
	log.Info("login refused", "remote", "[::ffff:192.0.2.7]:50123", "user", "alice")
	log.Info("logged in", "remote", "192.0.2.8:1")
	_, _ = io.WriteString(tail, "time=2026-01-01T00:00:00Z msg=\"login refused\" remote=192.0.2.9:1\n")
	offered := func() *i18n.Bundle { return bundle }
	h := NewHandler(Options{Tail: tail, Log: slog.New(slog.DiscardHandler), Bundle: offered})
	for _, test := range []struct {
		query, accept string
		status        int
		want          string // expected part of the cause or the error
	}{
		{"address=192.0.2.7&since=2h", "", http.StatusOK, "The user name or the password is incorrect."},
		{"address=192.0.2.7:40000&since=2h", "", http.StatusOK, "The user name or the password is incorrect."},
		{"address=192.0.2.0/24&since=1m", "de", http.StatusOK, "Benutzername oder Passwort ist falsch."},
		{"address=192.0.2.7&since=2h&lang=fr", "de", http.StatusOK, "Nom d’utilisateur ou mot de passe incorrect."},
		{"address=192.0.2.7&since=2h&lang=eu", "ja", http.StatusOK, "ユーザー名またはパスワードが正しくありません。"},
		{"address=192.0.2.8&since=2h", "", http.StatusOK, ""},
		{"address=192.0.2.9&since=2h", "", http.StatusNotFound, "no line about 192.0.2.9 in the last 2h0m0s"},
		{"address=2001:db8::7&since=2h", "", http.StatusNotFound, "no line about 2001:db8::7"},
		{"address=192.0.2.7", "", http.StatusBadRequest, "invalid since"},
		{"address=192.0.2.7&since=-2h", "", http.StatusBadRequest, "invalid since"},
		{"since=2h", "", http.StatusBadRequest, "invalid address"},
		{"address=alice&since=2h", "", http.StatusBadRequest, "invalid address"},
		{"address=192.0.2.0/24:21&since=2h", "", http.StatusBadRequest, "invalid address"},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(
			asAdministrator(t.Context()), http.MethodGet, Root+"/findings?"+test.query, nil)
		r.Header.Set("Accept-Language", test.accept)
		h.ServeHTTP(w, r)
		got := w.Body.String()
		if w.Code == http.StatusOK {
			var found []doctor.Finding
			if err := json.Unmarshal(w.Body.Bytes(), &found); err != nil || found == nil {
				t.Errorf("%s: %v: %s", test.query, err, w.Body)
			}
			got = ""
			for _, f := range found {
				got += f.Cause
			}
			if got != test.want {
				t.Errorf("%s: got %q, want %q", test.query, got, test.want)
			}
		}
		if w.Code != test.status || !strings.Contains(got, test.want) {
			t.Errorf("%s: %d %s, want %d %s", test.query, w.Code, got, test.status, test.want)
		}
	}
}
