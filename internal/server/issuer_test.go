package server

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

// audience is the audience of the tokens.
const audience = "babelftp"

const rsaBits = 2048

// A tokenIssuer signs tokens with an RSA key, and has OpenID Connect Discovery under TLS.
type tokenIssuer struct {
	*httptest.Server
	CAFile string

	key jose.JSONWebKey
}

func newTokenIssuer(t *testing.T) *tokenIssuer {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, rsaBits)
	if err != nil {
		t.Fatal(err)
	}
	i := &tokenIssuer{key: jose.JSONWebKey{Key: private, KeyID: "rsa", Use: "sig"}}
	i.Server = httptest.NewTLSServer(http.HandlerFunc(i.serve))
	t.Cleanup(i.Close)
	i.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})
	if err := os.WriteFile(i.CAFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return i
}

func (i *tokenIssuer) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
	case "/keys":
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{i.key.Public()}})
	default:
		http.NotFound(w, r)
	}
}

// token is for a user and good for an hour, with more claims or others.
func (i *tokenIssuer) token(t *testing.T, user string, others map[string]any) string {
	t.Helper()
	now := time.Now()
	claims := map[string]any{"iss": i.URL, "aud": audience, "sub": user, "iat": now.Unix(),
		"exp": now.Add(time.Hour).Unix()}
	maps.Copy(claims, others)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: i.key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}
