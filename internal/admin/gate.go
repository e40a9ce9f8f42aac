package admin

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/admin/oidc"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report/audit"
)

const (
	// cookieLife is the lifetime of a browser's login.
	cookieLife = 12 * time.Hour
	// longestWait limits the delay after wrong passwords. It is short because it affects all clients of the
	// same network.
	longestWait = 2 * time.Second
	// visitLasts is the time in which requests with a password or a certificate count as one login. Scripts send
	// credentials with each request, and not every request should be logged as a login.
	visitLasts = time.Hour
	// maxVisits limits the visits that are remembered. Above it, all are dropped, which costs only extra log
	// lines.
	maxVisits = 1000
	// linkAdministrator is the administrator name in logs after a login by the one-time link.
	linkAdministrator = "link"
	// maxBody limits the size of a request body in bytes.
	maxBody = 64 << 10
)

// The names of the cookie. Browsers accept a cookie with the prefix __Host- only over TLS and send it only to
// the host that set it (RFC 6265bis, section 4.1.3.2).
const (
	cookieTLS = "__Host-babelftp-admin"
	cookie    = "babelftp-admin"
)

// contentPolicy lets the page load its own files and nothing else.
const contentPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// A gate authenticates administrators.
type gate struct {
	audit    *audit.Log
	log      *slog.Logger
	throttle *limits.Throttle[netip.Prefix, struct{}]
	origins  *http.CrossOriginProtection
	checks   checks
	key      [32]byte // encrypts attempts to log in at the provider

	mu          sync.Mutex
	credentials credentials
	token       string // token of the one-time login link; empty without a link and after its use
}

// access is the configuration of logins.
type access struct {
	passwords *passwords // nil for none
	tls       bool
	// clients holds the authorities of client certificates; nil for none.
	clients *x509.CertPool
	roles   map[string]config.AdminRole // of passwords and client certificates
	oidc    *oidc.Client                // nil for none
}

// equal reports whether a and other let the same people in.
func (a *access) equal(other *access) bool {
	return a.passwords.equal(other.passwords) && a.tls == other.tls && a.clients.Equal(other.clients) &&
		maps.Equal(a.roles, other.roles) && a.oidc.Equal(other.oidc)
}

// credentials is one set of login data. It is replaced as a whole, never changed, except for visits.
type credentials struct {
	access
	browsers *browsers     // logged in with a password, at the provider or with the link
	ended    chan struct{} // closed when these credentials are replaced
	// visits has the start of each visit. It is guarded by gate.mu.
	visits map[visit]time.Time
}

// A visit is a series of requests from one administrator and one network that carry a password or a
// certificate instead of a cookie.
type visit struct {
	administrator string
	from          netip.Prefix
}

func newCredentials() credentials {
	return credentials{browsers: newBrowsers(), ended: make(chan struct{}), visits: map[visit]time.Time{}}
}

func newGate(audit *audit.Log, log *slog.Logger, token string) *gate {
	g := &gate{
		audit: audit, log: log, token: token,
		throttle: limits.NewThrottle[netip.Prefix, struct{}](longestWait), origins: http.NewCrossOriginProtection(),
		credentials: newCredentials(), checks: checks{checkEvery, checkRetry, checkGrace},
	}
	_, _ = rand.Read(g.key[:]) // never fails
	g.origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		Fail(w, errOtherSite)
	}))
	return g
}

var errOtherSite = &Error{Status: http.StatusForbidden, Text: "cross-site requests are not allowed"}

// replace sets the configuration of logins. If it has changed, it ends all running requests and browser logins.
func (g *gate) replace(to access) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if to.equal(&g.credentials.access) {
		return
	}
	close(g.credentials.ended)
	g.credentials = newCredentials()
	g.credentials.access = to
}

// end ends all running requests and browser logins.
func (g *gate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.credentials.ended)
	g.credentials = newCredentials()
}

func (g *gate) current() credentials {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.credentials
}

// handler returns a handler that serves page to everybody and api to authenticated administrators.
func (g *gate) handler(api, page http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(Root+"/", g.guard(api))
	mux.HandleFunc("POST /login", g.logIn)
	mux.HandleFunc("GET /login", g.followLink)
	mux.HandleFunc("GET /login/options", g.options)
	mux.HandleFunc("GET /login/oidc", g.startOIDC)
	mux.HandleFunc("GET "+oidc.CallbackPath, g.finishOIDC)
	mux.HandleFunc("POST /logout", g.logOut)
	mux.Handle("/", page)
	return g.strict(g.origins.Handler(mux))
}

