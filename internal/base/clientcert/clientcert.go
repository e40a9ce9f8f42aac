// Package clientcert verifies client certificates (RFC 5280).
//
// [Open] reads the certificates of the authorities and their certificate revocation lists (CRLs). [Authorities.Verify]
// checks a certificate and rereads the files if they have changed. It does not check that the client has the private
// key of its certificate, which TLS has already done (RFC 8446, section 4.4.3). [CheckSize] limits the size of the
// certificates that a client may send.
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

// ErrNone is returned if the client has sent no certificate.
var ErrNone = errors.New("the client sent no certificate")

// Authorities are the certificate authorities (CAs) that issue the certificates of clients.
type Authorities struct {
	files *reload.Value[*authorities]
}

// maxNamesakes is the maximum number of intermediate certificates with the same name. There may be two if the
// intermediate authority is cross-signed. With more of them, anyone could make the server verify a hundred signatures.
const maxNamesakes = 2

// Files are the names of the PEM files with the certificates of the authorities and with their certificate revocation
// lists. CRL is optional.
type Files struct{ CA, CRL string }

// authorities is the content of the files.
type authorities struct {
	roots *x509.CertPool
	lists map[string]*revocationList // by authority; nil without a CRL file
}

// A revocationList contains the certificates that an authority has revoked.
type revocationList struct {
	revoked      map[string]bool // by serial number
	since, until time.Time       // until is zero if the list does not expire
}

// Open reads the files. The error names the file that cannot be used.
func Open(files Files, log *slog.Logger) (*Authorities, error) {
	changed := func(err error) {
		if err != nil {
			log.Error(
				"invalid authorities of client certificates; keeping the previous ones until the files are corrected",
				"err", err)
			return
		}
		log.Info("authorities of client certificates reloaded", "ca_file", files.CA, "crl_file", files.CRL)
	}
	value, err := reload.Open(func() (*authorities, error) { return load(files) }, changed, files.CA, files.CRL)
	return &Authorities{files: value}, err
}

// Verify returns an error unless the client's certificate was issued by one of the authorities, is currently valid, may
// be used by clients and is not revoked. shown contains the certificate of the client, followed by any intermediate
// certificates. If there is a CRL file, it must contain a current list of each authority of the chain.
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

// verify implements [Authorities.Verify].
func (a *authorities) verify(shown []*x509.Certificate) error {
	intermediates, namesakes := x509.NewCertPool(), map[string]int{}
	for _, c := range shown[1:] {
		if namesakes[string(c.RawSubject)]++; namesakes[string(c.RawSubject)] <= maxNamesakes {
			intermediates.AddCert(c)
		}
	}
	chains, err := shown[0].Verify(x509.VerifyOptions{
		Roots: a.roots, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil || a.lists == nil {
		return err
	}
	for _, chain := range chains {
		if err = a.checkRevocation(chain, time.Now()); err == nil {
			return nil
		}
	}
	return err
}

// checkRevocation returns an error if a certificate of the chain, except the root, is revoked or has an unknown status.
func (a *authorities) checkRevocation(chain []*x509.Certificate, now time.Time) error {
	for i, c := range chain[:len(chain)-1] {
		list := a.lists[authorityOf(chain[i+1])]
		switch {
		case list == nil:
			return fmt.Errorf("missing certificate revocation list (CRL) of %q", chain[i+1].Subject)
		case !list.until.IsZero() && now.After(list.until):
			return fmt.Errorf(
				"certificate revocation list (CRL) of %q expired at %s", chain[i+1].Subject, list.until)
		case list.revoked[serial(c.SerialNumber)]:
			return fmt.Errorf("certificate %q is revoked", c.Subject)
		}
	}
	return nil
}

// authorityOf returns a map key for an authority, made of its name and its public key.
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
			return nil, fmt.Errorf("%s: CRL of %q: %w", files.CRL, l.Issuer, err)
		}
	}
	return a, nil
}

// add adds a list that one of the authorities must have signed, and replaces an older one. A list with a critical
// extension is rejected, because it does not cover all certificates of the authority (RFC 5280, section 5.2).
func (a *authorities) add(l *x509.RevocationList, issuers []*x509.Certificate) error {
	for _, e := range l.Extensions {
		if e.Critical {
			return fmt.Errorf("unsupported critical extension %s: use the full CRL", e.Id)
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
	return errors.New("not signed by an authority in ca_file")
}

// read parses all blocks of one kind in a PEM file. There must be at least one. The error contains the name of the
// file.
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
		return nil, fmt.Errorf("%s: missing PEM block %q", name, kind)
	}
	return all, nil
}
