package clientcert_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/base/clientcert"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// parse parses certificates in PEM.
func parse(t *testing.T, texts ...string) (certs []*x509.Certificate) {
	t.Helper()
	for _, text := range texts {
		block, _ := pem.Decode([]byte(text))
		cert, err := x509.ParseCertificate(block.Bytes)
		must.OK(t, err)
		certs = append(certs, cert)
	}
	return certs
}

// write writes a new file and returns its name.
func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file.pem")
	must.WriteFile(t, name, text)
	return name
}

func TestVerify(t *testing.T) {
	root, other := must.NewAuthority(t, "root"), must.NewAuthority(t, "other")
	sub := root.Authority("sub")
	issue := func(by *must.Authority, template x509.Certificate) string {
		cert, _ := by.Issue(&template)
		return cert
	}
	alice := issue(root, x509.Certificate{Subject: pkix.Name{CommonName: "alice"}, SerialNumber: big.NewInt(100)})
	bob := issue(sub, x509.Certificate{Subject: pkix.Name{CommonName: "bob"}, SerialNumber: big.NewInt(200)})
	past := time.Now().Add(-time.Minute)
	expired := issue(root, x509.Certificate{NotBefore: past.Add(-time.Hour), NotAfter: past})
	server := issue(root, x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	anyUse := issue(root, x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	full := &x509.RevocationList{}
	for _, tt := range []struct {
		name    string
		ca, crl string
		shown   []string
		want    string // part of the error, empty for none
	}{
		{"valid", root.Certificate, "", []string{alice}, ""},
		{"any-use", root.Certificate, "", []string{anyUse}, ""},
		{"none", root.Certificate, "", nil, "the client sent no certificate"},
		{"of-another-authority", other.Certificate, "", []string{alice}, "unknown authority"},
		{"of-one-of-two", other.Certificate + root.Certificate, "", []string{alice}, ""},
		{"expired", root.Certificate, "", []string{expired}, "expired"},
		{"for-servers", root.Certificate, "", []string{server}, "key usage"},
		{"intermediate", root.Certificate, "", []string{bob, sub.Certificate}, ""},
		{"missing-intermediate", root.Certificate, "", []string{bob}, "unknown authority"},
		{"intermediate-in-ca-file", root.Certificate + sub.Certificate, "", []string{bob}, ""},
		{"authority-as-client", root.Certificate, "", []string{alice, other.Certificate}, ""},

		{"not-revoked", root.Certificate, root.Revoke(full, 99), []string{alice}, ""},
		{"nothing-revoked", root.Certificate, root.Revoke(full), []string{alice}, ""},
		{"revoked", root.Certificate, root.Revoke(full, 99, 100), []string{alice},
			`certificate "CN=alice" is revoked`},
		{
			"revoked-by-another", root.Certificate + other.Certificate, root.Revoke(full) + other.Revoke(full, 100),
			[]string{alice}, "",
		},
		{"newer-list-first", root.Certificate,
			root.Revoke(full, 100) + root.Revoke(&x509.RevocationList{ThisUpdate: past.Add(-time.Hour)}),
			[]string{alice}, "is revoked"},
		{"newer-list-last", root.Certificate,
			root.Revoke(&x509.RevocationList{ThisUpdate: past.Add(-time.Hour)}) + root.Revoke(full, 100),
			[]string{alice}, "is revoked"},
		{"expired-list", root.Certificate,
			root.Revoke(&x509.RevocationList{ThisUpdate: past.Add(-time.Hour), NextUpdate: past}), []string{alice},
			`(CRL) of "CN=root" expired at`},
		{"missing-list-of-root", root.Certificate + other.Certificate, other.Revoke(full), []string{alice},
			`missing certificate revocation list (CRL) of "CN=root"`},
		{"missing-list-of-intermediate", root.Certificate, root.Revoke(full), []string{bob, sub.Certificate},
			`missing certificate revocation list (CRL) of "CN=sub"`},
		{"lists-of-both", root.Certificate + sub.Certificate, root.Revoke(full) + sub.Revoke(full), []string{bob}, ""},
		{"revoked-by-intermediate", root.Certificate + sub.Certificate,
			root.Revoke(full) + sub.Revoke(full, 200), []string{bob, sub.Certificate}, `"CN=bob" is revoked`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := clientcert.Files{CA: write(t, tt.ca)}
			if tt.crl != "" {
				files.CRL = write(t, tt.crl)
			}
			a, err := clientcert.Open(files, slog.New(slog.DiscardHandler))
			must.OK(t, err)
			err = a.Verify(parse(t, tt.shown...))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	root, other := must.NewAuthority(t, "root"), must.NewAuthority(t, "other")
	partial := &x509.RevocationList{ExtraExtensions: []pkix.Extension{{Id: []int{2, 5, 29, 28}, Critical: true,
		Value: []byte{0x30, 0}}}}
	for _, tt := range []struct{ name, ca, crl, want string }{
		{"no-certificate", "nothing", "", `missing PEM block "CERTIFICATE"`},
		{"broken-certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "", "malformed"},
		{"no-list", root.Certificate, root.Certificate, `missing PEM block "X509 CRL"`},
		{"broken-list", root.Certificate, "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n", "malformed"},
		{"list-of-another", root.Certificate, other.Revoke(&x509.RevocationList{}),
			`CRL of "CN=other": not signed by an authority in ca_file`},
		{"list-of-a-namesake", root.Certificate, must.NewAuthority(t, "root").Revoke(&x509.RevocationList{}),
			"not signed by an authority in ca_file"},
		{"part-of-a-list", root.Certificate, root.Revoke(partial), "critical extension 2.5.29.28"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := clientcert.Files{CA: write(t, tt.ca)}
			if tt.crl != "" {
				files.CRL = write(t, tt.crl)
			}
			if _, err := clientcert.Open(files, slog.New(slog.DiscardHandler)); err == nil ||
				!strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := clientcert.Open(clientcert.Files{CA: filepath.Join(t.TempDir(), "none")}, nil); err == nil {
		t.Error("missing error for a missing file")
	}
}

// TestChangedFiles checks that a change takes effect immediately, and that the previous content is used while the files
// are invalid.
func TestChangedFiles(t *testing.T) {
	root, next := must.NewAuthority(t, "root"), must.NewAuthority(t, "the next root")
	cert, _ := root.Issue(&x509.Certificate{SerialNumber: big.NewInt(100)})
	shown := parse(t, cert)
	files := clientcert.Files{CA: write(t, root.Certificate), CRL: write(t, root.Revoke(&x509.RevocationList{}))}
	a, err := clientcert.Open(files, slog.New(slog.NewTextHandler(t.Output(), nil)))
	must.OK(t, err)
	change := func(name, text string) {
		t.Helper()
		must.WriteFile(t, name, text)
	}
	if err := a.Verify(shown); err != nil {
		t.Error(err)
	}
	change(files.CRL, root.Revoke(&x509.RevocationList{}, 100))
	if err := a.Verify(shown); err == nil {
		t.Error("accepted a revoked certificate")
	}
	change(files.CRL, "half")
	if err := a.Verify(shown); err == nil {
		t.Error("accepted a revoked certificate while the list was written")
	}
	must.OK(t, os.Remove(files.CRL))
	if err := a.Verify(shown); err == nil {
		t.Error("accepted a revoked certificate without a list")
	}
	change(files.CA, root.Certificate+next.Certificate)
	change(files.CRL, root.Revoke(&x509.RevocationList{})+next.Revoke(&x509.RevocationList{}))
	if err := a.Verify(shown); err != nil {
		t.Error(err)
	}
}
