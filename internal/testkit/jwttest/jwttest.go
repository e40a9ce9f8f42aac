// Package jwttest is an issuer of tokens for tests: OpenID Connect Discovery and a key under TLS, and tokens that it
// signs.
package jwttest

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Audience is whom the tokens are for.
const Audience = "babelftp"

const rsaBits = 2048

// An Issuer signs tokens with an RSA key.
type Issuer struct {
	*httptest.Server
	CAFile string

	key jose.JSONWebKey
}

// New starts an issuer.
func New(tb testing.TB) *Issuer {
	tb.Helper()
	private, err := rsa.GenerateKey(rand.Reader, rsaBits)
	if err != nil {
		tb.Fatal(err)
	}
	i := &Issuer{key: jose.JSONWebKey{Key: private, KeyID: "rsa", Use: "sig"}}
	i.Server = httptest.NewTLSServer(http.HandlerFunc(i.serve))
	tb.Cleanup(i.Close)
	i.CAFile = filepath.Join(tb.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})
	if err := os.WriteFile(i.CAFile, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	return i
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
	case "/keys":
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{i.key.Public()}})
	default:
		http.NotFound(w, r)
	}
}

// Token is for a user and good for an hour, with more claims or others.
func (i *Issuer) Token(tb testing.TB, user string, others map[string]any) string {
	tb.Helper()
	now := time.Now()
	claims := map[string]any{"iss": i.URL, "aud": Audience, "sub": user, "iat": now.Unix(),
		"exp": now.Add(time.Hour).Unix()}
	maps.Copy(claims, others)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: i.key}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		tb.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		tb.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		tb.Fatal(err)
	}
	return token
}
