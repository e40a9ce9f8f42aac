package auth

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/babelftp/babelftp/internal/account"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/encryption"
	"github.com/babelftp/babelftp/internal/config/external"
)

const (
	// leeway is how much the clocks of the issuer and of the server may differ.
	leeway = 30 * time.Second
	// maxKeyAge is how long a key that the issuer has withdrawn still counts.
	maxKeyAge = time.Hour
	// retryKeys is when the server asks again for keys that an issuer did not give.
	retryKeys = time.Minute
)

// An issuer signs tokens, which users send as their password.
type issuer struct {
	template
	cfg  *external.JWT
	keys oidc.KeySet
	now  func() time.Time
}

func newIssuer(cfg *config.Auth) (*issuer, error) {
	i := &issuer{
		template: template{source: "token", user: cfg.User, groups: cfg.Groups, names: cfg.JWT.Claims},
		cfg:      &cfg.JWT, now: time.Now,
	}
	if i.cfg.JWKSFile != "" {
		keys, err := external.PublicKeys(i.cfg.JWKSFile)
		if err != nil {
			return nil, fmt.Errorf("keys of the issuer: %w", err)
		}
		i.keys = &oidc.StaticKeySet{PublicKeys: keys}
		return i, nil
	}
	authorities, err := encryption.Authorities(i.cfg.CAFile)
	if err != nil {
		return nil, fmt.Errorf("authorities of the issuer: %w", err)
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}, ForceAttemptHTTP2: true,
		IdleConnTimeout: idleTime,
	}
	i.keys = &remoteKeys{
		issuer: i.cfg.Issuer, url: i.cfg.JWKSURL, now: time.Now,
		client: &http.Client{Transport: secureTransport{transport}, Timeout: i.cfg.TimeoutOf()},
	}
	return i, nil
}

// Authenticate implements [Source]. No error has a part of the token.
func (i *issuer) Authenticate(ctx context.Context, req *Request) (*config.User, error) {
	if !isCompact(req.Password) {
		return nil, refusedToken("it is none")
	}
	ctx, cancel := context.WithTimeout(ctx, i.cfg.TimeoutOf())
	defer cancel()
	keys := &observedKeys{KeySet: i.keys}
	token, err := oidc.NewVerifier(i.cfg.Issuer, keys, &oidc.Config{
		ClientID: i.cfg.Audience, SupportedSigningAlgs: i.cfg.AlgorithmsOf(), SkipExpiryCheck: true, // checkTimes has less leeway
	}).Verify(ctx, req.Password)
	switch {
	case isKeyFailure(keys.err):
		return nil, fmt.Errorf("issuer %s: its keys cannot be read: %w", i.cfg.Issuer, keys.err)
	case keys.err != nil:
		return nil, refusedToken("no key of the issuer has signed it")
	case err != nil && keys.asked:
		return nil, refusedToken("its issuer or its audience is another one")
	case err != nil:
		return nil, refusedToken("its algorithm is not allowed, or it cannot be read")
	}
	claims, err := claimsOf(token)
	if err != nil {
		return nil, refusedToken("its claims cannot be read")
	}
	if reason := i.check(token, claims, req.User); reason != "" {
		return nil, refusedToken(reason)
	}
	return i.settings(req.User, claims.values, func(value, group string) bool { return value == group })
}

