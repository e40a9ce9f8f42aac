package acceptance_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/certtest"
	"github.com/babelftp/babelftp/internal/testkit/configtest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// These are attacks that come by what an operator gives the running program.

// aliasBomb is a list of users in which aliases stand for nine million permissions.
func aliasBomb() string {
	var users strings.Builder
	hash := strconv.Quote(configtest.PasswordHash().Reveal())
	users.WriteString("users:\n  u0: &u\n    password_hash: " + hash + "\n    path_permissions:\n")
	for i := range 3000 {
		fmt.Fprintf(&users, "      /d%d: [read]\n", i)
	}
	for i := range 2999 {
		fmt.Fprintf(&users, "  v%d: *u\n", i)
	}
	return users.String()
}

// TestAliasBomb gives check such a list, and then a server that runs. The server refuses it in little memory, and goes
// on.
func TestAliasBomb(t *testing.T) {
	t.Parallel()
	storage := s3test.Start(t, "minio")
	buckets := map[string]string{acme: storage.Bucket(t), umbrella: storage.Bucket(t)}
	s := &reloadSite{t: t, site: &site{storage: storage, buckets: buckets}}
	s.file = s.configure(t, "    users_file: users.yaml")
	users := filepath.Join(filepath.Dir(s.file), "users.yaml")
	write := func(text string) {
		if err := os.WriteFile(users, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(aliasBomb())
	p := launch(t, binary(t), "check", "--config", s.file)
	if code := p.wait(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	p.expect(p.stderr, `users\.yaml:30\d\d:\d+: aliases stand for more than 250000 values`)

	write("users: {}\n")
	s.start(t, s.file)
	before := s.metric(t, fromSystem)
	s.after(refused, func() { certtest.Replace(t, users, aliasBomb()) })
	s.server.expect(s.server.stderr, `file=\S+users\.yaml line=30\d\d column=\d+ .*aliases stand for more than 250000 values`)
	took := s.metric(t, fromSystem) - before
	t.Logf("%.0f MiB more", took/(1<<20))
	if took > mostMemory {
		t.Errorf("a reload takes %.0f bytes, want %d at most", took, mostMemory)
	}
	s.login("alice@acme", 230)
}

// fromSystem is the metric of the memory that the server has asked the system for, so the most that it has ever used.
// mostMemory is how much more of it a small text may take.
const (
	fromSystem = "go_memstats_sys_bytes"
	mostMemory = 256 << 20
)

// TestDeepAnswerOfAHook: a service that decides on logins answers with values that are 10,000 levels deep. The login is
// refused in little memory.
func TestDeepAnswerOfAHook(t *testing.T) {
	t.Parallel()
	const levels = 10_000
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"user": `+strings.Repeat(`{"a":`, levels)+"0"+strings.Repeat("}", levels)+"}")
	}))
	t.Cleanup(hook.Close)
	s := newSite(t, s3test.Start(t, "minio"), "    auth: {hook: {url: "+strconv.Quote(hook.URL)+"}}")
	before := s.metric(t, fromSystem)
	if code := s.guess(t, "bob@acme", "any"); code != 421 {
		t.Errorf("PASS is answered by %d", code)
	}
	took := s.metric(t, fromSystem) - before
	t.Logf("%.0f MiB more", took/(1<<20))
	if took > mostMemory {
		t.Errorf("a login takes %.0f bytes, want %d at most", took, mostMemory)
	}
	s.server.expect(s.server.stderr, `values in more than \d+ others`)
}

// TestCopyOfACookie: after the logout of an administrator a copy of its cookie opens nothing.
func TestCopyOfACookie(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef0123456789abcdef"
	s := newSite(t, s3test.Start(t, "minio"), `admin: {listen: "127.0.0.1:0", token: `+token+"}")
	base := "http://" + s.listens("admin.listen")
	asks := func(method, path, body string, cookie *http.Cookie, want int) (cookies []*http.Cookie) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if cookie != nil {
			request.AddCookie(cookie)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s %s: %s, want %d", method, path, response.Status, want)
		}
		return response.Cookies()
	}
	cookies := asks(http.MethodPost, "/login", "token="+token, nil, http.StatusNoContent)
	if len(cookies) != 1 {
		t.Fatalf("the login sets %v", cookies)
	}
	const sessions = "/api/v1/sessions"
	asks(http.MethodGet, sessions, "", cookies[0], http.StatusOK)
	asks(http.MethodPost, "/logout", "", cookies[0], http.StatusNoContent)
	asks(http.MethodGet, sessions, "", cookies[0], http.StatusUnauthorized)
}
