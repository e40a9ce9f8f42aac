// Package jwttest is an issuer of tokens for tests: OpenID Connect Discovery and keys under TLS, and tokens that it signs.
package jwttest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Audience is whom the tokens are for.
const Audience = "babelftp"

const rsaBits = 2048

// An Issuer signs tokens.
type Issuer struct {
	*httptest.Server
	CAFile string

	mu       sync.Mutex
	keys     []key
	requests int
	answer   http.HandlerFunc // in place of the keys, if it is not nil
}

type key struct {
	id     string
	signer crypto.Signer
}

// New starts an issuer with an RSA, an EC and an Ed25519 key: "rsa", "ec" and "ed".
func New(tb testing.TB) *Issuer {
	tb.Helper()
	i := &Issuer{}
	i.Server = httptest.NewTLSServer(http.HandlerFunc(i.serve))
	tb.Cleanup(i.Close)
	i.CAFile = filepath.Join(tb.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})
	if err := os.WriteFile(i.CAFile, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	i.Rotate(tb, "")
	return i
}

// Rotate replaces the keys. The identifiers of the new ones end with a suffix.
func (i *Issuer) Rotate(tb testing.TB, suffix string) {
	tb.Helper()
	r, errRSA := rsa.GenerateKey(rand.Reader, rsaBits)
	e, errEC := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, ed, errEd := ed25519.GenerateKey(rand.Reader)
	if errRSA != nil || errEC != nil || errEd != nil {
		tb.Fatal(errRSA, errEC, errEd)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = []key{{"rsa" + suffix, r}, {"ec" + suffix, e}, {"ed" + suffix, ed}}
}

// Keep removes all keys but one. Some programs read no set that has a key of a kind they do not know.
func (i *Issuer) Keep(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = slices.DeleteFunc(i.keys, func(k key) bool { return k.id != id })
}

// Requests is how many requests have come.
func (i *Issuer) Requests() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.requests
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.requests++
	answer := i.answer
	i.mu.Unlock()
	switch {
	case answer != nil:
		answer(w, r)
	case r.URL.Path == "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
	case r.URL.Path == "/keys":
		_, _ = w.Write(i.Keys())
	default:
		http.NotFound(w, r)
	}
}

// Keys are the public keys as a JSON Web Key Set.
func (i *Issuer) Keys() []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	var set jose.JSONWebKeySet
	for _, k := range i.keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.signer.Public(), KeyID: k.id, Use: "sig"})
	}
	text, _ := json.Marshal(set) // of keys that were just made
	return text
}

// SetAnswer makes the issuer answer all requests so; nil ends that.
func (i *Issuer) SetAnswer(answer http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = answer
}

// Key is the private key with an identifier.
func (i *Issuer) Key(id string) crypto.Signer {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, k := range i.keys {
		if k.id == id {
			return k.signer
		}
	}
	return nil
}

// Claims are those of a user, which are good for an hour, with more of them or others.
func (i *Issuer) Claims(user string, others map[string]any) map[string]any {
	now := time.Now()
	claims := map[string]any{"iss": i.URL, "aud": Audience, "sub": user, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	for name, value := range others {
		claims[name] = value
		if value == nil {
			delete(claims, name)
		}
	}
	return claims
}

// Token is signed by the RSA key.
func (i *Issuer) Token(tb testing.TB, user string, others map[string]any) string {
	tb.Helper()
	return Sign(tb, jose.RS256, jose.JSONWebKey{Key: i.Key("rsa"), KeyID: "rsa"}, i.Claims(user, others))
}

// Sign signs claims with any key.
func Sign(tb testing.TB, algorithm jose.SignatureAlgorithm, key any, claims map[string]any) string {
	tb.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, nil)
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
