package admin

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/babelftp/babelftp/internal/admin/oidc"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report/audit"
)

const (
	// attemptLasts limits the time between the click on the login button and the callback of the provider.
	attemptLasts = 10 * time.Minute
	// checkEvery is the time after which the provider is asked again whether a login is valid, and in which groups.
	checkEvery = 5 * time.Minute
	// checkRetry is the time until the next check if the provider is unavailable.
	checkRetry = 30 * time.Second
	// checkGrace limits the time without a successful check while the provider is unavailable.
	checkGrace = 15 * time.Minute
	// uncheckedLife is the lifetime of a login that cannot be checked, because the provider sent no refresh token.
	uncheckedLife = 30 * time.Minute
)

// checks are the times of the checks of logins at the provider.
type checks struct{ every, retry, grace time.Duration }

// The names of the cookie that belongs to an attempt to log in.
const (
	attemptCookieTLS = "__Host-babelftp-login"
	attemptCookie    = "babelftp-login"
)

// Errors of logins at the provider. The page has a text for each code.
var (
	errAttempt = errors.New("the browser has not started this login, or more than 10 minutes ago")
	errNoRole  = errors.New("no group of the administrator has a role in admin.oidc.roles")
)

// loginError returns the code of an error for the page and the audit log.
func loginError(err error) string {
	refused, isRefused := errors.AsType[*oidc.RefusedError](err)
	switch {
	case errors.Is(err, errAttempt):
		return "expired"
	case errors.Is(err, errNoRole):
		return "no_role"
	case errors.Is(err, oidc.ErrUnavailable):
		return "unavailable"
	case isRefused && refused.Denied():
		return "denied"
	}
	return "failed"
}

// roleNamed returns the role with the name. The default for an empty name is [Administrator].
func roleNamed(name config.AdminRole) Role {
	for role, text := range roleNames() {
		if text == string(name) {
			return role
		}
	}
	return Administrator
}

// options responds with the ways to log in. Everybody may read them.
func (g *gate) options(w http.ResponseWriter, _ *http.Request) {
	type provider struct {
		Name string `json:"name"`
	}
	c := g.current()
	options := struct {
		Password bool      `json:"password"`
		OIDC     *provider `json:"oidc"`
	}{Password: c.passwords != nil}
	if c.oidc != nil {
		options.OIDC = &provider{c.oidc.Name()}
	}
	send(w, http.StatusOK, options)
}

var errNoProvider = &Error{Status: http.StatusNotFound, Text: "admin.oidc is not configured"}

// startOIDC sends the browser to the provider.
func (g *gate) startOIDC(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	c := g.current()
	if c.oidc == nil {
		Fail(w, errNoProvider)
		return
	}
	// Images and frames of other sites must not replace the cookie of an attempt.
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" && mode != "navigate" {
		Fail(w, errOtherSite)
		return
	}
	redirect, err := callbackURL(c.oidc, r)
	if err != nil {
		Fail(w, err)
		return
	}
	one := attempt{
		Attempt: oidc.Attempt{
			Redirect: redirect, State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(),
		},
		Until: time.Now().Add(attemptLasts),
	}
	target, err := c.oidc.LoginURL(r.Context(), &one.Attempt)
	if err != nil {
		g.refuseOIDC(w, r, "", err)
		return
	}
	sealed, err := g.seal(&c, &one)
	if err != nil {
		Fail(w, err)
		return
	}
	c.setAttempt(w, sealed, attemptLasts)
	http.Redirect(w, r, target, http.StatusSeeOther)
}

// callbackURL returns the redirect URI. Without a configured address it contains the host of the request, which is a
// loopback address, because the gate refuses others without TLS.
func callbackURL(client *oidc.Client, r *http.Request) (string, error) {
	if address := client.Address(); address != "" {
		return address + oidc.CallbackPath, nil
	}
	u, err := url.Parse("http://" + r.Host)
	if err != nil || u.Host != r.Host || r.TLS != nil {
		return "", &Error{Status: http.StatusBadRequest, Text: "set admin.oidc.url to the address of the page"}
	}
	return u.String() + oidc.CallbackPath, nil
}

