package clientcert

import (
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// TestChangedAuthorities checks that a changed CA file is used for the next certificate.
func TestChangedAuthorities(t *testing.T) {
	ours, others := must.NewAuthority(t, "root"), must.NewAuthority(t, "root")
	file := filepath.Join(t.TempDir(), "ca.crt")
	trust := func(a *must.Authority) {
		t.Helper()
		must.WriteFile(t, file+".new", a.Certificate)
		must.OK(t, os.Rename(file+".new", file))
	}
	trust(ours)
	a, err := Open(Files{CA: file}, slog.New(slog.DiscardHandler))
	must.OK(t, err)
	issue := func(by *must.Authority) []*x509.Certificate {
		t.Helper()
		text, _ := by.Issue(&x509.Certificate{})
		block, _ := pem.Decode([]byte(text))
		c, err := x509.ParseCertificate(block.Bytes)
		must.OK(t, err)
		return []*x509.Certificate{c}
	}
	good, bad := issue(ours), issue(others)
	if err := a.Verify(good); err != nil {
		t.Error(err)
	}
	if err := a.Verify(bad); err == nil {
		t.Error("accepted a certificate of another authority")
	}
	trust(others)
	if err := a.Verify(bad); err != nil {
		t.Errorf("after changing the file: %v", err)
	}
}
