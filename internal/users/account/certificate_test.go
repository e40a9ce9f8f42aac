package account

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/babelftp/babelftp/internal/base/schedule"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// Without the certificate, a cached password must not shorten the login, because the time would reveal that the
// password is right.
func TestPasswordWithoutCertificate(t *testing.T) {
	root := must.NewAuthority(t, "root")
	text, _ := root.Issue(&x509.Certificate{Subject: pkix.Name{CommonName: "alice"}})
	block, _ := pem.Decode([]byte(text))
	cert, err := x509.ParseCertificate(block.Bytes)
	must.OK(t, err)
	var named value.ClientCertificate
	must.OK(t, named.UnmarshalText([]byte("subject:CN=alice")))
	ca := filepath.Join(t.TempDir(), "ca.crt")
	must.WriteFile(t, ca, root.Certificate)
	cfg := config.Default()
	cfg.TLS.ClientCertificates.CAFile = ca
	cfg.Tenants = map[string]*config.Tenant{"acme": {Bucket: "acme-data", Users: map[string]*config.User{
		"alice": {PasswordHash: servicetest.PasswordHash(), Certificates: []value.ClientCertificate{named}},
	}}}
	r := registryOf(t, cfg)
	decide := func(ctx context.Context, shown ...*x509.Certificate) error {
		req := &LoginRequest{User: "alice", Password: password, Certificates: shown}
		_, err := r.decide(ctx, client, r.identify(req), req)
		return err
	}
	must.OK(t, decide(t.Context(), cert))
	if err := decide(t.Context()); !errors.Is(err, ErrCertificate) {
		t.Errorf("without the certificate: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range max(1, runtime.GOMAXPROCS(0)-1) { // occupy all slots, so that a login that hashes has to wait
		slot, err := r.verifier.queue.Acquire(t.Context(), schedule.Key{})
		must.OK(t, err)
		defer slot.Release()
	}
	if err := decide(ended, cert); err != nil {
		t.Errorf("the password was not cached: %v", err)
	}
	if err := decide(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("without the certificate: got error %v, want a hash", err)
	}
}

// Certificates are verified by the same policy for known and unknown users. Otherwise the time of the reply would
// reveal which users exist.
func TestUnknownUsersHaveRules(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.crt")
	must.WriteFile(t, ca, must.NewAuthority(t, "root").Certificate)
	cfg := config.Default()
	cfg.Tenants = map[string]*config.Tenant{
		"acme": {Bucket: "acme-data",
			Users: map[string]*config.User{"alice": {PasswordHash: servicetest.PasswordHash()}}},
		"umbrella": {Bucket: "umbrella-data",
			Users: map[string]*config.User{"bob": {PasswordHash: servicetest.PasswordHash()}}},
	}
	cfg.Tenants["acme"].TLS.ClientCertificates.CAFile = ca
	r := registryOf(t, cfg)
	for _, pair := range [][2]string{{"alice", "nobody"}, {"alice@acme", "nobody@acme"},
		{"bob@umbrella", "nobody@umbrella"}} {
		known, unknown := r.identify(&LoginRequest{User: pair[0]}),
			r.identify(&LoginRequest{User: pair[1]})
		if of := known.user.Tenant.authorities; unknown.rules.authorities != of {
			t.Errorf("certificates are verified for %s but not for %s, or with another authority", pair[0], pair[1])
		}
	}
}
