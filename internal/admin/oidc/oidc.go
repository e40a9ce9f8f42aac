// Package oidc logs administrators in at an OpenID Connect provider, with the authorization code flow and PKCE (OpenID
// Connect Core 1.0; RFC 7636; RFC 9207 for the issuer in responses; RP-Initiated Logout 1.0).
//
// A [Client] reads the configuration of the provider when it is first needed, so the server starts while the provider
// is down. Only signatures with public keys are accepted.
package oidc

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/config"
)

const (
	// timeout limits a login or a check at the provider, including all its requests.
	timeout = 10 * time.Second
	// maxResponse limits the size of a response of the provider.
	maxResponse = 1 << 20
	// discoveryLasts is the time after which the configuration of the provider is read again.
	discoveryLasts = time.Hour
	// retryAfter is the time between two attempts to read the configuration of the provider.
	retryAfter = 3 * time.Second
	// clockSkew is the tolerated difference between the clocks of the provider and this server.
	clockSkew = time.Minute
)

// CallbackPath is the path of the redirect URI, relative to the address of the page.
const CallbackPath = "/login/oidc/callback"

// ErrUnavailable is the error if the provider cannot be reached or reports an internal error.
var ErrUnavailable = errors.New("the OpenID Connect provider is unavailable")

// A Client logs administrators in at a provider. Its methods are safe for concurrent use.
type Client struct {
	cfg         config.OIDC
	authorities *x509.CertPool // nil for the authorities of the system
	http        *http.Client
	retryAfter  time.Duration

	mu       sync.Mutex
	provider *provider // nil until the configuration of the provider has been read
	tried    time.Time // when the last attempt began
	err      error     // of the last attempt
}

// A provider is the configuration of a provider.
type provider struct {
	*oidc.Provider
	metadata
	read   time.Time
	oauth  oauth2.Config // without a redirect URI
	keys   oidc.KeySet
	verify oidc.Config
}

// metadata has the values of OpenID Provider Metadata that package oidc does not.
type metadata struct {
	KeysURL         string   `json:"jwks_uri"`
	ScopesOffered   []string `json:"scopes_supported"`
	Algorithms      []string `json:"id_token_signing_alg_values_supported"`
	AuthMethods     []string `json:"token_endpoint_auth_methods_supported"`
	Challenges      []string `json:"code_challenge_methods_supported"`
	EndSession      string   `json:"end_session_endpoint"`
	IssuerInReplies bool     `json:"authorization_response_iss_parameter_supported"`
}

// New returns a client. It sends no request.
func New(cfg config.OIDC) (*Client, error) {
	authorities, err := config.Trusted(cfg.CAFile)
	if err != nil {
		return nil, err
	}
	client := web.NewClient(&http.Transport{
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities},
		ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute,
	}, timeout)
	client.Transport = limited{client.Transport}
	return &Client{cfg: cfg, authorities: authorities, http: client, retryAfter: retryAfter}, nil
}

// Equal reports whether c and other have the same configuration. Both may be nil.
func (c *Client) Equal(other *Client) bool {
	if c == nil || other == nil {
		return c == other
	}
	return reflect.DeepEqual(c.cfg, other.cfg) && c.authorities.Equal(other.authorities)
}

// ID identifies this client among all clients of all providers.
func (c *Client) ID() string { return c.cfg.ClientID + " " + c.cfg.Issuer }

// Name returns the name of the provider for the login button.
func (c *Client) Name() string {
	u, err := url.Parse(c.cfg.Issuer)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// Address returns the address of the page in browsers, or "" if it is not configured.
func (c *Client) Address() string { return strings.TrimSuffix(c.cfg.URL, "/") }

// A limited transport limits the size of responses. It returns [ErrUnavailable] if the provider cannot be reached or
// reports an internal error.
type limited struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests {
		_ = response.Body.Close()
		return nil, fmt.Errorf("%w: %s responded with %s", ErrUnavailable, r.URL.Host, response.Status)
	}
	response.Body = http.MaxBytesReader(nil, response.Body, maxResponse)
	return response, nil
}

// discover returns the configuration of the provider. If it is old, a new one is read in the background, and the old
// one is kept as long as that fails.
func (c *Client) discover(ctx context.Context) (*provider, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	due := now.Sub(c.tried) >= c.retryAfter
	switch {
	case c.provider == nil && due:
		c.tried = now
		c.provider, c.err = c.read(ctx)
	case c.provider != nil && due && now.Sub(c.provider.read) >= discoveryLasts:
		c.tried = now
		panics.Go(func() {
			if p, err := c.read(ctx); err == nil {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.provider = p
			}
		})
	}
	if c.provider == nil {
		return nil, c.err
	}
	return c.provider, nil
}