// strict sets security headers on each response and rejects requests that may be DNS rebinding.
func (g *gate) strict(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if r.TLS == nil && !config.IsLoopback(r.Host) {
			Fail(
				w, &Error{Status: http.StatusMisdirectedRequest,
					Text: "without TLS, only requests for localhost or 127.0.0.1 are allowed"})
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

// guard passes only authenticated requests to next. It cancels them when the credentials are replaced or the
// browser logs out.
func (g *gate) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := g.current()
		// Browsers attach client certificates to requests from other sites, and cookies to requests from
		// another port of the same host.
		if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
			Fail(w, errOtherSite)
			return
		}
		of, browser := g.loggedIn(&c, r)
		if of.Name == "" {
			w.Header().Set("WWW-Authenticate", challenge(r))
			if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
				w.Header().Set("Connection", "close") // lets the client choose another certificate in a new handshake
				g.logRefusedCertificate(r)
			}
			Fail(w, errNoLogin)
			return
		}
		if browser == nil && g.begins(&c, of.Name, r) {
			g.logLogin(of, r)
		}
		ctx, cancel := context.WithCancel(withIdentity(r.Context(), of))
		defer cancel()
		panics.Go(func() {
			defer cancel()
			g.watch(ctx, &c, browser)
		})
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// watch waits until a request ends, the credentials are replaced, or the login of the browser ends. b is nil for a
// login without a cookie. A request may be a long stream, so watch also checks a login at the provider.
func (g *gate) watch(ctx context.Context, c *credentials, b *browser) {
	var loggedOut <-chan struct{}
	var expired, check <-chan time.Time
	if b != nil {
		loggedOut, expired = b.loggedOut, time.After(time.Until(b.until))
	}
	for {
		if b != nil && b.provider != nil {
			check = time.After(time.Until(b.provider.nextCheck()))
		}
		select {
		case <-c.ended:
			return
		case <-loggedOut:
			return
		case <-expired:
			return
		case <-ctx.Done():
			return
		case <-check:
			g.check(ctx, c, b)
		}
	}
}

var errNoLogin = &Error{
	Status: http.StatusUnauthorized, Text: "authentication required: send the name and password of an administrator in admin.users",
}

// challenge returns the WWW-Authenticate header. Browsers get a scheme that they do not know, because they
// would show their own password dialog for Basic, and the page has a login form.
func challenge(r *http.Request) string {
	if r.Header.Get("Sec-Fetch-Site") != "" {
		return `Cookie realm="babelftp"`
	}
	return `Basic realm="babelftp", charset="UTF-8"`
}

// loggedIn returns the login that sent the request, or the zero value without a valid login. If the
// login is a cookie, it also returns the browser.
func (g *gate) loggedIn(c *credentials, r *http.Request) (Identity, *browser) {
	if name := c.clientName(r.TLS); name != "" {
		return Identity{Name: name, Role: roleNamed(c.roles[name]), Login: loginCertificate}, nil
	}
	// The cookie comes first, because a browser may send the basic authentication of another program on this
	// host.
	if sent, err := r.Cookie(c.cookie()); err == nil {
		switch browser := c.browsers.find(sent.Value); {
		case browser == nil:
		case browser.provider == nil:
			return browser.identity, browser
		default:
			return g.check(r.Context(), c, browser), browser
		}
	}
	if user, password, ok := r.BasicAuth(); ok && g.isPassword(c, r, user, password) {
		return Identity{Name: user, Role: roleNamed(c.roles[user]), Login: loginPassword}, nil
	}
	return Identity{}, nil
}

// clientName returns the subject of the client certificate of a connection, or an empty string if it is not a
// valid login. It verifies the certificate again, because it may have expired and the authorities may have
// changed since the handshake.
func (c *credentials) clientName(state *tls.ConnectionState) string {
	if state == nil || len(state.VerifiedChains) == 0 || c.clients == nil {
		return ""
	}
	between := x509.NewCertPool()
	for _, certificate := range state.PeerCertificates[1:] {
		between.AddCert(certificate)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: c.clients, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return ""
	}
	subject := state.PeerCertificates[0].Subject
	return cmp.Or(subject.CommonName, subject.String(), "certificate "+state.PeerCertificates[0].SerialNumber.String())
}

// isPassword reports whether the password is right. If the client's network has sent wrong passwords before,
// it waits first. Wrong passwords are logged, but without an unknown name, which may be a password typed into
// the wrong field.
func (g *gate) isPassword(c *credentials, r *http.Request, name, password string) bool {
	if c.passwords == nil {
		return false
	}
	if c.passwords.remembered(name, password) {
		return true
	}
	addr, _ := netip.ParseAddrPort(r.RemoteAddr)
	network := limits.Network(addr.Addr())
	if g.throttle.Wait(r.Context(), network, struct{}{}) != nil {
		return false
	}
	if !c.passwords.match(r.Context(), name, password) {
		g.throttle.Failed(network, struct{}{})
		if r.Context().Err() == nil {
			if _, known := c.passwords.hashes[name]; !known {
				name = ""
			}
			g.log.Info("administrator login refused", "administrator", name, "remote", r.RemoteAddr)
			g.audit.AdministratorRefused(name, addr)
		}
		return false
	}
	return true
}

