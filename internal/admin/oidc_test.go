package admin

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/report/audit"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/oidctest"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// trusting returns the configuration of an admin listener that trusts a provider.
func trusting(p *oidctest.Provider) config.Admin {
	return config.Admin{OIDC: config.OIDC{
		Issuer: p.URL, ClientID: oidctest.ClientID, ClientSecret: value.NewSecret(oidctest.ClientSecret),
		Roles: map[config.AdminRole][]string{
			config.RoleViewer: {"staff"}, config.RoleOperator: {"ops", "night"}, config.RoleAdministrator: {"root"},
		},
	}}
}

// whoIs is an API that responds with the login, and streams until the request ends.
func whoIs() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(Root+"/me", func(w http.ResponseWriter, r *http.Request) { send(w, http.StatusOK, identity(r)) })
	mux.HandleFunc(Root+"/stream", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "begin")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		fmt.Fprintln(w, "end")
	})
	return mux
}

// An oidcSite is a listener whose administrators log in at a provider.
type oidcSite struct {
	*testing.T
	base     string
	listener *Listener
	log      *servicetest.Log // the audit log
}

func newOIDCSite(t *testing.T, cfg config.Admin) *oidcSite {
	t.Helper()
	log := &servicetest.Log{}
	l, address := serveAudited(t, cfg, whoIs(), audit.New(audit.To(log), func() bool { return true }, nil))
	return &oidcSite{t, "http://" + address, l, log}
}

// A visitor is a browser.
type visitor struct {
	*oidcSite
	http *http.Client
}

func (s *oidcSite) visitor() *visitor {
	jar, _ := cookiejar.New(nil)
	return &visitor{s, &http.Client{Jar: jar}}
}

// get follows all redirects.
func (v *visitor) get(address string, headers ...string) page {
	v.Helper()
	return sendPage(v.T, v.http, http.MethodGet, address, nil, headers...)
}

// callback logs in at the provider and returns the URL to which the provider sends the browser back, without following
// it.
func (v *visitor) callback() *url.URL {
	v.Helper()
	v.http.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == "/login/oidc/callback" {
			return http.ErrUseLastResponse
		}
		return nil
	}
	defer func() { v.http.CheckRedirect = nil }()
	got := v.get(v.base + "/login/oidc")
	back, err := url.Parse(got.header.Get("Location"))
	if err != nil || back.Query().Get("code") == "" {
		v.Fatalf("unexpected response of the provider at %s: %d %s", got.at, got.status, got.body)
	}
	return back
}

// wants expects the role of the login, or "" for none.
func (v *visitor) wants(role string) {
	v.Helper()
	if got := v.role(); got != role {
		v.Errorf("got the role %q, want %q", got, role)
	}
}

func (v *visitor) role() string {
	v.Helper()
	got := v.get(v.base + Root + "/me")
	if got.status == http.StatusUnauthorized {
		return ""
	}
	var of struct{ Role, Login, Name string }
	must.OK(v.T, json.Unmarshal([]byte(got.body), &of))
	if of.Login != "oidc" {
		v.Errorf("unexpected login %s", got.body)
	}
	return of.Role
}