// read reads the configuration of the provider.
func (c *Client) read(ctx context.Context) (*provider, error) {
	// A client that disconnects must not make the attempt fail for all others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	ctx = oidc.ClientContext(ctx, c.http)
	found, err := oidc.NewProvider(ctx, c.cfg.Issuer)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration of %s: %w", c.cfg.Issuer, web.WithoutURL(err))
	}
	p := &provider{Provider: found, read: time.Now()}
	if err := found.Claims(&p.metadata); err != nil {
		return nil, fmt.Errorf("invalid configuration of %s: %w", c.cfg.Issuer, err)
	}
	endpoint := found.Endpoint()
	for key, address := range map[string]string{
		"authorization_endpoint": endpoint.AuthURL, "token_endpoint": endpoint.TokenURL, "jwks_uri": p.KeysURL,
		"userinfo_endpoint":    cmp.Or(found.UserInfoEndpoint(), c.cfg.Issuer),
		"end_session_endpoint": cmp.Or(p.EndSession, c.cfg.Issuer),
	} {
		if !config.IsSecureURL(address) {
			return nil, fmt.Errorf("invalid configuration of %s: %s %q is not an https URL", c.cfg.Issuer, key, address)
		}
	}
	endpoint.AuthStyle = oauth2.AuthStyleInParams
	if !c.cfg.ClientSecret.Empty() && (p.AuthMethods == nil || slices.Contains(p.AuthMethods, "client_secret_basic")) {
		endpoint.AuthStyle = oauth2.AuthStyleInHeader
	}
	p.oauth = oauth2.Config{
		ClientID: c.cfg.ClientID, ClientSecret: c.cfg.ClientSecret.Reveal(), Endpoint: endpoint, Scopes: c.scopes(p),
	}
	p.keys = oidc.NewRemoteKeySet(ctx, p.KeysURL)
	p.verify = oidc.Config{
		ClientID: c.cfg.ClientID, SupportedSigningAlgs: algorithms(p.Algorithms),
		Now: func() time.Time { return time.Now().Add(-clockSkew) }, // tokens may not be valid yet for five minutes
	}
	return p, nil
}

// scopes returns the scopes to request. Most providers send a refresh token only with the scope offline_access, some
// send groups only with the scope groups, and some refuse a scope that they do not list.
func (c *Client) scopes(p *provider) []string {
	if c.cfg.Scopes != nil {
		return c.cfg.Scopes
	}
	scopes := []string{oidc.ScopeOpenID, "profile", "email"}
	for _, more := range []string{"groups", oidc.ScopeOfflineAccess} {
		if slices.Contains(p.ScopesOffered, more) {
			scopes = append(scopes, more)
		}
	}
	return scopes
}

// algorithms returns the signature algorithms of the provider that use a public key. With the others, the client secret
// or nothing at all would be the key.
func algorithms(offered []string) []string {
	public := []string{
		oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512,
		oidc.EdDSA,
	}
	used := slices.DeleteFunc(public, func(a string) bool { return !slices.Contains(offered, a) })
	if len(used) == 0 {
		return []string{oidc.RS256} // which each provider must support
	}
	return used
}

// An Attempt is one login in one browser. Its values must reach the callback without the browser reading or changing
// them.
type Attempt struct {
	Redirect string // the redirect URI
	State    string // returned by the provider in the URL of the callback
	Nonce    string // returned by the provider in the ID token
	Verifier string // PKCE code verifier
}

// LoginURL returns the URL at which the provider asks a person to log in.
func (c *Client) LoginURL(ctx context.Context, a *Attempt) (string, error) {
	p, err := c.discover(ctx)
	if err != nil {
		return "", err
	}
	with := p.oauth
	with.RedirectURL = a.Redirect
	return with.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), nil
}

// LogoutURL returns the URL that ends the login at the provider, or "" if the provider has none.
func (c *Client) LogoutURL(ctx context.Context, id *Identity) string {
	p, err := c.discover(ctx)
	if err != nil || p.EndSession == "" {
		return ""
	}
	u, err := url.Parse(p.EndSession)
	if err != nil {
		return ""
	}
	query := u.Query()
	query.Set("id_token_hint", id.IDToken)
	query.Set("client_id", c.cfg.ClientID)
	u.RawQuery = query.Encode()
	return u.String()
}

