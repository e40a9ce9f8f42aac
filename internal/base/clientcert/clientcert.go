// Package clientcert verifies client certificates (RFC 5280).
//
// [Open] reads the certificates of authorities and their lists of revoked certificates. [Authorities.Verify] reads
// them again when the files change. TLS itself has proved before that the client has the key of the certificate (RFC
// 8446 4.4.3).
package clientcert

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"time"

	"github.com/babelftp/babelftp/internal/base/reload"
)

// ErrNone reports a client that has shown no certificate.
var ErrNone = errors.New("the client has shown no certificate")

// Authorities issue the certificates of clients.
type Authorities struct {
	files *reload.Value[*authorities]
}

// maxNamesakes is how many intermediate certificates may have one name. There are two if
// another authority has signed one too. With more of them, a stranger could have a
// hundred signatures verified.
const maxNamesakes = 2

// Files are the PEM files of authorities and of their lists of revoked certificates (CRLs). There may be no lists.
type Files struct{ CA, CRL string }

// authorities is the content of the files.
type authorities struct {
	roots *x509.CertPool
	lists map[string]*revocationList // by authority, nil without a file of lists
}

// A revocationList is what an authority has revoked.
type revocationList struct {
	revoked      map[string]bool // by serial number
	since, until time.Time       // until is zero for a list without an end
}

// Open reads the files. The error says which cannot be used.
func Open(files Files, log *slog.Logger) (*Authorities, error) {
	changed := func(err error) {
		if err != nil {
			log.Error(
				"changed authorities of client certificates cannot be used, and the previous ones count; correct "+
					"the files", "err", err)
			return
		}
		log.Info("changed authorities of client certificates read", "ca_file", files.CA, "crl_file", files.CRL)
	}
	value, err := reload.Open(func() (*authorities, error) { return load(files) }, changed, files.CA, files.CRL)
	return &Authorities{files: value}, err
}

// Verify returns the error of a client's certificate: one that none of the authorities has issued, is not valid now,
// is not for clients, or is revoked. The certificate comes first, and certificates of authorities between may follow.
// With lists of revoked certificates, each authority of the chain must have one that has not expired.
func (a *Authorities) Verify(shown []*x509.Certificate) error {
	if len(shown) == 0 {
		return ErrNone
	}
	current, err := a.files.Current()
	if err != nil {
		return err
	}
	return current.verify(shown)
}

// verify is [Authorities.Verify] for one content of the files.
func (a *authorities) verify(shown []*x509.Certificate) error {
	between, namesakes := x509.NewCertPool(), map[string]int{}
	for _, c := range shown[1:] {
		if namesakes[string(c.RawSubject)]++; namesakes[string(c.RawSubject)] <= maxNamesakes {
			between.AddCert(c)
		}
	}
	chains, err := shown[0].Verify(x509.VerifyOptions{
		Roots: a.roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil || a.lists == nil {
		return err
	}
	for _, chain := range chains {
		if err = a.revoked(chain, time.Now()); err == nil {
			return nil
		}
	}
	return err
}

// revoked returns an error if a certificate of the chain, but the last one, is revoked, or if that is not known.
func (a *authorities) revoked(chain []*x509.Certificate, now time.Time) error {
	for i, c := range chain[:len(chain)-1] {
		list := a.lists[authorityOf(chain[i+1])]
		switch {
		case list == nil:
			return fmt.Errorf("there is no certificate revocation list (CRL) of %q", chain[i+1].Subject)
		case !list.until.IsZero() && now.After(list.until):
			return fmt.Errorf(
				"the certificate revocation list (CRL) of %q expired at %s", chain[i+1].Subject, list.until)
		case list.revoked[serial(c.SerialNumber)]:
			return fmt.Errorf("the certificate %q is revoked", c.Subject)
		}
	}
	return nil
}

// authorityOf tells authorities apart by name and key.
func authorityOf(c *x509.Certificate) string {
	return string(c.RawSubject) + string(c.RawSubjectPublicKeyInfo)
}

func serial(n *big.Int) string { return n.Text(16) }

func load(files Files) (*authorities, error) {
	issuers, err := read(files.CA, "CERTIFICATE", x509.ParseCertificate)
	if err != nil {
		return nil, err
	}
	a := &authorities{roots: x509.NewCertPool()}
	for _, c := range issuers {
		a.roots.AddCert(c)
	}
	if files.CRL == "" {
		return a, nil
	}
	lists, err := read(files.CRL, "X509 CRL", x509.ParseRevocationList)
	if err != nil {
		return nil, err
	}
	a.lists = map[string]*revocationList{}
	for _, l := range lists {
		if err := a.add(l, issuers); err != nil {
			return nil, fmt.Errorf("%s: the CRL of %q: %w", files.CRL, l.Issuer, err)
		}
	}
	return a, nil
}

// add adds a list in place of an older one. One of the authorities must have signed it. A list with a critical
// extension is not of all certificates of the authority (RFC 5280 5.2).
func (a *authorities) add(l *x509.RevocationList, issuers []*x509.Certificate) error {
	for _, e := range l.Extensions {
		if e.Critical {
			return fmt.Errorf("has the critical extension %s: give the full list", e.Id)
		}
	}
	for _, issuer := range issuers {
		if !bytes.Equal(issuer.RawSubject, l.RawIssuer) || l.CheckSignatureFrom(issuer) != nil {
			continue
		}
		key := authorityOf(issuer)
		if before := a.lists[key]; before != nil && before.since.After(l.ThisUpdate) {
			return nil
		}
		list := &revocationList{revoked: make(map[string]bool, len(l.RevokedCertificateEntries)), since: l.ThisUpdate,
			until: l.NextUpdate}
		for _, e := range l.RevokedCertificateEntries {
			list.revoked[serial(e.SerialNumber)] = true
		}
		a.lists[key] = list
		return nil
	}
	return errors.New("no authority of ca_file has signed it")
}

// read reads what a PEM file has of one kind, at least one. The error names the file.
func read[T any](name, kind string, parse func([]byte) (T, error)) ([]T, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var all []T
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != kind {
			continue
		}
		one, err := parse(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: has no PEM block of the kind %s", name, kind)
	}
	return all, nil
}
