package admin_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/base/reload"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/server"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A usersServer is a server with users in a users_file.
type usersServer struct {
	*server.Server
	t              testing.TB
	config, users  string // files
	audit          string
	log            *servicetest.Log
	administration string // URL of the API
	document       validator.Validator
}

// startUsers starts a server with the tenants acme, which has a users_file, and tokyo, which has none. The user carol
// of acme is set in the configuration.
func startUsers(t testing.TB, users string) *usersServer {
	t.Helper()
	return startUsersWith(t, users, "users_file: users.yaml")
}

// startUsersWith starts a server whose tenant acme has these settings.
func startUsersWith(t testing.TB, users, acme string) *usersServer {
	t.Helper()
	s := s3test.Start(t, "sim-aws")
	dir := t.TempDir()
	u := &usersServer{t: t, config: filepath.Join(dir, "babelftp.yaml"), users: filepath.Join(dir, "users.yaml"),
		audit: filepath.Join(dir, "audit.log"), log: &servicetest.Log{}}
	hash, err := passwordhash.New(password)
	must.OK(t, err)
	must.WriteFile(t, u.config, fmt.Sprintf(`
listen: "127.0.0.1:0"
metrics_listen: ""
admin_socket: ""
admin: {listen: "127.0.0.1:0", users: "%s:%s"}
audit: {file: audit.log}
s3: {endpoint: "%s", region: %s, path_style: true, access_key_id: "%s", secret_access_key: "%s"}
state: {bucket: %s, keys: "%s", folder: state}
tenants:
  acme:
    bucket: %s
    default_language: fr
    greeting: {en: "Welcome to Acme", fr: "Bienvenue chez Acme"}
    welcome: {en: "Hello {User}", ar: "أهلا {User}"}
    %s
    users: {carol: {password_hash: "%[2]s", root: /carol}}
  tokyo:
    bucket: %[9]s
    prefix: tokyo/
    users: {dave: {password_hash: "%[2]s"}}
`, name, hash, s.Endpoint, s.Region, s.AccessKeyID, s.SecretAccessKey, s.Bucket(t),
		base64.StdEncoding.EncodeToString(make([]byte, 32)), s.Bucket(t), acme))
	must.WriteFile(t, u.users, users)
	loader := config.NewLoader(u.config, nil)
	cfg, err := loader.Load()
	must.OK(t, err)
	watcher := reload.NewWatcher(reload.Watcher{
		Files: loader.Files, Changed: loader.Changed, Log: slog.New(slog.DiscardHandler),
		Reload: func(bool) error { return u.Reload(server.ReloadFiles, loader.Load) },
	})
	u.Server, err = server.New(t.Context(), cfg, server.Options{AWS: s.AWSConfig(), CheckFiles: watcher.Check,
		Logger: slog.New(slog.NewTextHandler(io.MultiWriter(u.log, t.Output()), nil))})
	must.OK(t, err)
	ftptest.Serve(t, u.Server)
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { watcher.Run(ctx) })
	t.Cleanup(func() { cancel(); watching.Wait() })
	u.administration = address(u.Server) + admin.Root
	u.document = u.openAPI()
	return u
}

// openAPI returns a validator for the OpenAPI document of the server.
func (u *usersServer) openAPI() validator.Validator {
	u.t.Helper()
	document, err := libopenapi.NewDocument([]byte(u.expect(200, "GET", "/openapi.json", "").body))
	must.OK(u.t, err)
	v, errs := validator.NewValidator(document)
	must.OK(u.t, errors.Join(errs...))
	return v
}