// Groups give roles, from the ID token or the userinfo endpoint. The audit log has the subject.
func TestOIDCRoles(t *testing.T) {
	for name, tc := range map[string]struct {
		is         oidctest.Behavior
		change     func(*config.OIDC)
		role, code string
		who        string
	}{
		"viewer":        {is: oidctest.Behavior{Groups: []string{"staff"}}, role: "viewer", who: "ann (4711)"},
		"operator":      {is: oidctest.Behavior{Groups: []string{"night", "x"}}, role: "operator", who: "ann (4711)"},
		"highest":       {is: oidctest.Behavior{Groups: []string{"staff", "root", "ops"}}, role: "administrator", who: "ann (4711)"},
		"userinfo":      {is: oidctest.Behavior{Groups: []string{"ops"}, OnlyUserinfo: true}, role: "operator", who: "ann (4711)"},
		"no-group":      {is: oidctest.Behavior{Groups: []string{"Staff"}}, code: "no_role", who: "ann (4711)"},
		"no-groups":     {is: oidctest.Behavior{}, code: "no_role", who: "ann (4711)"},
		"single-group":  {is: oidctest.Behavior{Claims: map[string]any{"groups": "ops"}}, role: "operator", who: "ann (4711)"},
		"invalid-group": {is: oidctest.Behavior{Claims: map[string]any{"groups": []any{1, nil}}}, code: "no_role", who: "ann (4711)"},
		"another-claim": {
			is:     oidctest.Behavior{Groups: []string{"root"}, Claims: map[string]any{"https://x/roles": []any{"staff"}}},
			change: func(o *config.OIDC) { o.GroupsClaim = "https://x/roles" }, role: "viewer", who: "ann (4711)",
		},
		"email": {
			is: oidctest.Behavior{Groups: []string{"ops"},
				Claims: map[string]any{"email": "ann@example.com", "email_verified": true}},
			change: func(o *config.OIDC) { o.NameClaim = "email" }, role: "operator", who: "ann@example.com (4711)",
		},
		"email-not-verified": {
			is:     oidctest.Behavior{Groups: []string{"ops"}, Claims: map[string]any{"email": "ann@example.com"}},
			change: func(o *config.OIDC) { o.NameClaim = "email" }, role: "operator", who: "(4711)",
		},
		"address-as-group": {
			is:     oidctest.Behavior{Claims: map[string]any{"email": "ops", "email_verified": true}},
			change: func(o *config.OIDC) { o.GroupsClaim = "email" }, role: "operator", who: "ann (4711)",
		},
		"address-as-group-not-verified": {
			is:     oidctest.Behavior{Claims: map[string]any{"email": "ops"}},
			change: func(o *config.OIDC) { o.GroupsClaim = "email" }, code: "no_role", who: "ann (4711)",
		},
		"name-of-another": {
			is:   oidctest.Behavior{Groups: []string{"ops"}, Claims: map[string]any{"preferred_username": "bob (12)"}},
			role: "operator", who: "(4711)",
		},
		"name-with-controls": {
			is:   oidctest.Behavior{Groups: []string{"ops"}, Claims: map[string]any{"preferred_username": "a\u202eb\n"}},
			role: "operator", who: "(4711)",
		},
		"no-offline-access": {is: oidctest.Behavior{Groups: []string{"ops"}, WithoutRefresh: true}, role: "operator", who: "ann (4711)"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := trusting(oidctest.New(t, tc.is))
			if tc.change != nil {
				tc.change(&cfg.OIDC)
			}
			site := newOIDCSite(t, cfg)
			browser := site.visitor()
			got := browser.get(site.base + "/login/oidc")
			if got.at.Path != "/" || got.at.Query().Get("login_error") != tc.code {
				t.Errorf("the login ended at %s, want the code %q", got.at, tc.code)
			}
			browser.wants(tc.role)
			want := `"administrator":"` + tc.who + `","outcome":"ok","login":"oidc","role":"` + tc.role + `"}`
			if tc.code != "" {
				want = `"login":"oidc","administrator":"` + tc.who + `","outcome":"failed","reason":"` + tc.code + `"}`
			}
			if !strings.Contains(site.log.String(), want) {
				t.Errorf("audit log %s lacks %s", site.log, want)
			}
		})
	}
}

