package external

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// JWT are signed tokens (RFC 7519) of an issuer, such as ID tokens of OpenID Connect, which users send as their password.
type JWT struct {
	// Issuer of the tokens, their claim `iss`. Without keys below, the server finds its keys by OpenID Connect Discovery.
	Issuer string `yaml:"issuer" default:"none" since:"0.2.0"`
	// Whom the tokens are for: a value of their claim `aud`.
	Audience string `yaml:"audience" default:"required with issuer" since:"0.2.0"`
	// URL of the keys of the issuer (RFC 7517), `https://`.
	JWKSURL string `yaml:"jwks_url" default:"that of the discovery" since:"0.2.0"`
	// File with the keys of the issuer (RFC 7517), in place of a URL. The server reads it again when it changes.
	JWKSFile string `yaml:"jwks_file" default:"none" since:"0.2.0"`
	// PEM file of the authorities that the certificate of the issuer may come from.
	CAFile string `yaml:"ca_file" default:"those of the system" since:"0.2.0"`
	// How long the issuer may take to answer.
	Timeout time.Duration `yaml:"timeout" default:"5s" since:"0.2.0"`
	// How tokens may be signed.
	Algorithms []Algorithm `yaml:"algorithms" default:"all" since:"0.2.0"`
	// Claim that has the name of the user, such as `email` or `preferred_username`. The client must write it letter by letter.
	UserClaim string `yaml:"user_claim" default:"sub" since:"0.2.0"`
	// With `user_claim: email`, take addresses of which the issuer does not say that it has verified them (`email_verified: true`). Write it only
	// where users of the issuer cannot choose their address.
	AllowUnverifiedEmail bool `yaml:"allow_unverified_email" default:"false" since:"0.2.0"`
	// Values that claims of the tokens must have, by claim, like `{tenant: acme}`.
	Require map[string]string `yaml:"require" default:"none" since:"0.2.0"`
	// Claims that have settings of the user.
	Claims Attributes `yaml:"claims" since:"0.2.0"`
}

// An Algorithm signs tokens (RFC 7518 3.1, RFC 8037 3.1). All of them have a private key that only the issuer knows.
type Algorithm string

// Values implements [yamlconf.Enum].
func (Algorithm) Values() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
}

// TimeoutOf is how long the issuer may take to answer.
func (j *JWT) TimeoutOf() time.Duration { return cmp.Or(j.Timeout, defaultTimeout) }

// UserClaimOf is the claim that has the name of the user.
func (j *JWT) UserClaimOf() string { return cmp.Or(j.UserClaim, "sub") }

const emailClaim = "email"

// NeedsVerifiedEmail reports whether the name of the user is an address that the issuer must have verified.
func (j *JWT) NeedsVerifiedEmail() bool {
	return j.UserClaimOf() == emailClaim && !j.AllowUnverifiedEmail
}

// AlgorithmsOf are the names of the algorithms by which tokens may be signed.
func (j *JWT) AlgorithmsOf() []string {
	if len(j.Algorithms) > 0 {
		return yamlconf.EnumValues(j.Algorithms...)
	}
	return Algorithm("").Values()
}

func (j *JWT) check(p yamlconf.Path, report yamlconf.Report) {
	const like = "write it like https://id.example.com, without credentials"
	switch {
	case j.Issuer == "":
		report(p.Child("issuer"), "is missing: write what the tokens have as iss")
	case j.JWKSURL == "" && j.JWKSFile == "" && !isURL(j.Issuer, "https"):
		report(p.Child("issuer"), "is no https URL at which the server could find the keys: %s, or write jwks_url or jwks_file", like)
	}
	if j.Audience == "" {
		report(p.Child("audience"), "is missing: without it, tokens that are for other services would be passwords")
	}
	if j.AllowUnverifiedEmail && j.UserClaim != emailClaim {
		report(p.Child("allow_unverified_email"), "says nothing about the claim %s: remove it, or write user_claim: email", j.UserClaimOf())
	}
	switch {
	case j.JWKSURL != "" && j.JWKSFile != "":
		report(p.Child("jwks_file"), "is one source of keys too many: keep jwks_url or jwks_file")
	case j.JWKSURL != "" && !isURL(j.JWKSURL, "https"):
		report(p.Child("jwks_url"), "is no https URL: %s", like)
	case j.JWKSFile != "":
		if _, err := PublicKeys(j.JWKSFile); err != nil {
			report(p.Child("jwks_file"), "%v", err)
		}
	}
	authorities(p, j.CAFile, report)
}

// PublicKeys reads the keys in a file (RFC 7517 5). A key that signs, or one that both sides share, is an error.
func PublicKeys(name string) ([]crypto.PublicKey, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, yamlconf.WithoutPath(err))
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(text, &set); err != nil || len(set.Keys) == 0 {
		return nil, fmt.Errorf("%s has no keys: write a JSON Web Key Set (RFC 7517, section 5)", name)
	}
	var keys []crypto.PublicKey
	for i, key := range set.Keys {
		switch key.Key.(type) {
		case *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey:
			keys = append(keys, key.Key)
		default:
			return nil, fmt.Errorf("key %d in %s is no public one of RSA, EC or Ed25519: remove it", i+1, name)
		}
	}
	return keys, nil
}