// validate checks a response, and a request that was successful, with the OpenAPI document.
func (u *usersServer) validate(r *http.Request, body string, response *http.Response, text []byte) {
	u.t.Helper()
	if u.document == nil {
		return
	}
	r, response.Body = r.Clone(u.t.Context()), io.NopCloser(bytes.NewReader(text))
	r.Body = io.NopCloser(strings.NewReader(body))
	check := u.document.ValidateHttpResponse
	if response.StatusCode < 300 {
		check = u.document.ValidateHttpRequestResponse
	}
	if ok, problems := check(r, response); !ok {
		for _, p := range problems {
			u.t.Errorf("%s %s: %s: %s %v", r.Method, r.URL, p.Message, p.Reason, p.SchemaValidationErrors)
		}
	}
}

// A usersReply is a response of the API.
type usersReply struct {
	status int
	header http.Header
	body   string
}

// json decodes the body.
func (r usersReply) json(t *testing.T) (v map[string]any) {
	t.Helper()
	must.OK(t, json.Unmarshal([]byte(r.body), &v))
	return v
}

// send sends a request of the administrator. Each header is "Name: value".
func (u *usersServer) send(method, path, body string, headers ...string) usersReply {
	u.t.Helper()
	r, err := http.NewRequestWithContext(u.t.Context(), method, u.administration+path, strings.NewReader(body))
	must.OK(u.t, err)
	r.SetBasicAuth(name, password)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		if h == "" {
			continue
		}
		key, value, _ := strings.Cut(h, ": ")
		r.Header.Set(key, value)
	}
	response, err := http.DefaultClient.Do(r)
	must.OK(u.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must.OK(u.t, err)
	u.validate(r, body, response, text)
	return usersReply{response.StatusCode, response.Header, string(text)}
}

// expect sends a request and checks the status of the response.
func (u *usersServer) expect(status int, method, path, body string, headers ...string) usersReply {
	u.t.Helper()
	got := u.send(method, path, body, headers...)
	if got.status != status {
		u.t.Fatalf("%s %s %s: got %d %s, want %d", method, path, body, got.status, got.body, status)
	}
	return got
}

// lastAudit returns the last line of the audit log about this event.
func (u *usersServer) lastAudit(event string) string {
	u.t.Helper()
	for {
		var last string
		for line := range strings.Lines(must.ReadFile(u.t, u.audit)) {
			if strings.Contains(line, `"event":"`+event+`"`) {
				last = line
			}
		}
		if last != "" {
			return last
		}
	}
}

const goodPassword = "correct horse battery 7"

// A user is added, read, changed and removed, and each change is in effect when the response arrives.
func TestUsers(t *testing.T) {
	const users = "# by hand\nusers:\n  # the first\n  alice: {disabled: true}\n"
	for source, settings := range map[string]string{"file": "users_file: users.yaml", "state": "users_store: state"} {
		t.Run(source, func(t *testing.T) {
			u := startUsersWith(t, users, settings)
			u.testUser(t, source)
			if text := must.ReadFile(t, u.users); text != users {
				t.Errorf("users_file is now:\n%s", text)
			}
		})
	}
}

