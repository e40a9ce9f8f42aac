package admin

import (
	"cmp"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report/audit"
)

const (
	// cookieLife is how long a browser stays logged in.
	cookieLife = 12 * time.Hour
	// longestWait is how long a client waits after wrong passwords. It is short: others of the same network wait too.
	longestWait = 2 * time.Second
	// visitLasts is how long requests with a password or a certificate count as one login. A script sends it with each.
	visitLasts = time.Hour
	// maxVisits is how many of them are remembered. They are forgotten where there are more, which costs lines.
	maxVisits = 1000
	// linkAdministrator is the name in the logs of an administrator who has used the link that logs in once.
	linkAdministrator = "link"
	// maxForm is how many bytes the body of a request has at most.
	maxForm = 4 << 10
)

// The cookie. Browsers take one with the prefix __Host- under TLS only, and send it to no other host (RFC 6265bis
// 4.1.3.2).
const (
	cookieTLS = "__Host-babelftp-admin"
	cookie    = "babelftp-admin"
)

// contentPolicy lets the page load its own files and nothing else.
const contentPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// A gate lets administrators pass, and no others.
type gate struct {
	audit    *audit.Log
	log      *slog.Logger
	throttle *limits.Throttle[netip.Prefix, struct{}]
	origins  *http.CrossOriginProtection

	mu          sync.Mutex
	credentials credentials
	token       string // of the link that logs in once; empty without one
}

// credentials are what administrators have. They are replaced, not changed.
type credentials struct {
	passwords *passwords // nil for none
	tls       bool
	// clients are the authorities of certificates, nil for none.
	clients  *x509.CertPool
	browsers *browsers     // that have logged in with a password
	ended    chan struct{} // closed when others take their place
	// visits are when each began that goes on without a cookie. The mutex of the gate guards them.
	visits map[visit]time.Time
}

// A visit is requests of an administrator, from one network, that each have a password or a certificate.
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
		credentials: newCredentials(),
	}
	g.origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		Fail(w, errOtherSite)
	}))
	return g
}

var errOtherSite = &Error{Status: http.StatusForbidden, Text: "another site has made the browser ask"}

// replace sets the passwords, nil for none, whether there is TLS, and the authorities of certificates. Requests end if
// one of them has changed.
func (g *gate) replace(passwords *passwords, tls bool, clients *x509.CertPool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := newCredentials()
	next.passwords, next.tls, next.clients = passwords, tls, clients
	before := g.credentials
	if next.passwords.equal(before.passwords) && next.tls == before.tls && next.clients.Equal(before.clients) {
		return
	}
	close(before.ended)
	g.credentials = next
}

// end ends all requests.
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

// handler puts the gate before an API and a page.
func (g *gate) handler(api, page http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(Root+"/", g.guard(api))
	mux.HandleFunc("POST /login", g.logIn)
	mux.HandleFunc("GET /login", g.followLink)
	mux.HandleFunc("POST /logout", g.logOut)
	mux.Handle("/", page)
	return g.strict(g.origins.Handler(mux))
}

// strict refuses what no administrator's client sends, and tells browsers to be strict too.
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
					Text: "without TLS, ask for localhost or 127.0.0.1 only"})
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		next.ServeHTTP(w, r)
	})
}

// guard lets requests with a login pass. They end with the credentials, and with the logout of their browser.
func (g *gate) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := g.current()
		// A certificate goes along with what other sites make a browser ask, and so may a cookie on another port of
		// this machine.
		if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
			Fail(w, errOtherSite)
			return
		}
		name, loggedOut := g.loggedIn(&c, r)
		if name == "" {
			w.Header().Set("WWW-Authenticate", challenge(r))
			if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
				w.Header().Set("Connection", "close") // the client may show another certificate in another handshake
				g.tellOfCertificate(r)
			}
			Fail(w, errNoLogin)
			return
		}
		if loggedOut == nil && g.begins(&c, name, r) {
			g.tell(name, r)
		}
		ctx, cancel := context.WithCancel(withAdministrator(r.Context(), name))
		defer cancel()
		panics.Go(func() {
			select {
			case <-c.ended:
				cancel()
			case <-loggedOut:
				cancel()
			case <-ctx.Done():
			}
		})
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