// isCompact reports whether a text has the form of a token, which is the compact one (RFC 7519 1): three parts in base64url.
func isCompact(text string) bool {
	return strings.Count(text, ".") == 2 && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '.' && r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

func refusedToken(reason string) error {
	return fmt.Errorf("token: %s: %w", reason, account.ErrLoginRefused)
}

// check says why a token with a right signature is no password of a user, empty if it is one.
func (i *issuer) check(token *oidc.IDToken, claims claims, user string) string {
	now, notBefore := i.now(), time.Time{}
	if n, ok := claims["nbf"].(json.Number); ok {
		seconds, err := n.Float64()
		if err != nil {
			return "its claim nbf is no time"
		}
		notBefore = time.Unix(int64(seconds), 0)
	}
	names := claims.values(i.cfg.UserClaimOf())
	switch {
	case token.Expiry.IsZero():
		return "it has no time of expiry"
	case !now.Before(token.Expiry.Add(leeway)):
		return "it has expired"
	case now.Before(notBefore.Add(-leeway)):
		return "it is not valid yet"
	case len(names) != 1 || config.NormalizeUser(names[0]) != user:
		return "it is for another user"
	// An address of which the issuer does not say that it has verified it may be that of another user (OpenID Connect Core 5.7).
	case i.cfg.NeedsVerifiedEmail() && !slices.Equal(claims.values("email_verified"), []string{"true"}):
		return "its mail address is not verified"
	case !i.meetsRequirements(claims):
		return "its claims are not the required ones"
	}
	return ""
}

func (i *issuer) meetsRequirements(claims claims) bool {
	for name, value := range i.cfg.Require {
		if !slices.Contains(claims.values(name), value) {
			return false
		}
	}
	return true
}

// IsAddressee implements [Chooser]. It verifies nothing.
func (i *issuer) IsAddressee(password string) bool {
	if !isCompact(password) {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(password, ".")[1])
	if err != nil {
		return false
	}
	claims, err := decodeClaims(payload)
	return err == nil && slices.Equal(claims.values("iss"), []string{i.cfg.Issuer}) && slices.Contains(claims.values("aud"), i.cfg.Audience) &&
		i.meetsRequirements(claims)
}

// claims are those of a token, by name.
type claims map[string]any

func claimsOf(token *oidc.IDToken) (claims, error) {
	var payload json.RawMessage
	if err := token.Claims(&payload); err != nil {
		return nil, err
	}
	return decodeClaims(payload)
}

func decodeClaims(payload []byte) (claims, error) {
	var c claims
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.UseNumber()
	return c, decoder.Decode(&c)
}

// values are the texts, numbers and truth values of a claim, or of one in others, like realm_access.roles. They are nil without the claim.
func (c claims) values(name string) []string {
	found, ok := c[name]
	if outer, inner, nested := strings.Cut(name, "."); !ok && nested {
		object, _ := c[outer].(map[string]any)
		return claims(object).values(inner)
	}
	if found == nil {
		return nil
	}
	list, ok := found.([]any)
	if !ok {
		list = []any{found}
	}
	texts := []string{}
	for _, value := range list {
		switch v := value.(type) {
		case string:
			texts = append(texts, v)
		case json.Number, bool:
			texts = append(texts, fmt.Sprint(v))
		}
	}
	return texts
}

// observedKeys notes what came of a verification, which the verifier does not tell.
type observedKeys struct {
	oidc.KeySet
	asked bool
	err   error
}

// VerifySignature implements [oidc.KeySet].
func (k *observedKeys) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, jwt)
	k.asked, k.err = true, err
	return payload, err
}

// A keyFailure means that the keys of an issuer could not be read, so that no signature is right or wrong.
type keyFailure struct{ error }

func (f keyFailure) Unwrap() error { return f.error }

func isKeyFailure(err error) bool {
	_, failed := errors.AsType[keyFailure](err)
	return failed
}

// remoteKeys are those at a URL. They count on while the issuer is down.
type remoteKeys struct {
	issuer, url string // without the second, discovery finds it
	client      *http.Client
	now         func() time.Time

	mu   sync.Mutex
	keys *oidc.RemoteKeySet // nil before the first
	due  time.Time          // when the server asks for keys, whether or not it needs others
}

// VerifySignature implements [oidc.KeySet]. The keys are read again for a signature that none of them has made, and when they are old.
func (k *remoteKeys) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	k.mu.Lock()
	keys, due := k.keys, !k.now().Before(k.due)
	if due {
		k.due = k.now().Add(retryKeys) // the other logins need not wait for the same
	}
	k.mu.Unlock()
	if keys == nil || due {
		payload, err := k.renew(ctx, jwt)
		if keys == nil || !isKeyFailure(err) {
			return payload, err
		}
	}
	return verify(ctx, keys, jwt)
}

// renew verifies a signature with keys that it reads, and keeps these.
func (k *remoteKeys) renew(ctx context.Context, jwt string) ([]byte, error) {
	ctx = oidc.ClientContext(ctx, k.client)
	address := k.url
	if address == "" {
		provider, err := oidc.NewProvider(ctx, k.issuer)
		if err != nil {
			return nil, keyFailure{discoveryError(err)}
		}
		var metadata struct {
			JWKSURL string `json:"jwks_uri"`
		}
		if err := provider.Claims(&metadata); err != nil {
			return nil, keyFailure{err}
		}
		address = metadata.JWKSURL
	}
	keys := oidc.NewRemoteKeySet(ctx, address)
	payload, err := verify(ctx, keys, jwt)
	if !isKeyFailure(err) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.keys, k.due = keys, k.now().Add(maxKeyAge)
	}
	return payload, err
}

// verify tells a failure to read keys from a wrong signature: only the first has a cause.
func verify(ctx context.Context, keys *oidc.RemoteKeySet, jwt string) ([]byte, error) {
	payload, err := keys.VerifySignature(ctx, jwt)
	if cause := errors.Unwrap(err); cause != nil {
		return nil, keyFailure{discoveryError(cause)}
	}
	return payload, err
}

// discoveryError is an error without the answer of the issuer, which may be a long page.
func discoveryError(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	if mismatch, ok := errors.AsType[*oidc.IssuerMismatchError](err); ok {
		return mismatch
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	return errors.New("the answer is no JSON with keys")
}

// maxKeys is more bytes than the keys of an issuer, or its description, have.
const maxKeys = 1 << 20

// A secureTransport makes requests under TLS only, and takes short answers with a body only.
type secureTransport struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t secureTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" {
		return nil, errors.New("the URL of the keys is not https")
	}
	response, err := t.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK { // a redirect too
		_ = response.Body.Close()
		return nil, fmt.Errorf("answered %d", response.StatusCode)
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, maxKeys), response.Body}
	return response, nil
}
