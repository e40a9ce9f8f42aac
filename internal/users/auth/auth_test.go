package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// request is the login of all tests. Messages must contain neither the user nor the password nor the key in the URL.
var request = Request{Tenant: "acme", User: "al\u00eece", Password: "correct \"horse\"", Address: "192.0.2.7",
	Encrypted: true}

const secret = "a-shared-secret"

// serve starts a hook and returns its source.
func serve(t *testing.T, response http.HandlerFunc, change func(*config.Hook)) Source {
	t.Helper()
	server := httptest.NewServer(response)
	t.Cleanup(server.Close)
	cfg := config.Hook{URL: server.URL + "/login?key=hidden", Secret: value.NewSecret(secret), Timeout: time.Minute}
	if change != nil {
		change(&cfg)
	}
	source, err := New(&config.Auth{Hook: cfg})
	must.OK(t, err)
	return source
}

func answers(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// The hook gets the login as JSON, and its response has the settings of the user.
func TestHook(t *testing.T) {
	type received struct {
		method, path, contentType, authorization string
		login                                    map[string]any
	}
	got := make(chan received, 1)
	source := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var login map[string]any
		_ = json.NewDecoder(r.Body).Decode(&login)
		got <- received{r.Method, r.URL.String(), r.Header.Get("Content-Type"), r.Header.Get("Authorization"), login}
		_, _ = io.WriteString(
			w,
			"{\r\n\t\"user\": {\"home\": \"/\\ud83d\\ude00\\/\", \"root\":\"/a\", \"permissions\": [\"list\"], "+
				"\"quota\": 1048576, \"language\": \"pt-BR\",\n"+
				`"compatibility": {"charset": "shift_jis", "backslash": "separator"}, `+
				`"path_permissions": {"/in/*.pdf": ["write", "read"]}}, "tenant": "acme"}`+"\n")
	}, nil)
	response, err := source.Authenticate(t.Context(), &request)
	must.OK(t, err)
	want := &Response{Tenant: "acme", User: &config.User{
		Home: "/\U0001f600", Root: "/a", Permissions: []config.Permission{config.List}, Quota: bytesize.MiB,
		Language: language.BrazilianPortuguese,
		Compatibility: config.Compatibility{
			Charset: servicetest.Encoding(t, "shift_jis"), Backslash: pathname.BackslashSeparates,
		},
		PathPermissions: map[string][]config.Permission{"/in/*.pdf": {config.Write, config.Read}},
	}}
	if !reflect.DeepEqual(response, want) {
		t.Errorf("got response %+v, want %+v", response, want)
	}
	sent := received{http.MethodPost, "/login?key=hidden", "application/json", "Bearer " + secret, map[string]any{
		"tenant": "acme", "user": request.User, "password": request.Password, "address": "192.0.2.7", "protocol": "ftp",
		"tls": true,
	}}
	if r := <-got; !reflect.DeepEqual(r, sent) {
		t.Errorf("hook: got request %+v, want %+v", r, sent)
	}
}