// finishOIDC logs the browser in that the provider has sent back.
func (g *gate) finishOIDC(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	c := g.current()
	if c.oidc == nil {
		Fail(w, errNoProvider)
		return
	}
	one, err := g.openAttempt(&c, r)
	c.setAttempt(w, "", -time.Second)
	var found *oidc.Identity
	if err == nil {
		found, err = g.finish(&c, r, one)
	}
	if err != nil {
		name := ""
		if found != nil {
			name = found.Name
		}
		g.refuseOIDC(w, r, name, err)
		return
	}
	now := time.Now()
	of := Identity{Name: found.Name, Role: roleNamed(found.Role), Login: loginOIDC}
	b := &browser{identity: of, until: now.Add(cookieLife), provider: &providerLogin{
		client: r.RemoteAddr, current: found, identity: of, checked: now, next: now.Add(g.checks.every),
	}}
	if found.RefreshToken == "" {
		b.until, b.provider.next = now.Add(uncheckedLife), now.Add(uncheckedLife)
	}
	c.set(w, c.browsers.add(b), time.Until(b.until))
	g.logLogin(of, r)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// finish gets the identity of the administrator from the provider. If the client's network has sent invalid codes
// before, it waits first. The identity is also returned if it has no role.
func (g *gate) finish(c *credentials, r *http.Request, one *oidc.Attempt) (*oidc.Identity, error) {
	addr, _ := netip.ParseAddrPort(r.RemoteAddr)
	network := limits.Network(addr.Addr())
	if err := g.throttle.Wait(r.Context(), network, struct{}{}); err != nil {
		return nil, err
	}
	found, err := c.oidc.Finish(r.Context(), one, r.URL.Query())
	switch {
	case err != nil:
		if loginError(err) == "failed" {
			g.throttle.Failed(network, struct{}{})
		}
	case found.Role == "":
		err = errNoRole
	}
	return found, err
}

// refuseOIDC logs a refused login and shows the page with the reason.
func (g *gate) refuseOIDC(w http.ResponseWriter, r *http.Request, name string, err error) {
	code := loginError(err)
	g.log.Info("administrator login refused", "administrator", name, "login", loginOIDC, "remote", r.RemoteAddr, "err", err)
	addr, _ := netip.ParseAddrPort(r.RemoteAddr)
	g.audit.ProviderRefused(name, code, addr)
	http.Redirect(w, r, "/?login_error="+code, http.StatusSeeOther)
}

// An attempt is the content of the cookie that belongs to an attempt to log in. It is encrypted, so the server keeps no
// state for people who have not logged in.
type attempt struct {
	oidc.Attempt
	Until time.Time
}

// cipher returns the cipher for attempts. Its key exists only in this process.
func (g *gate) cipher() (cipher.AEAD, error) {
	block, err := aes.NewCipher(g.key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func (g *gate) seal(c *credentials, one *attempt) (string, error) {
	aead, err := g.cipher()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(one)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, text, []byte(c.oidc.ID()))), nil
}

// openAttempt returns the attempt of the browser to which a callback belongs.
func (g *gate) openAttempt(c *credentials, r *http.Request) (*oidc.Attempt, error) {
	sent, err := r.Cookie(c.attemptCookie())
	if err != nil {
		return nil, errAttempt
	}
	aead, err := g.cipher()
	if err != nil {
		return nil, err
	}
	sealed, err := base64.RawURLEncoding.DecodeString(sent.Value)
	if err != nil {
		return nil, errAttempt
	}
	text, err := aead.Open(nil, nil, sealed, []byte(c.oidc.ID()))
	if err != nil {
		return nil, errAttempt // of another process, or for another provider
	}
	var one attempt
	if err := json.Unmarshal(text, &one); err != nil {
		return nil, err
	}
	state := r.URL.Query().Get("state")
	if time.Now().After(one.Until) || subtle.ConstantTimeCompare([]byte(state), []byte(one.State)) != 1 {
		return nil, errAttempt
	}
	return &one.Attempt, nil
}

func (c *credentials) attemptCookie() string { return c.cookieNamed(attemptCookieTLS, attemptCookie) }

// setAttempt sets the cookie of an attempt. Unlike the cookie of a login, browsers must send it when the provider
// redirects them to the callback.
func (c *credentials) setAttempt(w http.ResponseWriter, value string, life time.Duration) {
	c.setCookie(w, c.attemptCookie(), value, life, http.SameSiteLaxMode)
}

// A providerLogin is the part of a browser's login that the provider decides on.
type providerLogin struct {
	client string // address of the browser at the login

	mu       sync.Mutex // held during a check, so that a refresh token is used once
	current  *oidc.Identity
	identity Identity
	checked  time.Time // time of the last successful check
	next     time.Time // time of the next check
	ended    bool
}

// check returns the login of a browser. When it is time, it first asks the provider whether the login is still valid
// and which role it has. It ends a login that is no longer valid, and returns the zero value.
func (g *gate) check(ctx context.Context, c *credentials, b *browser) Identity {
	p := b.provider
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.ended || now.Before(p.next) {
		return p.identity
	}
	current, err := c.oidc.Refresh(ctx, p.current)
	switch {
	case err == nil && current.Role == "":
		err = errNoRole
	case err == nil:
		p.current, p.checked, p.next = current, now, now.Add(g.checks.every)
		p.identity.Name, p.identity.Role = current.Name, roleNamed(current.Role)
		return p.identity
	case errors.Is(err, oidc.ErrUnavailable) && now.Sub(p.checked) < g.checks.grace:
		g.log.Warn("administrator login not checked", "administrator", p.identity.Name, "err", err)
		p.next = now.Add(g.checks.retry)
		return p.identity
	}
	g.log.Info("administrator login ended", "administrator", p.identity.Name, "err", err)
	g.audit.Write(&audit.Action{
		Event: audit.EventAdministratorLogout, Administrator: p.identity.Name, Client: p.client,
		About: []any{"login", loginOIDC, "reason", loginError(err)},
	}, nil)
	p.identity, p.ended = Identity{}, true
	c.browsers.end(b)
	return p.identity
}

// nextCheck returns the time of the next check.
func (p *providerLogin) nextCheck() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next
}

// logoutURL returns the URL that ends the login at the provider, or "".
func (p *providerLogin) logoutURL(ctx context.Context, client *oidc.Client) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return client.LogoutURL(ctx, p.current)
}