// begins reports whether a request without a cookie starts a new visit.
func (g *gate) begins(c *credentials, name string, r *http.Request) bool {
	addr, _ := netip.ParseAddrPort(r.RemoteAddr)
	one, now := visit{name, limits.Network(addr.Addr())}, time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if began, known := c.visits[one]; known && now.Sub(began) < visitLasts {
		return false
	}
	if len(c.visits) >= maxVisits {
		clear(c.visits)
	}
	c.visits[one] = now
	return true
}

// logLogin writes a login of an administrator to the log and the audit log.
func (g *gate) logLogin(of Identity, r *http.Request) {
	g.log.Info("administrator logged in", "administrator", of.Name, "login", of.Login, "role", of.Role.String(),
		"remote", r.RemoteAddr)
	g.audit.Write(&audit.Action{
		Event: audit.EventAdministrator, Administrator: of.Name, Client: r.RemoteAddr,
		About: []any{"login", of.Login, "role", of.Role.String()},
	}, nil)
}

// logRefusedCertificate logs a client certificate that was accepted in the handshake but is not valid now.
// Certificates that fail during the handshake are logged elsewhere.
func (g *gate) logRefusedCertificate(r *http.Request) {
	subject := r.TLS.PeerCertificates[0].Subject.String()
	addr, _ := netip.ParseAddrPort(r.RemoteAddr)
	g.log.Info("administrator certificate refused", "certificate", subject, "remote", r.RemoteAddr)
	g.audit.CertificateRefused(subject, addr)
}

// cookie returns the name of the cookie.
func (c *credentials) cookie() string { return c.cookieNamed(cookieTLS, cookie) }

// cookieNamed returns the name of a cookie for connections with or without TLS.
func (c *credentials) cookieNamed(withTLS, withoutTLS string) string {
	if c.tls {
		return withTLS
	}
	return withoutTLS
}

// set sets the cookie in the response.
func (c *credentials) set(w http.ResponseWriter, value string, life time.Duration) {
	c.setCookie(w, c.cookie(), value, life, http.SameSiteStrictMode)
}

// setCookie sets a cookie that scripts cannot read. A negative life removes it.
func (c *credentials) setCookie(
	w http.ResponseWriter, name, value string, life time.Duration, sameSite http.SameSite,
) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(life / time.Second), HttpOnly: true, Secure: c.tls,
		SameSite: sameSite,
	})
}

// logIn exchanges the name and the password of a form for the cookie. It ignores the query of the URL,
// because proxies and browsers store URLs.
func (g *gate) logIn(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	c := g.current()
	name := r.PostFormValue("user")
	if !g.isPassword(&c, r, name, r.PostFormValue("password")) {
		Fail(w, &Error{Status: http.StatusUnauthorized, Text: "wrong name or password: see admin.users"})
		return
	}
	of := Identity{Name: name, Role: roleNamed(c.roles[name]), Login: loginPassword}
	c.set(w, c.browsers.logIn(of), cookieLife)
	g.logLogin(of, r)
	w.WriteHeader(http.StatusNoContent)
}

// followLink redirects to the page and, if the link has the valid one-time token, sets the cookie. With an
// invalid token, the page shows the login form.
func (g *gate) followLink(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if g.takeToken(r.URL.Query().Get("token")) {
		c := g.current()
		of := Identity{Name: linkAdministrator, Role: Administrator, Login: loginLink}
		c.set(w, c.browsers.logIn(of), cookieLife)
		g.logLogin(of, r)
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// takeToken reports whether token is the valid token of the link, and invalidates it.
func (g *gate) takeToken(token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) != 1 {
		return false
	}
	g.token = ""
	return true
}

// logOut ends the login of the browser and deletes its cookie. Copies of the cookie are invalid from then on. After a
// login at a provider, the response has the URL that ends the login there, too.
func (g *gate) logOut(w http.ResponseWriter, r *http.Request) {
	c := g.current()
	c.set(w, "", -time.Second)
	var b *browser
	if sent, err := r.Cookie(c.cookie()); err == nil {
		b = c.browsers.find(sent.Value)
	}
	if b == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	c.browsers.end(b)
	g.audit.Write(&audit.Action{
		Event: audit.EventAdministratorLogout, Administrator: b.identity.Name, Client: r.RemoteAddr,
		About: []any{"login", b.identity.Login},
	}, nil)
	if b.provider != nil {
		if address := b.provider.logoutURL(r.Context(), c.oidc); address != "" {
			send(w, http.StatusOK, map[string]string{"logout_url": address})
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}
