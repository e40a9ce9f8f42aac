package auth

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/account"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/external"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/jwttest"
)

// tokens are those of an issuer.
func tokens(i *jwttest.Issuer) *config.Auth {
	return &config.Auth{Services: external.Services{JWT: external.JWT{
		Issuer: i.URL, Audience: jwttest.Audience, CAFile: i.CAFile, Timeout: time.Minute,
	}}}
}

// verifyToken returns the error of a login with a token. No error has a part of the token.
func verifyToken(t *testing.T, s Source, user, token string) (*config.User, error) {
	t.Helper()
	found, err := s.Authenticate(t.Context(), &Request{Tenant: "acme", User: user, Password: token})
	if err != nil {
		for _, part := range strings.Split(token, ".") {
			if len(part) > 3 && strings.Contains(err.Error(), part) {
				t.Errorf("the error shows the token: %v", err)
			}
		}
	}
	return found, err
}

// A token is a password if the issuer has signed it for the server and the user, and if it is valid now.
func TestTokens(t *testing.T) {
	i := jwttest.New(t)
	source := newSource(t, tokens(i))
	public, err := x509.MarshalPKIXPublicKey(i.Key("rsa").Public())
	if err != nil {
		t.Fatal(err)
	}
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	foreign, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	claims, now := i.Claims("bob", nil), time.Now()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	right := i.Token(t, "bob", nil)
	parts := strings.Split(right, ".")
	with := func(name string, value any) string { return i.Token(t, "bob", map[string]any{name: value}) }
	signed := func(algorithm jose.SignatureAlgorithm, id string) string {
		return jwttest.Sign(t, algorithm, jose.JSONWebKey{Key: i.Key(id), KeyID: id}, claims)
	}
	for name, token := range map[string]string{
		"rs256": right, "ps512": signed(jose.PS512, "rsa"), "es256": signed(jose.ES256, "ec"), "eddsa": signed(jose.EdDSA, "ed"),
		"without-key-id":        jwttest.Sign(t, jose.RS256, i.Key("rsa"), claims),
		"one-of-the-audiences":  with("aud", []string{"other", jwttest.Audience}),
		"expired-within-leeway": with("exp", now.Add(-10*time.Second).Unix()),
		"not-yet-within-leeway": with("nbf", now.Add(10*time.Second).Unix()),
		"valid-for-some-time":   with("nbf", now.Add(-time.Hour).Unix()),
		"long":                  with("padding", strings.Repeat("x", 2500)),
	} {
		if _, err := verifyToken(t, source, "bob", token); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, tc := range map[string]struct{ token, want string }{
		"empty":               {"", "is none"},
		"password":            {"correct horse", "is none"},
		"three-parts":         {"a.b.c", "cannot be read"},
		"nul":                 {"\x00", "is none"},
		"json":                {`{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, "is none"},
		"line-breaks":         {parts[0] + ".\n" + parts[1] + "." + parts[2], "is none"},
		"alg-none":            {encode(`{"alg":"none","typ":"JWT"}`) + "." + parts[1] + ".", "algorithm"},
		"alg-none-signed":     {encode(`{"alg":"none"}`) + "." + parts[1] + "." + parts[2], "algorithm"},
		"alg-NoNe":            {encode(`{"alg":"NoNe"}`) + "." + parts[1] + ".", "algorithm"},
		"no-alg":              {encode(`{"typ":"JWT"}`) + "." + parts[1] + "." + parts[2], "algorithm"},
		"hmac-by-public-key":  {jwttest.Sign(t, jose.HS256, publicPEM, claims), "algorithm"},
		"hmac-by-public-der":  {jwttest.Sign(t, jose.HS256, jose.JSONWebKey{Key: public, KeyID: "rsa"}, claims), "algorithm"},
		"foreign-key":         {jwttest.Sign(t, jose.RS256, jose.JSONWebKey{Key: foreign, KeyID: "rsa"}, claims), "no key"},
		"key-in-the-header":   {jwttest.Sign(t, jose.RS256, jose.JSONWebKey{Key: foreign}, claims), "no key"},
		"changed-claims":      {parts[0] + "." + encode(strings.Replace(string(payload), "bob", "eve", 1)) + "." + parts[2], "no key"},
		"no-signature":        {parts[0] + "." + parts[1] + ".", ""},
		"other-issuer":        {with("iss", "https://id.example"), "issuer or its audience"},
		"no-issuer":           {with("iss", nil), "issuer or its audience"},
		"issuer-with-a-slash": {with("iss", i.URL+"/"), "issuer or its audience"},
		"other-audience":      {with("aud", "other"), "issuer or its audience"},
		"no-audience":         {with("aud", nil), "issuer or its audience"},
		"expired":             {with("exp", now.Add(-leeway-time.Second).Unix()), "expired"},
		"no-expiry":           {with("exp", nil), "no time of expiry"},
		"expiry-as-text":      {with("exp", "tomorrow"), ""},
		"not-yet":             {with("nbf", now.Add(leeway+time.Minute).Unix()), "not valid yet"},
		"not-before-as-text":  {with("nbf", "yesterday"), ""},
		"other-user":          {with("sub", "alice"), "another user"},
		"other-case":          {with("sub", "Bob"), "another user"},
		"no-user":             {with("sub", nil), "another user"},
		"huge":                {strings.Repeat("a", 1<<20), "is none"},
		"deep":                {encode(`{"alg":"RS256"}`) + "." + encode(strings.Repeat("[", 10000)) + "." + parts[2], "no key"},
	} {
		if _, err := verifyToken(t, source, "bob", tc.token); !errors.Is(err, account.ErrLoginRefused) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	narrow := tokens(i)
	narrow.JWT.Algorithms = []external.Algorithm{"ES256"}
	if _, err := verifyToken(t, newSource(t, narrow), "bob", right); !errors.Is(err, account.ErrLoginRefused) {
		t.Errorf("an algorithm that the configuration does not have: %v", err)
	}
}

// Claims choose the settings, and who a user is.
func TestTokenClaims(t *testing.T) {
	i := jwttest.New(t)
	cfg := tokens(i)
	cfg.User = config.User{Root: "/{user}", Home: "/in"}
	cfg.JWT.UserClaim = "email"
	cfg.JWT.Require = map[string]string{"tenant": "acme", "realm_access.scopes": "ftp"}
	cfg.JWT.Claims = external.Attributes{Root: "root", Quota: "quota", Language: "locale", Groups: "https://acme.example/groups"}
	cfg.Groups = map[string][]config.Permission{"staff": {config.Read, config.List}, "none": {}}
	source := newSource(t, cfg)
	claims := func(others map[string]any) map[string]any {
		all := map[string]any{
			"email": "bob@acme.example", "email_verified": true, "tenant": "acme", "realm_access": map[string]any{"scopes": []any{"a", "ftp"}},
			"quota": 1048576, "https://acme.example/groups": []string{"x", "staff"},
		}
		for name, value := range others {
			all[name] = value
		}
		return all
	}
	for name, tc := range map[string]struct {
		others map[string]any
		want   config.User
	}{
		"claims": {nil, config.User{Root: "/bob@acme.example", Home: "/in", Quota: value.MiB, Permissions: []config.Permission{config.List, config.Read}}},
		"root":   {map[string]any{"root": "/b", "quota": "2KiB", "locale": "ja"}, config.User{Root: "/b", Home: "/in", Quota: 2 * value.KiB, Language: language.Japanese, Permissions: []config.Permission{config.List, config.Read}}},
		"group-without-permissions": {map[string]any{"https://acme.example/groups": "none", "email_verified": "true"}, config.User{
			Root: "/bob@acme.example", Home: "/in", Quota: value.MiB, Permissions: []config.Permission{},
		}},
	} {
		if got, err := verifyToken(t, source, "bob@acme.example", i.Token(t, "1", claims(tc.others))); err != nil || !reflect.DeepEqual(got, &tc.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, tc := range map[string]struct {
		others map[string]any
		want   string
	}{
		"other-tenant":        {map[string]any{"tenant": "umbrella"}, "required"},
		"no-tenant":           {map[string]any{"tenant": nil}, "required"},
		"other-scope":         {map[string]any{"realm_access": "ftp"}, "required"},
		"no-group":            {map[string]any{"https://acme.example/groups": nil}, "none of the groups"},
		"address-not-checked": {map[string]any{"email_verified": false}, "not verified"},
		"address-as-text":     {map[string]any{"email_verified": "false"}, "not verified"},
		"address-unknown":     {map[string]any{"email_verified": nil}, "not verified"},
		"address-and-no-text": {map[string]any{"email_verified": []any{}}, "not verified"},
		"address-both":        {map[string]any{"email_verified": []any{true, false}}, "not verified"},
		"address-number":      {map[string]any{"email_verified": 1}, "not verified"},
		"two-addresses":       {map[string]any{"email": []string{"bob@acme.example", "eve@acme.example"}}, "another user"},
	} {
		if _, err := verifyToken(t, source, "bob@acme.example", i.Token(t, "1", claims(tc.others))); !errors.Is(err, account.ErrLoginRefused) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := verifyToken(t, source, "bob@acme.example", i.Token(t, "1", claims(map[string]any{"root": "relative"}))); err == nil || errors.Is(err, account.ErrLoginRefused) {
		t.Errorf("settings that are not valid: %v", err)
	}
	trusting := tokens(i)
	trusting.JWT.UserClaim, trusting.JWT.AllowUnverifiedEmail = "email", true
	for _, verified := range []any{nil, false, true} {
		token := i.Token(t, "1", map[string]any{"email": "bob@acme.example", "email_verified": verified})
		if _, err := verifyToken(t, newSource(t, trusting), "bob@acme.example", token); err != nil {
			t.Errorf("unverified addresses are allowed, and email_verified is %v: %v", verified, err)
		}
	}
	// A claim that is there and says nothing does not give what counts without the claim.
	plain := tokens(i)
	plain.JWT.Claims = external.Attributes{Root: "root", Permissions: "permissions"}
	for name, tc := range map[string]struct {
		claim string
		value any
		want  string
	}{
		"no-permissions":     {"permissions", []string{}, "there are none"},
		"permissions-object": {"permissions", map[string]any{"read": true}, "there are none"},
		"empty-root":         {"root", "", "root is there without a root"},
		"no-root":            {"root", []string{}, "root is there without a root"},
		"root-object":        {"root", map[string]any{"path": "/b"}, "root is there without a root"},
		"null":               {"root", json.RawMessage("null"), ""},
	} {
		_, err := verifyToken(t, newSource(t, plain), "bob", i.Token(t, "bob", map[string]any{tc.claim: tc.value}))
		if (err == nil) != (tc.want == "") || err != nil && (errors.Is(err, account.ErrLoginRefused) || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	// The name of a user is no way into the objects of the server itself.
	own := tokens(i)
	own.User.Root = "/{user}"
	if _, err := verifyToken(t, newSource(t, own), ".babelftp", i.Token(t, ".babelftp", nil)); !errors.Is(err, account.ErrLoginRefused) {
		t.Errorf("a root that is reserved, by the name: %v", err)
	}
	if _, err := verifyToken(t, newSource(t, plain), "bob", i.Token(t, "bob", map[string]any{"root": "/a/.babelftp/uploads"})); err == nil ||
		!strings.Contains(err.Error(), "keeps its own objects") {
		t.Errorf("a root that is reserved: %v", err)
	}
	chooser := source.(Chooser)
	for token, want := range map[string]bool{
		i.Token(t, "1", claims(nil)): true, i.Token(t, "1", claims(map[string]any{"tenant": "umbrella"})): false,
		i.Token(t, "1", claims(map[string]any{"aud": "x"})): false, "a.b.c": false, "a.e30.c": false, "": false, "a.bnVsbA.c": false,
	} {
		if chooser.IsAddressee(token) != want {
			t.Errorf("%s is addressed: %v", token, !want)
		}
	}
}

// The keys of the issuer count on while it is down, and it can replace them.
func TestKeysOfTheIssuer(t *testing.T) {
	i := jwttest.New(t)
	s := newSource(t, tokens(i))
	keys := s.(*issuer).keys.(*remoteKeys)
	now := time.Now()
	keys.now = func() time.Time { return now }
	old := i.Token(t, "bob", nil)
	down := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "a long page", http.StatusBadGateway) }
	rotated := func() string {
		return jwttest.Sign(t, jose.ES256, jose.JSONWebKey{Key: i.Key("ec-2"), KeyID: "ec-2"}, i.Claims("bob", nil))
	}
	var next string
	for _, step := range []struct {
		name     string
		before   func()
		token    *string
		result   string // accepted, refused or undecided
		requests int
	}{
		{"down-before-the-first", func() { i.SetAnswer(down) }, &old, "undecided", 1},
		{"first", func() { i.SetAnswer(nil) }, &old, "accepted", 2},
		{"again", func() {}, &old, "accepted", 0},
		{"down", func() { i.SetAnswer(down) }, &old, "accepted", 0},
		{"down-and-old", func() { now = now.Add(maxKeyAge) }, &old, "accepted", 1},
		{"down-and-just-asked", func() {}, &old, "accepted", 0},
		{"down-and-unknown", func() { i.Rotate(t, "-2"); next = rotated() }, &next, "undecided", 1},
		{"rotated", func() { i.SetAnswer(nil) }, &next, "accepted", 1},
		{"withdrawn", func() {}, &old, "refused", 1},
		{"old", func() { now = now.Add(maxKeyAge) }, &next, "accepted", 2},
	} {
		step.before()
		before := i.Requests()
		_, err := verifyToken(t, s, "bob", *step.token)
		// For a moment after a request go-oidc gives its result again, to those that came meanwhile.
		for end := time.Now().Add(time.Minute); step.requests > 0 && i.Requests() == before && time.Now().Before(end); {
			_, err = verifyToken(t, s, "bob", *step.token)
		}
		result := "undecided"
		switch {
		case err == nil:
			result = "accepted"
		case errors.Is(err, account.ErrLoginRefused):
			result = "refused"
		case strings.Contains(err.Error(), "long page"):
			t.Errorf("%s: the error shows the answer: %v", step.name, err)
		}
		if asked := i.Requests() - before; result != step.result || asked != step.requests {
			t.Errorf("%s: %s (%v) after %d requests, want %s after %d", step.name, result, err, asked, step.result, step.requests)
		}
	}
}

// Keys come by TLS from a known authority, or from a file.
func TestWhereKeysComeFrom(t *testing.T) {
	i := jwttest.New(t)
	file := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(file, i.Keys(), 0o600); err != nil {
		t.Fatal(err)
	}
	token := i.Token(t, "bob", nil)
	answer := func(text string) func(*external.JWT) {
		return func(*external.JWT) {
			i.SetAnswer(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
		}
	}
	for name, tc := range map[string]struct {
		change func(*external.JWT)
		want   string
	}{
		"discovery":        {func(*external.JWT) {}, ""},
		"url":              {func(j *external.JWT) { j.JWKSURL = i.URL + "/keys" }, ""},
		"file":             {func(j *external.JWT) { j.JWKSFile, j.CAFile = file, "" }, ""},
		"authority":        {func(j *external.JWT) { j.CAFile = "" }, "certificate"},
		"authority-file":   {func(j *external.JWT) { j.CAFile = "none.pem" }, "none.pem"},
		"no-file":          {func(j *external.JWT) { j.JWKSFile = "none.json" }, "none.json"},
		"missing":          {func(j *external.JWT) { j.JWKSURL = i.URL + "/none" }, "answered 404"},
		"in-the-clear":     {func(j *external.JWT) { j.JWKSURL = "http://127.0.0.1:1/keys" }, "not https"},
		"closed":           {func(j *external.JWT) { j.JWKSURL = "https://127.0.0.1:1/keys" }, "refused"},
		"clear-discovery":  {answer(`{"issuer": "` + i.URL + `", "jwks_uri": "http://127.0.0.1:1/keys"}`), "not https"},
		"another-issuer":   {answer(`{"issuer": "https://id.example", "jwks_uri": "https://id.example"}`), "did not match"},
		"page":             {answer("<html>"), "no JSON"},
		"symmetric-key":    {answer(`{"issuer": "` + i.URL + `", "jwks_uri": "` + i.URL + `", "keys": [{"kty": "oct", "kid": "rsa", "k": "AAAA"}]}`), "no key"},
		"no-keys":          {answer(`{"issuer": "` + i.URL + `", "jwks_uri": "` + i.URL + `"}`), "no key"},
		"keys-of-nothing":  {answer(`{"issuer": "` + i.URL + `", "jwks_uri": "` + i.URL + `", "keys": 1}`), "no JSON"},
		"without-jwks-uri": {answer(`{"issuer": "` + i.URL + `"}`), "not https"},
		"endless":          {answer(`{"issuer": "` + strings.Repeat(" ", 2<<20)), "no JSON"},
		"redirect": {func(*external.JWT) {
			i.SetAnswer(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) })
		}, "answered 302"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := tokens(i)
			tc.change(&cfg.JWT)
			source, err := New(cfg)
			if err == nil {
				_, err = verifyToken(t, source, "bob", token)
			}
			i.SetAnswer(nil)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
			if refused := errors.Is(err, account.ErrLoginRefused); refused != (tc.want == "no key") {
				t.Errorf("refused: %v: %v", refused, err)
			}
		})
	}
}