func (u *usersServer) testUser(t *testing.T, source string) {
	t.Helper()
	login := func(code int, password string) {
		t.Helper()
		c := ftptest.Dial(t, u.Addr().String())
		c.Command(331, "USER bob@acme")
		c.Command(code, "PASS "+password)
	}
	added := u.expect(201, "POST", "/users", `{"tenant": "acme", "name": "bob", "password": "`+goodPassword+`", "settings": {
		"root": "/bob", "quota": "1GiB", "limits": {"sessions": 5}, "permissions": ["list", "read"]}}`)
	login(230, goodPassword)
	at, tag := strings.TrimPrefix(added.header.Get("Location"), admin.Root), added.header.Get("ETag")
	if at != "/users/acme/bob" || !strings.HasPrefix(tag, `"`) {
		t.Fatalf("Location is %q, and ETag is %q", at, tag)
	}
	got := u.expect(200, "GET", at, "")
	if got.header.Get("ETag") != tag || !strings.HasPrefix(got.body, added.body[:100]) {
		t.Errorf("GET returned %s %s, and POST %s %s", got.header.Get("ETag"), got.body, tag, added.body)
	}
	fields := got.json(t)
	if fields["source"] != source || fields["writable"] != true || fields["has_password"] != true ||
		strings.Contains(got.body, "argon2") || strings.Contains(got.body, goodPassword) {
		t.Errorf("got %s", got.body)
	}

	changed := u.expect(200, "PATCH", at, `{"settings": {"quota": null, "language": "fr", "limits": {"sessions": 6}},
		"password": "another good 1 here"}`, "If-Match: "+tag, "Content-Type: application/merge-patch+json")
	login(530, goodPassword)
	login(230, "another good 1 here")
	settings := changed.json(t)["settings"].(map[string]any)
	if _, has := settings["quota"]; has || settings["language"] != "fr" || settings["root"] != "/bob" {
		t.Errorf("got %v", settings)
	}
	u.expect(412, "PATCH", at, `{"settings": {"quota": "2GiB"}}`, "If-Match: "+tag)
	u.expect(412, "DELETE", at, "", "If-Match: "+tag)
	u.expect(412, "DELETE", at, "", "If-Match: W/"+changed.header.Get("ETag"))
	u.expect(428, "PATCH", at, `{"settings": {"quota": "2GiB"}}`)
	u.expect(428, "DELETE", at, "")
	u.expect(204, "DELETE", at, "", `If-Match: "x", `+changed.header.Get("ETag"))
	login(530, "another good 1 here")
	u.expect(404, "GET", at, "")
	u.expect(404, "PATCH", at, `{}`, "If-Match: *")
	u.expect(404, "DELETE", at, "", "If-Match: *")

	line := u.lastAudit("user_change")
	for _, want := range []string{`"administrator":"` + name + `"`, `"client":"127.0.0.1:`, `"tenant":"acme"`, `"user":"bob"`,
		`"fields":["settings.language","settings.limits.sessions","settings.quota","password"]`,
		`"before":{"limits":{"sessions":5},"quota":"1GiB"}`, `"after":{"language":"fr","limits":{"sessions":6}}`} {
		if !strings.Contains(line, want) && !strings.Contains(must.ReadFile(t, u.audit), want) {
			t.Errorf("the audit log lacks %s: %s", want, line)
		}
	}
	for _, of := range []string{must.ReadFile(t, u.audit), u.log.String()} {
		for _, secret := range []string{goodPassword, "another good 1", "argon2"} {
			if strings.Contains(of, secret) {
				t.Errorf("%s is in a log: %s", secret, of)
			}
		}
	}
}

