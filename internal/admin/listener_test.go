package admin

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/report/audit"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

const (
	administratorName = "ann"
	password          = "0123456789abcdef0123456789abcdef"
	otherPassword     = "fedcba9876543210fedcba9876543210"
	linkToken         = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
)

// users returns the value of admin.users with one administrator.
func users(t *testing.T, password string) value.Secret {
	t.Helper()
	hash, err := passwordhash.New(password)
	must.OK(t, err)
	return value.NewSecret(administratorName + ":" + hash)
}

// basic returns a header for basic authentication.
func basic(name, password string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
}

// textHandler returns a handler that responds with a text.
func textHandler(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
}

// serve starts a listener and returns its address.
func serve(t *testing.T, cfg config.Admin, api http.Handler) (l *Listener, address string) {
	t.Helper()
	return serveAudited(t, cfg, api, nil)
}

func serveAudited(t *testing.T, cfg config.Admin, api http.Handler, lines *audit.Log) (l *Listener, address string) {
	t.Helper()
	l, err := NewListener(cfg, api, textHandler("page"), lines, slog.New(slog.DiscardHandler), linkToken)
	must.OK(t, err)
	bound := must.Listen(t)
	ended := make(chan error)
	go func() { ended <- l.Serve(bound) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return l, bound.Addr().String()
}

// underTLS writes a certificate for 127.0.0.1 and returns the roots that a client must trust.
func underTLS(t *testing.T) (files config.AdminTLS, roots *x509.CertPool) {
	t.Helper()
	dir := t.TempDir()
	files = config.AdminTLS{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	must.WriteCertificate(t, files.CertFile, files.KeyFile,
		&x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	text := must.ReadFile(t, files.CertFile)
	return files, must.CertPool(text)
}

// A page is the part of a response that tests check.
type page struct {
	status  int
	body    string
	header  http.Header
	cookies []*http.Cookie
	at      *url.URL // after redirects
}

// sendPage sends a request with headers in the format "Name: value".
func sendPage(t *testing.T, client *http.Client, method, address string, form url.Values, headers ...string) page {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
	must.OK(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, h := range headers {
		name, text, _ := strings.Cut(h, ": ")
		if request.Header.Set(name, text); name == "Host" {
			request.Host = text
		}
	}
	response, err := client.Do(request)
	must.OK(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must.OK(t, err)
	return page{response.StatusCode, string(body), response.Header, response.Cookies(), response.Request.URL}
}

// Without a login, a browser gets the page but nothing from the API. Other sites get nothing through a
// browser that is logged in.
func TestPassword(t *testing.T) {
	_, address := serve(t, config.Admin{Users: users(t, password)}, textHandler("api"))
	_, port, _ := net.SplitHostPort(address)
	const path = "/api/v1/sessions"
	right := basic(administratorName, password)
	for _, tc := range []struct {
		label, method, path string
		headers             []string
		status              int
		body                string // a part of it
	}{
		{"page", http.MethodGet, "/", nil, 200, "page"},
		{"file of the page", http.MethodGet, "/style.css", nil, 200, "page"},
		{"no password", http.MethodGet, path, nil, 401, `{"error":"authentication required: send the name`},
		{"wrong password", http.MethodGet, path, []string{basic(administratorName, otherPassword)}, 401, "error"},
		{"part of the password", http.MethodGet, path, []string{basic(administratorName, password[:31])}, 401, "error"},
		{"another name", http.MethodGet, path, []string{basic("bob", password)}, 401, "error"},
		{"no name", http.MethodGet, path, []string{basic("", "")}, 401, "error"},
		{"another scheme", http.MethodGet, path, []string{"Authorization: Bearer " + password}, 401, "error"},
		{"wrong cookie", http.MethodGet, path, []string{"Cookie: babelftp-admin=" + password}, 401, "error"},
		{"password", http.MethodGet, path, []string{right}, 200, "api"},
		{"change", http.MethodDelete, path + "/1", []string{right}, 200, "api"},
		{"localhost", http.MethodGet, path, []string{right, "Host: localhost:" + port}, 200, "api"},
		{"rebinding", http.MethodGet, path, []string{right, "Host: attacker.example:" + port}, 421,
			"only requests for localhost"},
		{"rebinding of the page", http.MethodGet, "/", []string{"Host: attacker.example"}, 421, "only requests for localhost"},
		{"another origin", http.MethodDelete, path + "/1", []string{right, "Origin: https://attacker.example"}, 403,
			`{"error":`},
		{"another site", http.MethodDelete, path + "/1", []string{right, "Sec-Fetch-Site: cross-site"}, 403,
			`{"error":`},
		{"another site reads", http.MethodGet, path, []string{right, "Sec-Fetch-Site: cross-site"}, 403, `{"error":`},
		{"another port reads", http.MethodGet, path, []string{right, "Sec-Fetch-Site: same-site"}, 403, `{"error":`},
		{"own page reads", http.MethodGet, path, []string{right, "Sec-Fetch-Site: same-origin"}, 200, "api"},
		{"another site logs in", http.MethodPost, "/login?token=" + linkToken, []string{"Origin: https://attacker.example"},
			403, `{"error":`},
	} {
		t.Run(strings.ReplaceAll(tc.label, " ", "-"), func(t *testing.T) {
			t.Parallel() // a correct password waits because of earlier wrong ones
			got := sendPage(t, http.DefaultClient, tc.method, "http://"+address+tc.path, nil, tc.headers...)
			if got.status != tc.status || !strings.Contains(got.body, tc.body) {
				t.Errorf("got %d %q, want %d %q", got.status, got.body, tc.status, tc.body)
			}
			policy := got.header.Get("Content-Security-Policy")
			if !strings.HasPrefix(policy, "default-src 'none';") ||
				!strings.Contains(policy, "frame-ancestors 'none'") ||
				got.header.Get("X-Content-Type-Options") != "nosniff" ||
				got.header.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("unexpected headers %v", got.header)
			}
		})
	}
}

// A browser logs in with a form or a link, and logs out. A new password ends its login and its streams of
// events.
func TestCookie(t *testing.T) {
	entered, ended := make(chan struct{}), make(chan struct{})
	api := http.NewServeMux()
	api.HandleFunc(Root+"/events", func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		close(ended)
	})
	api.Handle("/", textHandler("api"))
	cfg := config.Admin{Users: users(t, password)}
	l, address := serve(t, cfg, api)
	base := "http://" + address
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar}
	asks := func(status int) {
		t.Helper()
		if got := sendPage(t, browser, http.MethodGet, base+"/api/v1/server", nil); got.status != status {
			t.Errorf("got status %d, want %d", got.status, status)
		}
	}
	asks(401)
	if got := sendPage(t, browser, http.MethodPost, base+"/login", url.Values{"user": {administratorName}, "password": {otherPassword}}); got.status != 401 ||
		len(got.cookies) != 0 {
		t.Errorf("wrong password: got status %d, cookies %v", got.status, got.cookies)
	}
	asks(401)
	login := sendPage(
		t, browser, http.MethodPost, base+"/login", url.Values{"user": {administratorName}, "password": {password}}, "Sec-Fetch-Site: same-origin")
	if login.status != 204 || len(login.cookies) != 1 {
		t.Fatalf("login: got status %d, cookies %v", login.status, login.cookies)
	}
	if c := login.cookies[0]; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure || c.Path != "/" ||
		strings.Contains(c.Value, password) {
		t.Errorf("unexpected cookie %v", c)
	}
	asks(200)
	for _, header := range []string{basic(administratorName, otherPassword), "Authorization: Basic"} {
		if got := sendPage(t, browser, http.MethodGet, base+"/api/v1/server", nil, header); got.status != 200 {
			t.Errorf("cookie with %q: got status %d", header, got.status)
		}
	}
	if got := sendPage(t, browser, http.MethodPost, base+"/logout", nil); got.status != 204 {
		t.Errorf("logout: got status %d", got.status)
	}
	asks(401)
	copied := "Cookie: " + login.cookies[0].Name + "=" + login.cookies[0].Value
	if got := sendPage(t, http.DefaultClient, http.MethodGet, base+"/api/v1/server", nil, copied); got.status != 401 {
		t.Errorf("copy of the cookie after the logout: got status %d", got.status)
	}
	for _, refused := range []string{"user=ann&password=" + password, "token=", "token=wrong"} {
		if got := sendPage(t, browser, http.MethodGet, base+"/login?"+refused, nil); got.body != "page" || got.at.RawQuery != "" {
			t.Errorf("%s: got redirect to %s %s", refused, got.at, got.body)
		}
		asks(401)
	}
	if got := sendPage(t, browser, http.MethodPost, base+"/login?user=ann&password="+password, nil); got.status != 401 {
		t.Errorf("password in a URL: got status %d", got.status)
	}
	link := base + "/login?token=" + linkToken
	if got := sendPage(t, browser, http.MethodGet, link, nil); got.body != "page" || got.at.RawQuery != "" {
		t.Errorf("link: got redirect to %s %s", got.at, got.body)
	}
	asks(200)
	_ = sendPage(t, browser, http.MethodPost, base+"/logout", nil)
	if got := sendPage(t, browser, http.MethodGet, link, nil); got.body != "page" {
		t.Errorf("link a second time: got redirect to %s %s", got.at, got.body)
	}
	asks(401)
	login = sendPage(t, browser, http.MethodPost, base+"/login", url.Values{"user": {"ann"}, "password": {password}})
	asks(200)

	streaming := make(chan struct{})
	go func() {
		defer close(streaming)
		_ = sendPage(t, browser, http.MethodGet, base+"/api/v1/events", nil)
	}()
	<-entered
	same, err := l.Prepare(cfg)
	must.OK(t, err)
	same.Apply() // same configuration
	asks(200)
	select {
	case <-ended:
		t.Error("the stream ended although the password did not change")
	default:
	}
	cfg.Users = users(t, otherPassword)
	other, err := l.Prepare(cfg)
	must.OK(t, err)
	other.Apply()
	<-ended
	<-streaming
	asks(401)
}

// A valid client certificate logs in. If there are no passwords, clients must have a certificate even for the
// page.
func TestClientCertificate(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		must.WriteFile(t, name, text)
		return name
	}
	certificate, key := must.Certificate(
		t, &x509.Certificate{DNSNames: []string{"admin.example"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	roots := must.CertPool(certificate)
	ours, others := must.NewAuthority(t, "ours"), must.NewAuthority(t, "others")
	cfg := config.Admin{Users: users(t, password), TLS: config.AdminTLS{
		CertFile: write("cert.pem", certificate), KeyFile: write("key.pem", key),
		ClientCAFile: write("ca.pem", ours.Certificate),
	}}
	shows := func(a *must.Authority) []tls.Certificate {
		t.Helper()
		pair, err := tls.X509KeyPair(pem(a.Issue(&x509.Certificate{})))
		must.OK(t, err)
		return []tls.Certificate{pair}
	}
	client := func(certificates []tls.Certificate) *http.Client {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: certificates}}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
	administrator, stranger, nobody := client(shows(ours)), client(shows(others)), client(nil)
	for _, required := range []bool{false, true} {
		if required {
			cfg.Users = value.Secret{}
		}
		_, address := serve(t, cfg, textHandler("api"))
		ask := func(c *http.Client, path string) int {
			t.Helper()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+path, nil)
			must.OK(t, err)
			request.Host = "admin.example" // the certificate is valid for this name
			response, err := c.Do(request)
			if err != nil {
				return 0
			}
			_ = response.Body.Close()
			return response.StatusCode
		}
		want := map[string]int{"/": 200, "/api/v1/server": 401}
		if required {
			want = map[string]int{"/": 0, "/api/v1/server": 0}
		}
		for path, status := range want {
			if got := ask(administrator, path); got != 200 {
				t.Errorf("passwords given: %t, %s with a certificate: %d", !required, path, got)
			}
			if got := ask(nobody, path); got != status {
				t.Errorf("passwords given: %t, %s without a certificate: %d, want %d", !required, path, got, status)
			}
			if got := ask(stranger, path); got != 0 && got != status {
				t.Errorf("passwords given: %t, %s with the certificate of others: %d", !required, path, got)
			}
		}
		if c, err := NewRemoteClient("http://admin.example:9122", administratorName, password, nil); err == nil {
			t.Errorf("the client %v would send the password without TLS", c)
		}
	}
}

// A certificate of a removed authority is refused even on the open connection on which it was accepted
// before. The audit log has each refusal.
func TestOtherAuthorities(t *testing.T) {
	files, roots := underTLS(t)
	ours, others := must.NewAuthority(t, "ours"), must.NewAuthority(t, "others")
	files.ClientCAFile = filepath.Join(t.TempDir(), "ca.pem")
	cfg := config.Admin{Users: users(t, password), TLS: files}
	trust := func(a *must.Authority) {
		t.Helper()
		must.WriteFile(t, cfg.TLS.ClientCAFile, a.Certificate)
	}
	trust(ours)
	var lines bytes.Buffer
	l, address := serveAudited(t, cfg, textHandler("api"), audit.New(audit.To(&lines), func() bool { return true }, nil))
	pair, err := tls.X509KeyPair(pem(ours.Issue(&x509.Certificate{Subject: pkix.Name{CommonName: "ann"}})))
	must.OK(t, err)
	connections := 0
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			connections++
			return new(net.Dialer).DialContext(ctx, network, address)
		},
		MaxConnsPerHost: 1,
	}
	t.Cleanup(transport.CloseIdleConnections)
	ask := func(status, on int) {
		t.Helper()
		got := sendPage(t, &http.Client{Transport: transport}, http.MethodGet, "https://"+address+"/api/v1/server", nil)
		if got.status != status || connections != on {
			t.Errorf("got status %d on connection %d, want %d on %d", got.status, connections, status, on)
		}
	}
	ask(200, 1)
	for _, step := range []struct {
		trusted    *must.Authority
		status, on int
	}{{ours, 200, 1}, {others, 401, 1}, {ours, 200, 2}} {
		// the response 401 closes the connection, so that the client can choose another certificate
		trust(step.trusted)
		next, err := l.Prepare(cfg)
		must.OK(t, err)
		next.Apply()
		ask(step.status, step.on)
	}
	refused := `"outcome":"failed","reason":"certificate"}`
	if text := lines.String(); strings.Count(text, "\n") != 3 || strings.Count(text, refused) != 1 ||
		!strings.Contains(text, `"event":"admin_login","client":"127.0.0.1:`) ||
		!strings.Contains(text, `"certificate":"CN=ann",`+refused) {
		t.Errorf("unexpected audit log: %s", text)
	}
}

