// Package oidctest runs OpenID Connect providers for tests.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// The client of a [Provider].
const (
	ClientID     = "babelftp"
	ClientSecret = "a secret of the client, long enough for HS256"
)

// keyID is the name of the key of a provider.
const keyID = "key"

// Behavior configures a [Provider]. The zero value is a provider that lets nobody in.
type Behavior struct {
	Groups []string // groups of the person who logs in
	Claims map[string]any
	// Tamper changes the claims of an ID token.
	Tamper func(claims map[string]any)
	// Sign returns an ID token instead of one with the signature of the provider.
	Sign func(claims []byte) string
	// Metadata replaces values of the configuration.
	Metadata map[string]any
	// Padding is the size of a useless value in responses of the token endpoint.
	Padding int
	// OnlyUserinfo leaves out the groups in ID tokens.
	OnlyUserinfo bool
	// UserinfoSubject replaces the subject in responses of the userinfo endpoint.
	UserinfoSubject string
	// WithoutRefresh leaves out refresh tokens.
	WithoutRefresh bool
	// Revoked refuses refresh tokens.
	Revoked bool
	// Down responds with 503 to all requests.
	Down bool
}

// A Provider is an OpenID Connect provider without a login form, which tests let misbehave.
type Provider struct {
	URL string
	key *ecdsa.PrivateKey

	mu       sync.Mutex
	behavior Behavior
	grants   map[string]grant // by code and by refresh token
	requests int              // for tokens
}

// A grant is the login to which a code or a refresh token belongs.
type grant struct{ nonce, challenge, redirect string }

// New starts a provider.
func New(t *testing.T, behavior Behavior) *Provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.OK(t, err)
	p := &Provider{key: key, behavior: behavior, grants: map[string]grant{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", p.configuration)
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{
			Key: &p.key.PublicKey, KeyID: keyID, Algorithm: string(jose.ES256), Use: "sig"}}})
	})
	mux.HandleFunc("/authorize", p.authorize)
	mux.HandleFunc("/token", p.token)
	mux.HandleFunc("/userinfo", p.userinfo)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.current().Down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// Change changes the behavior.
func (p *Provider) Change(change func(*Behavior)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.behavior)
}

// Requests returns the number of requests for tokens.
func (p *Provider) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

func (p *Provider) current() Behavior {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.behavior
}

func respond(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (p *Provider) configuration(w http.ResponseWriter, _ *http.Request) {
	metadata := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
		"jwks_uri": p.URL + "/keys", "userinfo_endpoint": p.URL + "/userinfo", "end_session_endpoint": p.URL + "/logout?a=b",
		"id_token_signing_alg_values_supported":          []string{"none", "HS256", "ES256"},
		"scopes_supported":                               []string{"openid", "offline_access"},
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
	}
	maps.Copy(metadata, p.current().Metadata)
	respond(w, http.StatusOK, metadata)
}

// authorize logs a person in at once and returns to the client.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Get("client_id") != ClientID || query.Get("response_type") != "code" ||
		query.Get("code_challenge_method") != "S256" || !slices.Contains(strings.Fields(query.Get("scope")), "openid") {
		http.Error(w, "invalid request", http.StatusBadRequest)
		return
	}
	code := p.grant(grant{query.Get("nonce"), query.Get("code_challenge"), query.Get("redirect_uri")})
	back := url.Values{"code": {code}, "state": {query.Get("state")}, "iss": {p.URL}}
	http.Redirect(w, r, query.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (p *Provider) grant(g grant) string {
	token := rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grants[token] = g
	return token
}

// take returns what a code or a refresh token stands for. Each can be used once.
func (p *Provider) take(token string) (grant, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	g, ok := p.grants[token]
	delete(p.grants, token)
	return g, ok
}

// token exchanges a code or a refresh token.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	secret, _ = url.QueryUnescape(secret)
	if id != ClientID || secret != ClientSecret {
		respond(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	b := p.current()
	refreshing := r.FormValue("grant_type") == "refresh_token"
	token := r.FormValue("code")
	if refreshing {
		token = r.FormValue("refresh_token")
	}
	g, ok := p.take(token)
	if !refreshing {
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		ok = ok && g.redirect == r.FormValue("redirect_uri") &&
			g.challenge == base64.RawURLEncoding.EncodeToString(sum[:])
	}
	if !ok || refreshing && b.Revoked {
		respond(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	response := map[string]any{
		"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 300, "id_token": p.idToken(b, g.nonce),
		"padding": strings.Repeat("x", b.Padding),
	}
	if !b.WithoutRefresh {
		response["refresh_token"] = p.grant(g)
	}
	respond(w, http.StatusOK, response)
}

func (p *Provider) idToken(b Behavior, nonce string) string {
	now := time.Now()
	claims := map[string]any{
		"iss": p.URL, "aud": ClientID, "sub": "4711", "nonce": nonce, "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
		"preferred_username": "ann", "groups": b.Groups,
	}
	maps.Copy(claims, b.Claims)
	if b.OnlyUserinfo {
		delete(claims, "groups")
	}
	if b.Tamper != nil {
		b.Tamper(claims)
	}
	text, _ := json.Marshal(claims) // only texts and numbers
	if b.Sign != nil {
		return b.Sign(text)
	}
	return Sign(jose.ES256, p.key, keyID, text)
}

// Sign returns a JWT.
func Sign(algorithm jose.SignatureAlgorithm, key any, keyID string, claims []byte) string {
	with := jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: keyID}}
	signer, err := jose.NewSigner(with, nil)
	if err != nil {
		return err.Error()
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return err.Error()
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		return err.Error()
	}
	return token
}

func (p *Provider) userinfo(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		respond(w, http.StatusUnauthorized, map[string]string{"error": "invalid_token"})
		return
	}
	b := p.current()
	claims := map[string]any{"sub": "4711", "groups": b.Groups}
	maps.Copy(claims, b.Claims)
	if b.UserinfoSubject != "" {
		claims["sub"] = b.UserinfoSubject
	}
	respond(w, http.StatusOK, claims)
}