// Each invalid request gets a status, and the paths of invalid fields. Nothing is stored.
func TestInvalidUsers(t *testing.T) {
	const users = "users:\n  alice: {disabled: true}\n  \"Straße\": {disabled: true}\n"
	u := startUsers(t, users)
	alice := "/users/acme/alice"
	add := func(rest string) string {
		return `{"tenant": "acme", "name": "bob", "password": "` + goodPassword + `"` + rest + "}"
	}
	for label, tc := range map[string]struct {
		method, path, body string
		status             int
		want               string // path of the field and part of the error, or part of the error
		header             string
	}{
		"unknown field":    {"POST", "/users", add(`, "quota": "1GiB"`), 422, "quota: unknown field", ""},
		"unknown setting":  {"POST", "/users", add(`, "settings": {"limits": {"session": 1}}`), 422, "settings.limits.session: unknown key", ""},
		"hash":             {"POST", "/users", add(`, "settings": {"password_hash": "x"}`), 422, "settings.password_hash: cannot be set", ""},
		"hash file":        {"POST", "/users", add(`, "settings": {"password_hash_file": "/etc/shadow"}`), 422, "settings.password_hash_file: cannot", ""},
		"value":            {"POST", "/users", add(`, "settings": {"quota": "big", "expires": "soon"}`), 422, "settings.quota: ", ""},
		"second value":     {"POST", "/users", add(`, "settings": {"quota": "big", "expires": "soon"}`), 422, "settings.expires: ", ""},
		"nested value":     {"POST", "/users", add(`, "settings": {"limits": {"allow": ["here"]}}`), 422, "settings.limits.allow.0: ", ""},
		"map value":        {"POST", "/users", add(`, "settings": {"path_permissions": {"/a": ["fly"]}}`), 422, "settings.path_permissions./a.0: ", ""},
		"null in list":     {"POST", "/users", add(`, "settings": {"permissions": [null]}`), 422, "settings.permissions.0: ", ""},
		"wrong type":       {"POST", "/users", add(`, "settings": {"limits": 5}`), 422, "settings.limits: must be a mapping", ""},
		"settings":         {"POST", "/users", add(`, "settings": []`), 422, "settings: must be an object", ""},
		"empty":            {"POST", "/users", add(`, "settings": {"home": ""}`), 422, "settings.home: ", ""},
		"no fields":        {"POST", "/users", `{}`, 422, "tenant: is missing", ""},
		"no name":          {"POST", "/users", `{"tenant": "acme", "name": ""}`, 422, "name: is empty", ""},
		"name":             {"POST", "/users", `{"tenant": "acme", "name": "a\nb", "settings": {"disabled": true}}`, 422, "name: ", ""},
		"dots":             {"POST", "/users", `{"tenant": "acme", "name": ".."}`, 422, "name: ", ""},
		"number":           {"POST", "/users", `{"tenant": 5, "name": "bob"}`, 422, "tenant: must be a string", ""},
		"no tenant":        {"POST", "/users", `{"tenant": "nope", "name": "bob"}`, 422, `tenant: unknown tenant "nope"`, ""},
		"no password":      {"POST", "/users", `{"tenant": "acme", "name": "bob"}`, 422, "password: is missing", ""},
		"empty password":   {"POST", "/users", `{"tenant": "acme", "name": "bob", "password": ""}`, 422, "password: is empty", ""},
		"short password":   {"POST", "/users", `{"tenant": "acme", "name": "bob", "password": "short"}`, 422, "password: is too short", ""},
		"weak password":    {"POST", "/users", `{"tenant": "acme", "name": "bob", "password": "bobbobbobbobbob"}`, 422, "password: is too easy", ""},
		"control password": {"POST", "/users", `{"tenant": "acme", "name": "bob", "password": "correct\nhorse battery"}`, 422, "password: contains control", ""},
		"exists":           {"POST", "/users", `{"tenant": "acme", "name": "ALICE", "settings": {"disabled": true}}`, 409, "already exists", ""},
		"folded":           {"POST", "/users", `{"tenant": "acme", "name": "STRASSE", "settings": {"disabled": true}}`, 409, "already exists", ""},
		"in configuration": {"POST", "/users", `{"tenant": "acme", "name": "carol", "settings": {"disabled": true}}`, 409, "already exists", ""},
		"no store":         {"POST", "/users", `{"tenant": "tokyo", "name": "bob", "settings": {"disabled": true}}`, 409, "neither users_store nor users_file", ""},
		"not writable":     {"PATCH", "/users/acme/carol", `{}`, 409, "is set in the configuration", "If-Match: *"},
		"not removable":    {"DELETE", "/users/tokyo/dave", ``, 409, "is set in the configuration", "If-Match: *"},
		"not JSON":         {"POST", "/users", `{`, 400, "not a JSON object", ""},
		"two objects":      {"POST", "/users", `{} {}`, 400, "more than one", ""},
		"a list":           {"POST", "/users", `[]`, 400, "not a JSON object", ""},
		"null":             {"PATCH", alice, `null`, 400, "not a JSON object", "If-Match: *"},
		"not UTF-8":        {"POST", "/users", "{\"tenant\": \"\xff\"}", 400, "not UTF-8", ""},
		"too large":        {"POST", "/users", `{"tenant": "` + strings.Repeat("a", 64<<10) + `"}`, 413, "larger than 65536 bytes", ""},
		"form":             {"POST", "/users", `tenant=acme`, 415, "application/json", "Content-Type: application/x-www-form-urlencoded"},
		"rename":           {"PATCH", alice, `{"name": "bob"}`, 422, "name: cannot be changed", "If-Match: *"},
		"read-only":        {"PATCH", alice, `{"online": 1}`, 422, "online: cannot be changed", "If-Match: *"},
		"last password":    {"PATCH", alice, `{"settings": {"disabled": null}}`, 422, "password: is missing", "If-Match: *"},
		"all settings":     {"PATCH", alice, `{"settings": null}`, 422, "settings: must be an object", "If-Match: *"},
		"unknown user":     {"GET", "/users/acme/nobody", ``, 404, "nobody@acme not found", ""},
		"unknown tenant":   {"GET", "/users/nope/alice", ``, 404, `unknown tenant "nope"`, ""},
		"limit":            {"GET", "/users?limit=0", ``, 400, "invalid limit", ""},
		"after":            {"GET", "/users?after=!", ``, 400, "invalid after", ""},
		"list of nobody":   {"GET", "/users?tenant=nope", ``, 404, `unknown tenant "nope"`, ""},
		"texts of nobody":  {"GET", "/tenants/nope/texts", ``, 404, `unknown tenant "nope"`, ""},
		"texts in nothing": {"GET", "/tenants/acme/texts?lang=!", ``, 400, "invalid lang", ""},
	} {
		t.Run(strings.ReplaceAll(label, " ", "-"), func(t *testing.T) {
			got := u.send(tc.method, tc.path, tc.body, tc.header)
			var failed admin.Failure
			must.OK(t, json.Unmarshal([]byte(got.body), &failed))
			found := strings.Contains(failed.Error, tc.want)
			if tc.status == 422 {
				path, text, _ := strings.Cut(tc.want, ": ")
				found = false
				for _, f := range failed.Fields {
					found = found || f.Path == path && strings.Contains(f.Error, text)
				}
			}
			if got.status != tc.status || !found {
				t.Errorf("got %d %s, want %d %s", got.status, got.body, tc.status, tc.want)
			}
		})
	}
	if text := must.ReadFile(t, u.users); text != users {
		t.Errorf("users_file is now:\n%s", text)
	}
}