// Finish exchanges the code of a callback for the identity of the administrator.
func (c *Client) Finish(ctx context.Context, a *Attempt, callback url.Values) (*Identity, error) {
	p, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	issuer := callback.Get("iss")
	if issuer != "" && issuer != c.cfg.Issuer || issuer == "" && p.IssuerInReplies {
		return nil, fmt.Errorf("the callback has the issuer %q, want %q", clip(issuer), c.cfg.Issuer)
	}
	switch code := callback.Get("error"); code {
	case "":
	case "temporarily_unavailable", "server_error":
		return nil, fmt.Errorf("%w: it sent %s %s", ErrUnavailable, code, clip(callback.Get("error_description")))
	default:
		return nil, &RefusedError{clip(code), clip(callback.Get("error_description"))}
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, c.http), timeout)
	defer cancel()
	with := p.oauth
	with.RedirectURL = a.Redirect
	token, err := with.Exchange(ctx, callback.Get("code"), oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return nil, fmt.Errorf("cannot exchange the code: %w", short(err))
	}
	return c.identity(ctx, p, token, func(id *oidc.IDToken) error {
		if id == nil {
			return errors.New("the response has no ID token")
		}
		if id.Nonce != a.Nonce {
			return errors.New("the nonce of the ID token is wrong")
		}
		return nil
	})
}

// Refresh asks the provider whether a login is still valid, and returns its current name and groups.
func (c *Client) Refresh(ctx context.Context, before *Identity) (*Identity, error) {
	p, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	// The provider may replace the refresh token, so the response must not be lost when a browser disconnects.
	ctx, cancel := context.WithTimeout(oidc.ClientContext(context.WithoutCancel(ctx), c.http), timeout)
	defer cancel()
	token, err := p.oauth.TokenSource(ctx, &oauth2.Token{RefreshToken: before.RefreshToken}).Token()
	if err != nil {
		return nil, fmt.Errorf("cannot refresh the login: %w", short(err))
	}
	now, err := c.identity(ctx, p, token, func(id *oidc.IDToken) error {
		if id != nil && id.Subject != before.Subject {
			return errors.New("the ID token belongs to somebody else")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if now.Subject != before.Subject {
		return nil, errors.New("the response of the userinfo endpoint belongs to somebody else")
	}
	now.IDToken = cmp.Or(now.IDToken, before.IDToken)
	return now, nil
}

// Probe reads the configuration of the provider and describes it.
func (c *Client) Probe(ctx context.Context) (string, error) {
	p, err := c.discover(ctx)
	if err != nil {
		return "", err
	}
	yes := map[bool]string{false: "no", true: "yes"}
	return fmt.Sprintf("%s: scopes %s; ID tokens signed with %s; PKCE with S256: %s; userinfo: %s; logout at the provider: %s; "+
		"redirect URI: %s", c.cfg.Issuer, strings.Join(p.oauth.Scopes, " "), strings.Join(p.verify.SupportedSigningAlgs, " "),
		yes[slices.Contains(p.Challenges, "S256")], yes[p.UserInfoEndpoint() != ""], yes[p.EndSession != ""],
		cmp.Or(c.Address(), "http://localhost:PORT")+CallbackPath), nil
}

// A RefusedError is an error code that the provider sent to the callback.
type RefusedError struct{ Code, Description string }

// Error implements error.
func (e *RefusedError) Error() string {
	return "the provider refused the login: " + e.Code + " " + e.Description
}

// Denied reports whether the person or the provider declined the login.
func (e *RefusedError) Denied() bool { return e.Code == "access_denied" }

// maxText limits texts of the provider and of browsers in error messages.
const maxText = 300

func clip(text string) string { return text[:min(len(text), maxText)] }

// short limits the length of an error from the token endpoint, which contains the whole response.
func short(err error) error {
	of, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return web.WithoutURL(err)
	}
	return fmt.Errorf("%s: %s", of.Response.Status, clip(cmp.Or(of.ErrorCode+" "+of.ErrorDescription, string(of.Body))))
}

// keySet checks signatures and keeps the error, whose cause is lost in the error of the verifier.
type keySet struct {
	oidc.KeySet
	err error
}

// VerifySignature implements [oidc.KeySet].
func (k *keySet) VerifySignature(ctx context.Context, token string) (payload []byte, err error) {
	payload, k.err = k.KeySet.VerifySignature(ctx, token)
	return payload, k.err
}

// idToken verifies an ID token.
func (p *provider) idToken(ctx context.Context, issuer, raw string) (*oidc.IDToken, error) {
	keys := &keySet{KeySet: p.keys}
	id, err := oidc.NewVerifier(issuer, keys, &p.verify).Verify(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("invalid ID token: %w", cmp.Or(keys.err, err))
	}
	return id, nil
}
