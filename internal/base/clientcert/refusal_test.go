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

// A refusal is remembered, so that a client that logs in again and again does not have its signatures verified each
// time. What the files say counts at once, and so does a certificate that is good.
func TestRefusalsAreRemembered(t *testing.T) {
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
	for range 2 {
		if err := a.Verify(good); err != nil {
			t.Error(err)
		}
		if err := a.Verify(bad); err == nil {
			t.Error("a certificate of another authority is good")
		}
	}
	if len(a.refused) != 1 {
		t.Errorf("%d refusals are remembered, want one", len(a.refused))
	}
	for range maxRefusals + 1 {
		_ = a.Verify([]*x509.Certificate{{Raw: []byte{byte(len(a.refused)), byte(len(a.refused) >> 8)}}})
	}
	if len(a.refused) > maxRefusals {
		t.Errorf("%d refusals are remembered, want %d at most", len(a.refused), maxRefusals)
	}
	trust(others)
	if err := a.Verify(bad); err != nil {
		t.Errorf("after a change of the file: %v", err)
	}
}