var errNoLogin = &Error{
	Status: http.StatusUnauthorized, Text: "send the name and the password of an administrator of admin.users, by basic authentication",
}

// challenge is what a client without a login reads. A browser would ask for a password itself, where the page does.
func challenge(r *http.Request) string {
	if r.Header.Get("Sec-Fetch-Site") != "" {
		return `Cookie realm="babelftp"`
	}
	return `Basic realm="babelftp", charset="UTF-8"`
}

// loggedIn is the name of the administrator who sends a request, empty without one. The channel is closed when that one
// logs out; it is nil where there is no cookie.
func (g *gate) loggedIn(c *credentials, r *http.Request) (name string, loggedOut <-chan struct{}) {
	if name = c.clientName(r.TLS); name != "" {
		return name, nil
	}
	// The cookie comes first: a browser may send the password of another program of this host too.
	if sent, err := r.Cookie(c.cookie()); err == nil {
		if browser := c.browsers.find(sent.Value); browser != nil {
			return browser.administrator, browser.loggedOut
		}
	}
	if user, password, ok := r.BasicAuth(); ok && g.isPassword(c, r, user, password) {
		return user, nil
	}
	return "", nil
}

// clientName is who shows the certificate of a connection, empty where it is no login now. Since the handshake it may
// have expired, and the authorities may be others.
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

// isPassword compares a password, after a wait if the network of the client has sent wrong ones. It tells the logs of
// wrong ones. A name that no administrator has may be a password, so no log gets it.
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
			g.log.Info("login of an administrator refused", "administrator", name, "remote", r.RemoteAddr)
			g.audit.AdministratorRefused(name, addr)
		}
		return false
	}
	return true
}

// begins reports whether a request without a cookie is the first one of an administrator from a network in an hour.
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

// tell tells the logs that an administrator has logged in.
func (g *gate) tell(name string, r *http.Request) {
	g.log.Info("administrator logged in", "administrator", name, "remote", r.RemoteAddr)
	g.audit.Write(&audit.Act{Event: audit.EventAdministrator, Administrator: name, Client: r.RemoteAddr}, nil)
}

// tellOfCertificate tells the logs that a certificate is no login any more. TLS tells of those that it refuses in the
// handshake.
func (g *gate) tellOfCertificate(r *http.Request) {
	subject := r.TLS.PeerCertificates[0].Subject.String()
	addr, _ := netip.ParseAddrPort(r.RemoteAddr)
	g.log.Info("certificate of an administrator refused", "certificate", subject, "remote", r.RemoteAddr)
	g.audit.CertificateRefused(subject, addr)
}

// cookie is the name of the cookie.
func (c *credentials) cookie() string {
	if c.tls {
		return cookieTLS
	}
	return cookie
}

// set sets the cookie.
func (c *credentials) set(w http.ResponseWriter, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: c.cookie(), Value: value, Path: "/", MaxAge: int(life / time.Second), HttpOnly: true, Secure: c.tls,
		SameSite: http.SameSiteStrictMode,
	})
}

// logIn exchanges the name and the password of a form for the cookie. It ignores the query of the URL, because
// proxies and browsers keep URLs.
func (g *gate) logIn(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	c := g.current()
	name := r.PostFormValue("user")
	if !g.isPassword(&c, r, name, r.PostFormValue("password")) {
		Fail(w, &Error{Status: http.StatusUnauthorized, Text: "admin.users has no such name with this password"})
		return
	}
	c.set(w, c.browsers.begin(name), cookieLife)
	g.tell(name, r)
	w.WriteHeader(http.StatusNoContent)
}

// followLink redirects to the page, and sets the cookie if the link has the token that logs in once. Without it the
// page asks for a password.
func (g *gate) followLink(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if g.takeToken(r.URL.Query().Get("token")) {
		c := g.current()
		c.set(w, c.browsers.begin(linkAdministrator), cookieLife)
		g.tell(linkAdministrator, r)
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

// logOut ends the login of the browser, and removes the cookie from it. A copy of the cookie is no login any more.
func (g *gate) logOut(w http.ResponseWriter, r *http.Request) {
	c := g.current()
	if sent, err := r.Cookie(c.cookie()); err == nil {
		c.browsers.end(sent.Value)
	}
	c.set(w, "", -time.Second)
	w.WriteHeader(http.StatusNoContent)
}