// A response without a user does not let anybody in, and only 401 and 403 mean a wrong password.
func TestHookRefuses(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the password followed a redirect")
	}))
	defer elsewhere.Close()
	for name, tc := range map[string]struct {
		response http.HandlerFunc
		want     string // a part of the error; empty for a wrong password
	}{
		"unauthorized": {answers(401, `{"user": {}}`), ""},
		"forbidden":    {answers(403, ""), ""},
		"error":        {answers(500, `{"user": {}}`), "unexpected HTTP status 500"},
		"created":      {answers(201, `{"user": {}}`), "unexpected HTTP status 201"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, "unexpected HTTP status 307"},
		"empty":         {answers(200, ""), `not a JSON object with the key "user"`},
		"no-user":       {answers(200, "{}"), `not a JSON object with the key "user"`},
		"null":          {answers(200, `{"user": null}`), `not a JSON object with the key "user"`},
		"page":          {answers(200, "<html>"), `not a JSON object with the key "user"`},
		"yaml":          {answers(200, "user: {}"), `not a JSON object with the key "user"`},
		"two":           {answers(200, `{"user": {}} {}`), `not a JSON object with the key "user"`},
		"list":          {answers(200, `{"user": []}`), "user: must be a mapping"},
		"true":          {answers(200, `{"user": true}`), "user: must be a mapping"},
		"unknown-key":   {answers(200, `{"user": {"hom": "/a"}}`), "user.hom: unknown key: did you mean home?"},
		"no-tenant":     {answers(200, `{"user": {}, "tenant": ["acme"]}`), "tenant: must be"},
		"other-key":     {answers(200, `{"user": {}, "users": {}}`), "users: unknown key"},
		"file":          {answers(200, `{"user": {"home_file": "/etc/hostname"}}`), "user.home_file: unknown key"},
		"relative-root": {answers(200, `{"user": {"root": "a"}}`), `user.root: "a" is not absolute`},
		"permission":    {answers(200, `{"user": {"permissions": ["fly"]}}`), `unknown value "fly"`},
		"none":          {answers(200, `{"user": {"permissions": []}}`), "user.permissions: is empty"},
		"hash":          {answers(200, `{"user": {"password_hash": "$6$"}}`), "user.password_hash: is not allowed here"},
		"raw-names": {answers(200, `{"user": {"compatibility": {"charset": "raw", "backslash": "separator"}}}`),
			"user.compatibility.backslash: conflicts with charset: raw"},
		"overwrite": {answers(200, `{"user": {"overwrite": "deny"}}`), "user.overwrite: is not allowed here"},
		"deep": {answers(200, `{"user": `+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`}`),
			"nested more than 20 levels deep"},
		"null-root":        {answers(200, `{"user": {"root": null}}`), "user.root: has no value"},
		"empty-root":       {answers(200, `{"user": {"root": ""}}`), "user.root: has no value"},
		"null-permissions": {answers(200, `{"user": {"permissions": null}}`), "user.permissions: has no value"},
		"null-paths":       {answers(200, `{"user": {"path_permissions": null}}`), "user.path_permissions: has no value"},
		"null-path":        {answers(200, `{"user": {"path_permissions": {"/": null}}}`), "user.path_permissions./: has no value"},
		"null-expires":     {answers(200, `{"user": {"expires": null}}`), "user.expires: has no value"},
		"empty-expires":    {answers(200, `{"user": {"expires": ""}}`), "user.expires: has no value"},
		"null-disabled":    {answers(200, `{"user": {"disabled": null}}`), "user.disabled: has no value"},
		"null-files":       {answers(200, `{"user": {"files": null}}`), "user.files: has no value"},
		"no-files":         {answers(200, `{"user": {"files": {}}}`), "user.files: is empty"},
		"null-deny":        {answers(200, `{"user": {"files": {"deny": null}}}`), "user.files.deny: has no value"},
		"null-quota":       {answers(200, `{"user": {"quota": null}}`), "user.quota: has no value"},
		"no-certificates":  {answers(200, `{"user": {"certificates": []}}`), "user.certificates: is empty"},
		"null-limits":      {answers(200, `{"user": {"limits": null}}`), "user.limits: has no value"},
		"null-tenant":      {answers(200, `{"user": {}, "tenant": null}`), "tenant: has no value"},
		"twice":            {answers(200, `{"user": {"root": "/a", "root": "/"}}`), `duplicate key "root"`},
		"twice-escaped":    {answers(200, `{"user": {"root": "/a", "r\u006fot": "/"}}`), `duplicate key "root"`},
		"two-users":        {answers(200, `{"user": {"root": "/a"}, "user": {}}`), `duplicate key "user"`},
		"quoted":           {answers(200, `{"user": {"home": "`+strings.Repeat(`\"[`, 100)+`"}}`), "user.home: "},
		"long":             {answers(200, `{"user": {}}`+strings.Repeat(" ", maxResponse)), "longer than"},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"user": {}}`)
		}, "read response: unexpected EOF"},
		"hang-up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			user, err := serve(t, tc.response, nil).Authenticate(t.Context(), &request)
			if user != nil || err == nil || errors.Is(err, ErrRefused) != (tc.want == "") ||
				!strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got user %v, error %v; want %q", user, err, tc.want)
			}
			for _, hidden := range []string{request.User, request.Password, secret, "hidden"} {
				if strings.Contains(err.Error(), hidden) {
					t.Errorf("the error contains %q: %v", hidden, err)
				}
			}
		})
	}
}

// A hook that times out or cannot be reached decides nothing.
func TestHookIsDown(t *testing.T) {
	slow := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}, func(h *config.Hook) { h.Timeout = time.Millisecond })
	closed := serve(t, answers(200, `{"user": {}}`), func(h *config.Hook) {
		server := httptest.NewServer(nil)
		server.Close()
		h.URL = server.URL + "?key=hidden"
	})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx    context.Context
		source Source
		want   string
	}{
		"slow": {t.Context(), slow, "deadline exceeded"}, "closed": {t.Context(), closed, "connection refused"},
		"ended": {ended, slow, "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.source.Authenticate(tc.ctx, &request)
			if err == nil || errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tc.want) ||
				strings.Contains(err.Error(), "hidden") {
				t.Errorf("got error %v, want %q", err, tc.want)
			}
		})
	}
}

// The certificate of the hook must be issued by a CA of the system or of ca_file.
func TestHookUnderTLS(t *testing.T) {
	server := httptest.NewTLSServer(answers(200, `{"user": {}}`))
	defer server.Close()
	dir := t.TempDir()
	own, broken := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "broken.pem")
	for name, text := range map[string][]byte{
		own:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		broken: []byte("no PEM"),
	} {
		must.WriteFile(t, name, string(text))
	}
	for file, want := range map[string]string{
		own: "", "": "certificate", broken: "contains no PEM certificate", filepath.Join(dir, "none.pem"): "no such file",
	} {
		cfg := &config.Auth{Hook: config.Hook{URL: server.URL, CAFile: file, Timeout: time.Minute}}
		source, err := New(cfg)
		if err == nil {
			_, err = source.Authenticate(t.Context(), &request)
			if probed := Probe(t.Context(), cfg); (probed == nil) != (err == nil) {
				t.Errorf("%s: got %v of the probe and %v of a login", file, probed, err)
			}
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
}

// The hook is called through the proxy in the environment. A process reads the environment once, so the test runs in
// its own.
func TestHookBehindProxy(t *testing.T) {
	const inner = "BABELFTP_TEST_BEHIND_PROXY"
	if os.Getenv(inner) != "" {
		cfg := &config.Auth{Hook: config.Hook{URL: "http://auth.acme.example/login", Timeout: time.Minute}}
		source, err := New(cfg)
		must.OK(t, err)
		_, err = source.Authenticate(t.Context(), &request)
		must.OK(t, err)
		if err := Probe(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "cannot be reached: 502") {
			t.Errorf("unreachable hook: unexpected result of the probe: %v", err)
		}
		return
	}
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked = append(asked, r.Method+" "+r.URL.String()); r.Method == http.MethodHead {
			w.WriteHeader(http.StatusBadGateway)
		}
		_, _ = io.WriteString(w, `{"user": {}}`)
	}))
	defer proxy.Close()
	self, err := os.Executable()
	must.OK(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inner+"=1", "HTTP_PROXY="+proxy.URL, "NO_PROXY=", "no_proxy=")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
	const hook = "http://auth.acme.example/login"
	if want := []string{"POST " + hook, "HEAD " + hook}; !slices.Equal(asked, want) {
		t.Errorf("proxy: got request for %q, want %q", asked, want)
	}
}

// A counting source counts the requests. It refuses the password "wrong".
type counting struct{ asked int }

func (c *counting) Authenticate(_ context.Context, req *Request) (*Response, error) {
	c.asked++
	if req.Password == "wrong" {
		return nil, fmt.Errorf("counting: %w", ErrRefused)
	}
	return &Response{User: &config.User{Home: "/" + req.User}}, nil
}

// A successful login is cached until it expires, and only for exactly the same request.
func TestCache(t *testing.T) {
	source := &counting{}
	c := newCache(source, time.Minute)
	now := time.Now()
	c.now = func() time.Time { return now }
	for _, step := range []struct {
		name   string
		change func(*Request)
		later  time.Duration
		asked  int
	}{
		{"first", func(*Request) {}, 0, 1},
		{"again", func(*Request) {}, time.Minute - 1, 1},
		{"other-password", func(r *Request) { r.Password = "wrong" }, 0, 2},
		{"other-password-again", func(r *Request) { r.Password = "wrong" }, 0, 3},
		{"other-user", func(r *Request) { r.User = "bob" }, 0, 4},
		{"other-tenant", func(r *Request) { r.Tenant = "b" }, 0, 5},
		{"other-address", func(r *Request) { r.Address = "192.0.2.8" }, 0, 6},
		{"in-the-clear", func(r *Request) { r.Encrypted = false }, 0, 7},
		{"same-texts-cut-elsewhere", func(r *Request) {
			r.Tenant, r.User = "acmea", strings.TrimPrefix(r.User, "a")
		}, 0, 8},
		{"first-again", func(*Request) {}, 0, 8},
		{"over", func(*Request) {}, 1, 9},
	} {
		now = now.Add(step.later)
		req := request
		step.change(&req)
		response, err := c.Authenticate(t.Context(), &req)
		if refused := req.Password == "wrong"; refused != errors.Is(err, ErrRefused) || !refused &&
			response.User.Home != "/"+req.User {
			t.Errorf("%s: %v, %v", step.name, response, err)
		}
		if source.asked != step.asked {
			t.Errorf("%s: got %d requests to the source, want %d", step.name, source.asked, step.asked)
		}
	}
	if len(c.accepted) == 0 || bytes.Contains(fmt.Append(nil, c.accepted), []byte(request.Password)) {
		t.Error("the cache contains a password")
	}
}

// The cache is bounded. Expired logins make room without scanning the others.
func TestCacheIsBounded(t *testing.T) {
	c := newCache(&counting{}, time.Minute)
	now, looks := time.Now(), 0
	c.now = func() time.Time { looks++; return now }
	login := func(n int) {
		t.Helper()
		if _, err := c.Authenticate(t.Context(), &Request{User: fmt.Sprint(n), Password: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	login(0)
	now = now.Add(time.Second)
	for n := range maxCached + 10 {
		login(n)
	}
	if len(c.accepted) != maxCached {
		t.Errorf("got %d cached logins, want %d", len(c.accepted), maxCached)
	}
	if looks = 0; len(c.accepted) == maxCached {
		login(-1)
	}
	if looks > 10 {
		t.Errorf("a full cache read the clock %d times", looks)
	}
	now = now.Add(time.Minute - time.Second)
	for _, n := range []int{-2, -3} {
		if login(n); len(c.accepted) != maxCached || len(c.oldest) != maxCached {
			t.Errorf("after one expired: got %d logins and %d keys", len(c.accepted), len(c.oldest))
		}
	}
	now = now.Add(time.Second)
	// login -2, which took the place of login 0, and login -4
	if login(-4); len(c.accepted) != 2 || len(c.oldest) != 2 {
		t.Errorf("after all expired: got %d logins and %d keys", len(c.accepted), len(c.oldest))
	}
}

// BenchmarkFullCache measures a login that is not cached because the cache is full.
func BenchmarkFullCache(b *testing.B) {
	c := newCache(&counting{}, time.Hour)
	login := func(n int) {
		if _, err := c.Authenticate(b.Context(), &Request{User: fmt.Sprint(n), Password: "x"}); err != nil {
			b.Fatal(err)
		}
	}
	for n := range maxCached {
		login(n)
	}
	for b.Loop() {
		login(-1)
	}
}

// A configuration without a service has no source.
func TestNoSource(t *testing.T) {
	if source, err := New(&config.Auth{}); source != nil || err != nil {
		t.Errorf("got %v, %v", source, err)
	}
	if source, err := New(
		&config.Auth{Hook: config.Hook{URL: "http://127.0.0.1"}, Cache: time.Minute}); err != nil || reflect.TypeOf(source) != reflect.TypeFor[*cache]() {
		t.Errorf("with a cache: got %T, %v", source, err)
	}
}