// A reload adds TLS and removes it again on the same address.
func TestReloadOfTLS(t *testing.T) {
	files, roots := underTLS(t)
	plain := config.Admin{Users: users(t, password)}
	secure := plain
	secure.TLS = files
	l, address := serve(t, plain, textHandler("api"))
	for _, step := range []struct {
		scheme string
		cfg    config.Admin
	}{{"http", plain}, {"https", secure}, {"http", plain}} {
		next, err := l.Prepare(step.cfg)
		must.OK(t, err)
		next.Apply()
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots},
			DisableKeepAlives: true}}
		got := sendPage(
			t, client, http.MethodGet, step.scheme+"://"+address+"/api/v1/server", nil, basic(administratorName, password))
		if got.status != 200 || got.body != "api" {
			t.Errorf("%s: %d %q", step.scheme, got.status, got.body)
		}
	}
}

func pem(cert, key string) (certificate, private []byte) { return []byte(cert), []byte(key) }

// With TLS, the cookie is bound to TLS.
func TestCookieOfTLS(t *testing.T) {
	files, roots := underTLS(t)
	_, address := serve(t, config.Admin{Users: users(t, password), TLS: files}, textHandler("api"))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	got := sendPage(
		t, &http.Client{Transport: transport}, http.MethodPost, "https://"+address+"/login",
		url.Values{"user": {administratorName}, "password": {password}})
	if c := got.cookies; len(c) != 1 || c[0].Name != "__Host-babelftp-admin" || !c[0].Secure || !c[0].HttpOnly {
		t.Errorf("got status %d, cookies %v", got.status, c)
	}
	c, err := NewRemoteClient("https://"+address, administratorName, password, nil)
	must.OK(t, err)
	if _, err := c.Server(t.Context()); err == nil || !strings.Contains(err.Error(), "is not trusted") ||
		!strings.Contains(err.Error(), "--ca-file") {
		t.Errorf("client without the authority: unexpected error %v", err)
	}
}

// One network cannot take all connections. When it reaches its limit, its oldest idle connection is closed.
func TestTooManyConnections(t *testing.T) {
	_, address := serve(t, config.Admin{Users: users(t, password)}, textHandler("api"))
	var oldest net.Conn
	for range maxPerNetwork + 1 {
		conn := must.Dial(t, address)
		must.Write(t, conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Fatal(err) // all connections stay open until the end of the test
		}
		if oldest == nil {
			oldest = conn
		}
	}
	if _, err := io.Copy(io.Discard, oldest); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("unexpected error of the oldest connection: %v", err)
	}
}