// Names may contain any characters.
func TestUserNames(t *testing.T) {
	u := startUsers(t, "users: {}\n")
	for _, name := range []string{"a b", "a@b", "a/b", "a%2Fb", "ÅSA", "مريم", "e\u0301ric", "a?b=c&d#e", "...", `"q"`, "a.b: [c]", "~", "null", "1"} {
		body, err := json.Marshal(map[string]any{"tenant": "acme", "name": name, "settings": map[string]any{"disabled": true}})
		must.OK(t, err)
		added := u.expect(201, "POST", "/users", string(body))
		at := strings.TrimPrefix(added.header.Get("Location"), admin.Root)
		got := u.expect(200, "GET", at, "").json(t)
		if got["name"] != config.NormalizeUser(name) {
			t.Errorf("got the name %q, want %q", got["name"], name)
		}
		u.expect(200, "PATCH", at, `{"settings": {"language": "fr"}}`, "If-Match: "+added.header.Get("ETag"))
		u.expect(204, "DELETE", at, "", "If-Match: *")
	}
	if text := must.ReadFile(t, u.users); text != "users: {}\n" {
		t.Errorf("users_file is now:\n%s", text)
	}
}

// The list has all users in pages, with the place of each one, and can be filtered.
func TestListOfUsers(t *testing.T) {
	var text strings.Builder
	text.WriteString("users:\n")
	const users = 250
	for i := range users {
		fmt.Fprintf(&text, "  user%03d: {disabled: true, root: /%[1]d}\n", i)
	}
	u := startUsers(t, text.String())
	var all []string
	for next, pages := "", 0; ; pages++ {
		page := u.expect(200, "GET", "/users?limit=100&after="+next, "")
		var list admin.UserList
		must.OK(t, json.Unmarshal([]byte(page.body), &list))
		for _, one := range list.Users {
			all = append(all, one.Name+"@"+one.Tenant)
			if fromFile := strings.HasPrefix(one.Name, "user"); fromFile != one.Writable || fromFile == (one.Reason != "") {
				t.Errorf("got %+v", one)
			}
		}
		if next = list.Next; next == "" {
			if pages != 2 {
				t.Errorf("got %d pages", pages)
			}
			break
		}
	}
	if len(all) != users+2 || all[0] != "carol@acme" || all[1] != "user000@acme" || all[users+1] != "dave@tokyo" {
		t.Errorf("got %d users: %v", len(all), all)
	}
	for query, want := range map[string]string{"q=USER01&limit=2": "user010 user011 ", "tenant=tokyo": "dave ", "q=nobody": ""} {
		var list admin.UserList
		must.OK(t, json.Unmarshal([]byte(u.expect(200, "GET", "/users?"+query, "").body), &list))
		var names strings.Builder
		for _, one := range list.Users {
			names.WriteString(one.Name + " ")
		}
		if names.String() != want {
			t.Errorf("%s: got %q, want %q", query, names.String(), want)
		}
	}
}