// The login form shows only the ways to log in that are configured, and none of their secrets.
func TestLoginOptions(t *testing.T) {
	p := oidctest.New(t, oidctest.Behavior{})
	with := trusting(p)
	with.Users = users(t, password)
	for name, tc := range map[string]struct {
		cfg  config.Admin
		want string
	}{
		"password": {config.Admin{Users: users(t, password)}, `{"password":true,"oidc":null}`},
		"provider": {trusting(p), `{"password":false,"oidc":{"name":"127.0.0.1"}}`},
		"both":     {with, `{"password":true,"oidc":{"name":"127.0.0.1"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			site := newOIDCSite(t, tc.cfg)
			if got := site.visitor().get(site.base + "/login/options"); strings.TrimSpace(got.body) != tc.want {
				t.Errorf("got %s, want %s", got.body, tc.want)
			}
			if tc.cfg.OIDC.IsSet() {
				return
			}
			for _, path := range []string{"/login/oidc", "/login/oidc/callback"} {
				if got := site.visitor().get(site.base + path); got.status != http.StatusNotFound {
					t.Errorf("%s: got status %d", path, got.status)
				}
			}
		})
	}
}

// Each attack on the callback ends at the page with a code, and nobody is logged in.
func TestOIDCAttacks(t *testing.T) {
	set := func(key string, v any) func(map[string]any) {
		return func(claims map[string]any) { claims[key] = v }
	}
	another, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.OK(t, err)
	none := func(claims []byte) string {
		encode := base64.RawURLEncoding.EncodeToString
		return encode([]byte(`{"alg":"none"}`)) + "." + encode(claims) + "."
	}
	query := func(key, v string) func(*visitor, *url.URL) {
		return func(_ *visitor, back *url.URL) {
			q := back.Query()
			q.Set(key, v)
			back.RawQuery = q.Encode()
		}
	}
	for name, tc := range map[string]struct {
		is     oidctest.Behavior
		attack func(*visitor, *url.URL) // changes the URL of the callback
		code   string
	}{
		"wrong-state":    {attack: query("state", "x"), code: "expired"},
		"no-state":       {attack: query("state", ""), code: "expired"},
		"wrong-code":     {attack: query("code", "x"), code: "failed"},
		"another-issuer": {attack: query("iss", "https://attacker.example"), code: "failed"},
		"no-issuer":      {attack: query("iss", ""), code: "failed"},
		"denied":         {attack: query("error", "access_denied"), code: "denied"},
		"server-error":   {attack: query("error", "server_error"), code: "unavailable"},
		"error":          {attack: query("error", "<script>"), code: "failed"},
		"another-browser": {attack: func(v *visitor, _ *url.URL) {
			v.http.Jar, _ = cookiejar.New(nil)
		}, code: "expired"},
		"second-attempt": {attack: func(v *visitor, _ *url.URL) { v.callback() }, code: "expired"},
		"code-of-another-browser": {attack: func(v *visitor, back *url.URL) {
			query("code", v.visitor().callback().Query().Get("code"))(v, back)
		}, code: "failed"},
		"cookie-of-another-process": {attack: func(v *visitor, _ *url.URL) { v.listener.gate.key[0]++ }, code: "expired"},
		"replay": {attack: func(v *visitor, back *url.URL) {
			kept := v.http.Jar.Cookies(back)
			v.get(back.String())
			v.wants("operator")
			sendPage(v.T, v.http, http.MethodPost, v.base+"/logout", nil)
			v.http.Jar.SetCookies(back, kept)
		}, code: "failed"},

		"nonce":           {is: oidctest.Behavior{Tamper: set("nonce", "x")}, code: "failed"},
		"no-nonce":        {is: oidctest.Behavior{Tamper: set("nonce", nil)}, code: "failed"},
		"audience":        {is: oidctest.Behavior{Tamper: set("aud", "another")}, code: "failed"},
		"two-audiences":   {is: oidctest.Behavior{Tamper: set("aud", []string{"another", oidctest.ClientID})}, code: "failed"},
		"azp":             {is: oidctest.Behavior{Tamper: set("azp", "another")}, code: "failed"},
		"issuer":          {is: oidctest.Behavior{Tamper: set("iss", "https://attacker.example")}, code: "failed"},
		"expired-token":   {is: oidctest.Behavior{Tamper: set("exp", time.Now().Add(-2*time.Minute).Unix())}, code: "failed"},
		"future-token":    {is: oidctest.Behavior{Tamper: set("nbf", time.Now().Add(10*time.Minute).Unix())}, code: "failed"},
		"at-hash":         {is: oidctest.Behavior{Tamper: set("at_hash", "x")}, code: "failed"},
		"no-subject":      {is: oidctest.Behavior{Tamper: set("sub", "")}, code: "failed"},
		"long-subject":    {is: oidctest.Behavior{Tamper: set("sub", strings.Repeat("x", 256))}, code: "failed"},
		"line-in-sub":     {is: oidctest.Behavior{Tamper: set("sub", "4711\n")}, code: "failed"},
		"none":            {is: oidctest.Behavior{Sign: none}, code: "failed"},
		"no-token":        {is: oidctest.Behavior{Sign: func([]byte) string { return "" }}, code: "failed"},
		"garbage":         {is: oidctest.Behavior{Sign: func([]byte) string { return "a.b.c" }}, code: "failed"},
		"oversized":       {is: oidctest.Behavior{Padding: 2 << 20}, code: "failed"},
		"userinfo-of-bob": {is: oidctest.Behavior{OnlyUserinfo: true, UserinfoSubject: "bob"}, code: "failed"},
		"keys-unavailable": {
			is: oidctest.Behavior{Metadata: map[string]any{"jwks_uri": "http://127.0.0.1:1/"}}, code: "unavailable",
		},
		"hmac": {is: oidctest.Behavior{Sign: func(claims []byte) string {
			return oidctest.Sign(jose.HS256, []byte(oidctest.ClientSecret), "key", claims)
		}}, code: "failed"},
		"another-key": {is: oidctest.Behavior{Sign: func(claims []byte) string {
			return oidctest.Sign(jose.ES256, another, "key", claims)
		}}, code: "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.is.Groups = []string{"ops"}
			site := newOIDCSite(t, trusting(oidctest.New(t, tc.is)))
			browser := site.visitor()
			back := browser.callback()
			if tc.attack != nil {
				tc.attack(browser, back)
			}
			got := browser.get(back.String())
			if got.at.Host != back.Host || got.at.Path != "/" || got.at.RawQuery != "login_error="+tc.code {
				t.Errorf("the login ended at %s, want the code %s", got.at, tc.code)
			}
			browser.wants("")
			if !strings.Contains(site.log.String(), `"login":"oidc","outcome":"failed","reason":"`+tc.code+`"}`) {
				t.Errorf("unexpected audit log %s", site.log)
			}
		})
	}
}

// Other sites cannot begin a login in the background, log a browser out, or make the redirect lead to them.
func TestOIDCOtherSites(t *testing.T) {
	site := newOIDCSite(t, trusting(oidctest.New(t, oidctest.Behavior{Groups: []string{"ops"}})))
	browser := site.visitor()
	browser.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, headers := range [][]string{
		{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}, {"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: cors"},
		{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"},
	} {
		if got := browser.get(site.base+"/login/oidc", headers...); got.status != http.StatusForbidden || len(got.cookies) != 0 {
			t.Errorf("%v: got status %d, cookies %v", headers, got.status, got.cookies)
		}
	}
	for _, host := range []string{"attacker.example", "localhost:80@attacker.example", "localhost.attacker.example"} {
		got := browser.get(site.base+"/login/oidc", "Host: "+host)
		if got.status < 400 || got.header.Get("Location") != "" {
			t.Errorf("host %s: got status %d, redirect to %s", host, got.status, got.header.Get("Location"))
		}
	}
	begun := browser.get(site.base+"/login/oidc?next=https://attacker.example", "Sec-Fetch-Mode: navigate")
	target, err := url.Parse(begun.header.Get("Location"))
	must.OK(t, err)
	if redirect := target.Query().Get("redirect_uri"); redirect != site.base+"/login/oidc/callback" {
		t.Errorf("unexpected redirect URI %s", redirect)
	}
	if scope := target.Query().Get("scope"); scope != "openid profile email offline_access" {
		t.Errorf("unexpected scope %s", scope)
	}
	c := begun.cookies
	if len(c) != 1 || !c[0].HttpOnly || c[0].SameSite != http.SameSiteLaxMode || c[0].MaxAge != 600 ||
		strings.Contains(c[0].Value, target.Query().Get("state")) {
		t.Errorf("unexpected cookie %v", c)
	}
	browser.http.CheckRedirect = nil
	browser.get(site.base + "/login/oidc")
	browser.wants("operator")
	sendPage(t, browser.http, http.MethodPost, site.base+"/logout", nil, "Origin: https://attacker.example")
	if got := browser.get(site.base + "/logout"); got.body != "page" {
		t.Errorf("GET /logout: got %d %s", got.status, got.body)
	}
	browser.wants("operator")
}

// With TLS the redirect URI is the configured one, whatever host the request names.
func TestOIDCRedirectURI(t *testing.T) {
	cfg := trusting(oidctest.New(t, oidctest.Behavior{}))
	files, roots := underTLS(t)
	cfg.TLS, cfg.OIDC.URL = files, "https://ftp.example.com:9122/"
	_, address := serve(t, cfg, whoIs())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	got := sendPage(t, client, http.MethodGet, "https://"+address+"/login/oidc", nil, "Host: attacker.example")
	target, err := url.Parse(got.header.Get("Location"))
	must.OK(t, err)
	if redirect := target.Query().Get("redirect_uri"); redirect != "https://ftp.example.com:9122/login/oidc/callback" {
		t.Errorf("unexpected redirect URI %s", redirect)
	}
	if c := got.cookies; len(c) != 1 || c[0].Name != "__Host-babelftp-login" || !c[0].Secure || c[0].Path != "/" {
		t.Errorf("unexpected cookie %v", c)
	}
}

// A logout ends the login here and returns the URL that ends it at the provider.
func TestOIDCLogout(t *testing.T) {
	p := oidctest.New(t, oidctest.Behavior{Groups: []string{"ops"}})
	site := newOIDCSite(t, trusting(p))
	browser := site.visitor()
	browser.get(site.base + "/login/oidc")
	browser.wants("operator")
	var answer struct {
		LogoutURL string `json:"logout_url"`
	}
	got := sendPage(t, browser.http, http.MethodPost, site.base+"/logout", nil, "Sec-Fetch-Site: same-origin")
	must.OK(t, json.Unmarshal([]byte(got.body), &answer))
	u, err := url.Parse(answer.LogoutURL)
	must.OK(t, err)
	if q := u.Query(); !strings.HasPrefix(answer.LogoutURL, p.URL+"/logout?") || q.Get("a") != "b" ||
		q.Get("client_id") != oidctest.ClientID || strings.Count(q.Get("id_token_hint"), ".") != 2 {
		t.Errorf("unexpected URL %s", answer.LogoutURL)
	}
	browser.wants("")
	if got := sendPage(t, browser.http, http.MethodPost, site.base+"/logout", nil); got.status != http.StatusNoContent {
		t.Errorf("second logout: got status %d", got.status)
	}
	if !strings.Contains(site.log.String(), `"event":"admin_logout"`) {
		t.Errorf("unexpected audit log %s", site.log)
	}
}

// The provider decides on a login until it ends.
func TestOIDCChecks(t *testing.T) {
	always := checks{every: 0, retry: 0, grace: time.Hour}
	for name, tc := range map[string]struct {
		is     oidctest.Behavior
		checks checks
		change func(*oidctest.Behavior)
		role   string // after the change
		reason string // in the audit log
	}{
		"unchanged":      {checks: always, change: func(*oidctest.Behavior) {}, role: "operator"},
		"higher":         {checks: always, change: func(b *oidctest.Behavior) { b.Groups = []string{"root"} }, role: "administrator"},
		"lower":          {checks: always, change: func(b *oidctest.Behavior) { b.Groups = []string{"staff"} }, role: "viewer"},
		"removed":        {checks: always, change: func(b *oidctest.Behavior) { b.Groups = nil }, reason: "no_role"},
		"revoked":        {checks: always, change: func(b *oidctest.Behavior) { b.Revoked = true }, reason: "failed"},
		"down":           {checks: always, change: func(b *oidctest.Behavior) { b.Down = true }, role: "operator"},
		"down-for-long":  {checks: checks{}, change: func(b *oidctest.Behavior) { b.Down = true }, reason: "unavailable"},
		"another-person": {checks: always, change: func(b *oidctest.Behavior) { b.Claims = map[string]any{"sub": "12"} }, reason: "failed"},
		"forged": {checks: always, change: func(b *oidctest.Behavior) {
			b.Sign = func([]byte) string { return "a.b.c" }
		}, reason: "failed"},
		"no-token": {checks: always, change: func(b *oidctest.Behavior) {
			b.Sign, b.Groups = func([]byte) string { return "" }, []string{"staff"}
		}, role: "viewer"},
		"userinfo-of-bob": {checks: always, change: func(b *oidctest.Behavior) {
			b.Sign, b.UserinfoSubject = func([]byte) string { return "" }, "bob"
		}, reason: "failed"},
		"not-yet": {checks: checks{every: time.Hour}, change: func(b *oidctest.Behavior) { b.Groups = nil }, role: "operator"},
		// Without a refresh token, the login is short.
		"no-refresh-token": {is: oidctest.Behavior{WithoutRefresh: true}, checks: always,
			change: func(b *oidctest.Behavior) { b.Groups = nil }, role: "operator"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.is.Groups = []string{"ops"}
			p := oidctest.New(t, tc.is)
			site := newOIDCSite(t, trusting(p))
			site.listener.gate.checks = tc.checks
			browser := site.visitor()
			browser.get(site.base + "/login/oidc")
			p.Change(tc.change)
			var group sync.WaitGroup // a page sends several requests at once
			for range 5 {
				group.Go(func() { browser.wants(tc.role) })
			}
			group.Wait()
			browser.wants(tc.role)
			got := site.log.String()
			if ended := `"login":"oidc","reason":"` + tc.reason + `"}`; tc.reason != "" && strings.Count(got, ended) != 1 ||
				tc.reason == "" && strings.Contains(got, "admin_logout") {
				t.Errorf("unexpected audit log %s", got)
			}
		})
	}
}

// A stream ends when the login does, without another request of the browser.
func TestOIDCStream(t *testing.T) {
	p := oidctest.New(t, oidctest.Behavior{Groups: []string{"ops"}})
	site := newOIDCSite(t, trusting(p))
	site.listener.gate.checks = checks{every: 10 * time.Millisecond}
	browser := site.visitor()
	browser.get(site.base + "/login/oidc")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site.base+Root+"/stream", nil)
	must.OK(t, err)
	response, err := browser.http.Do(request)
	must.OK(t, err)
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	if line, err := lines.ReadString('\n'); line != "begin\n" {
		t.Fatal(line, err)
	}
	for before := p.Requests(); p.Requests() < before+2; { // the login is checked while the stream runs
		browser.wants("operator")
	}
	p.Change(func(b *oidctest.Behavior) { b.Groups = nil })
	if rest, err := io.ReadAll(lines); string(rest) != "end\n" {
		t.Error(string(rest), err)
	}
}

// While the provider is down, passwords are accepted, and the page says why the provider cannot be used.
func TestOIDCProviderDown(t *testing.T) {
	for name, tc := range map[string]struct {
		is   oidctest.Behavior
		code string
	}{
		"down":           {oidctest.Behavior{Down: true}, "unavailable"},
		"another-issuer": {oidctest.Behavior{Metadata: map[string]any{"issuer": "https://attacker.example"}}, "failed"},
		"no-tls": {oidctest.Behavior{Metadata: map[string]any{"token_endpoint": "http://login.example.com/token"}},
			"failed"},
		"script":    {oidctest.Behavior{Metadata: map[string]any{"end_session_endpoint": "javascript:alert(1)"}}, "failed"},
		"oversized": {oidctest.Behavior{Metadata: map[string]any{"padding": strings.Repeat("x", 2<<20)}}, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := oidctest.New(t, tc.is)
			cfg := trusting(p)
			cfg.Users = users(t, password)
			site := newOIDCSite(t, cfg)
			browser := site.visitor()
			got := browser.get(site.base + "/login/oidc")
			if code := got.at.Query().Get("login_error"); got.at.Path != "/" || code != tc.code {
				t.Errorf("the login ended at %s", got.at)
			}
			login := sendPage(t, browser.http, http.MethodPost, site.base+"/login",
				url.Values{"user": {administratorName}, "password": {password}})
			if login.status != http.StatusNoContent {
				t.Errorf("password: got status %d", login.status)
			}
			if tc.code != "unavailable" {
				return
			}
			p.Change(func(b *oidctest.Behavior) { *b = oidctest.Behavior{Groups: []string{"ops"}} })
			other := site.visitor()
			for other.role() == "" { // the next attempt is a few seconds later
				other.get(site.base + "/login/oidc")
			}
		})
	}
}

// A reload that changes the provider or a role ends all logins. Other reloads do not.
func TestOIDCReload(t *testing.T) {
	cfg := trusting(oidctest.New(t, oidctest.Behavior{Groups: []string{"ops"}}))
	site := newOIDCSite(t, cfg)
	browser := site.visitor()
	browser.get(site.base + "/login/oidc")
	reload := func() {
		t.Helper()
		next, err := site.listener.Prepare(cfg)
		must.OK(t, err)
		next.Apply()
	}
	reload()
	browser.wants("operator")
	cfg.OIDC.Roles = map[config.AdminRole][]string{config.RoleViewer: {"ops"}}
	back := browser.callback()
	reload()
	browser.wants("")
	browser.get(back.String()) // began before the reload
	browser.wants("viewer")
	cfg.OIDC, cfg.Users = config.OIDC{}, users(t, password)
	reload()
	browser.wants("")
	cfg.OIDC = trusting(oidctest.New(t, oidctest.Behavior{})).OIDC
	cfg.OIDC.CAFile = "/nowhere"
	_, err := site.listener.Prepare(cfg)
	if err == nil || !strings.Contains(err.Error(), "ca_file: cannot read /nowhere") {
		t.Errorf("unexpected error %v", err)
	}
}

// Administrators with a password or a certificate have the role in admin.roles.
func TestRolesOfPasswords(t *testing.T) {
	cfg := config.Admin{Users: users(t, password)}
	for _, role := range append(config.AdminRoles(), "") {
		if role != "" {
			cfg.Roles = map[string]config.AdminRole{administratorName: role}
		} else {
			cfg.Roles, role = nil, config.RoleAdministrator
		}
		_, address := serve(t, cfg, whoIs())
		base := "http://" + address
		want := fmt.Sprintf(`{"name":"ann","role":"%s","login":"password"}`, role)
		got := sendPage(t, http.DefaultClient, http.MethodGet, base+Root+"/me", nil, basic(administratorName, password))
		if strings.TrimSpace(got.body) != want {
			t.Errorf("password: got %s, want %s", got.body, want)
		}
		jar, _ := cookiejar.New(nil)
		browser := &http.Client{Jar: jar}
		sendPage(t, browser, http.MethodPost, base+"/login", url.Values{"user": {administratorName}, "password": {password}})
		if got := sendPage(t, browser, http.MethodGet, base+Root+"/me", nil); strings.TrimSpace(got.body) != want {
			t.Errorf("cookie: got %s, want %s", got.body, want)
		}
	}
}