// A change that the server cannot use is reported, with the reason and what was stored.
func TestUserIsNotInUse(t *testing.T) {
	u := startUsers(t, "users: {alice: {disabled: true}}\n")
	before := must.ReadFile(t, u.config)
	must.WriteFile(t, u.config, strings.Replace(before, "prefix: tokyo/", "prefix: /", 1))
	got := u.expect(503, "PATCH", "/users/acme/alice", `{"settings": {"language": "fr"}}`, "If-Match: *")
	if !strings.Contains(got.body, "alice@acme was stored, but") || !strings.Contains(got.body, "tenants.tokyo.prefix") {
		t.Errorf("got %s", got.body)
	}
	if got := u.expect(200, "GET", "/users/acme/alice", ""); !strings.Contains(got.body, `"language":"fr"`) {
		t.Errorf("got %s", got.body)
	}
	must.WriteFile(t, u.config, before)
	u.expect(200, "PATCH", "/users/acme/alice", `{"settings": {"language": "fr"}}`, "If-Match: *")
}

// The only user of a tenant cannot be removed, because the server would not start without one.
func TestOnlyUser(t *testing.T) {
	u := startUsers(t, "users: {alice: {disabled: true}}\n")
	var text strings.Builder
	for line := range strings.Lines(must.ReadFile(t, u.config)) {
		if !strings.Contains(line, "carol") {
			text.WriteString(line)
		}
	}
	must.WriteFile(t, u.config, text.String())
	u.expect(200, "PATCH", "/users/acme/alice", `{"settings": {"language": "fr"}}`, "If-Match: *") // reloads
	got := u.expect(409, "DELETE", "/users/acme/alice", "", "If-Match: *")
	if !strings.Contains(got.body, "alice is the only user of acme") {
		t.Errorf("got %s", got.body)
	}
}

// Concurrent changes of one version: one succeeds, and the others get 412.
func TestConcurrentChanges(t *testing.T) {
	u := startUsers(t, "users: {alice: {disabled: true}}\n")
	tag := u.expect(200, "GET", "/users/acme/alice", "").header.Get("ETag")
	statuses := make(chan int)
	const writers = 5
	for i := range writers {
		go func() {
			statuses <- u.send("PATCH", "/users/acme/alice", fmt.Sprintf(`{"settings": {"quota": "%dGiB"}}`, i+1), "If-Match: "+tag).status
		}()
	}
	count := map[int]int{}
	for range writers {
		count[<-statuses]++
	}
	if count[200] != 1 || count[412] != writers-1 {
		t.Errorf("got the statuses %v", count)
	}
}

// The texts of a tenant are the ones that its users read.
func TestTenantTexts(t *testing.T) {
	u := startUsers(t, "users: {}\n")
	for query, want := range map[string]string{
		"":         `"language":"fr"`,
		"?lang=en": `"greeting":["Welcome to Acme"],"login":["Hello alice","Login successful."]`,
		"?lang=ar": "أهلا \u2068alice\u2069",
		"?lang=fr": `"greeting":["Bienvenue chez Acme"]`,
	} {
		if got := u.expect(200, "GET", "/tenants/acme/texts"+query, ""); !strings.Contains(got.body, want) {
			t.Errorf("%s: got %s, want %s", query, got.body, want)
		}
	}
	if got := u.expect(200, "GET", "/tenants/tokyo/texts", ""); !strings.Contains(got.body, `"direction":"rtl"`) {
		t.Errorf("got %s", got.body)
	}
}

// The OpenAPI document is valid, and so are the responses of all endpoints that only read.
func TestOpenAPIDocument(t *testing.T) {
	u := startUsers(t, "users: {alice: {disabled: true}}\n")
	if ok, problems := u.document.ValidateDocument(); !ok {
		t.Error(problems)
	}
	c := ftptest.Dial(t, u.Addr().String())
	c.Login("carol@acme", password)
	data := c.Data()
	c.Command(150, "STOR half")
	_, err := io.WriteString(data, "data")
	must.OK(t, err)
	u.expect(200, "PUT", "/bans?name=192.0.2.1&time=5m", "")
	u.expect(200, "PUT", "/debug?address=192.0.2.0/24&time=5m", "")
	var document struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name, In string
				Required bool
			}
			Responses map[string]struct{ Content map[string]any }
		}
	}
	must.OK(t, json.Unmarshal([]byte(u.expect(200, "GET", "/openapi.json", "").body), &document))
	values := map[string]string{"tenant": "acme", "name": "alice", "address": "127.0.0.1", "since": "1h"}
	for path, operations := range document.Paths {
		get, reads := operations["get"]
		if _, isJSON := get.Responses["200"].Content["application/json"]; !reads || !isJSON {
			continue
		}
		query := url.Values{}
		for _, p := range get.Parameters {
			switch {
			case p.In == "path":
				path = strings.ReplaceAll(path, "{"+p.Name+"}", values[p.Name])
			case p.Required:
				query.Set(p.Name, values[p.Name])
			}
		}
		got := u.send("GET", path+"?"+query.Encode(), "")
		if got.status != 200 && got.status != 404 {
			t.Errorf("GET %s: %d %s", path, got.status, got.body)
		}
	}
	must.OK(t, data.Close())
	c.Reply(226)
}

// BenchmarkListOfUsers lists the first page of 10,000 users, and searches in them.
func BenchmarkListOfUsers(b *testing.B) {
	var text strings.Builder
	text.WriteString("users:\n")
	for i := range 10_000 {
		fmt.Fprintf(&text, "  user%05d: {disabled: true, root: /%[1]d, quota: 1GiB}\n", i)
	}
	u := startUsers(b, text.String())
	for _, query := range []string{"", "?q=9999"} {
		b.Run("list"+query, func(b *testing.B) {
			for b.Loop() {
				u.expect(200, "GET", "/users"+query, "")
			}
		})
	}
	b.Run("change", func(b *testing.B) {
		for b.Loop() {
			u.expect(200, "PATCH", "/users/acme/user00042", `{"settings": {"language": "fr"}}`, "If-Match: *")
			u.expect(200, "PATCH", "/users/acme/user00042", `{"settings": {"language": "ja"}}`, "If-Match: *")
		}
	})
}
