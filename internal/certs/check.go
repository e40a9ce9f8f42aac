package certs

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/caddyserver/certmagic"
)

// overdue is the divisor of a certificate's lifetime: if less than this part is left, several renewals have failed,
// because the first attempt is made when a third is left.
const overdue = 6

// Check verifies that the server can write to the ACME folder, if there is one, and reports the stored certificates.
// Notes have the expiry of each certificate. Warnings name certificates that are missing or overdue for renewal. It
// returns an error if the folder cannot be used or certificates have expired.
//
// Check does not create the folder, because it would belong to the user who runs the check instead of the user of the
// server.
func (m *ACME) Check(ctx context.Context, now time.Time) (notes, warnings []string, err error) {
	if m.opts.Storage == nil {
		warning, err := m.checkFolder(ctx)
		if err != nil {
			return nil, nil, err
		}
		if warning != "" {
			warnings = append(warnings, warning)
		}
	}
	authority := m.issuer().IssuerKey()
	var ended []error
	for _, host := range m.cfg.Hosts {
		c, err := m.readStored(ctx, certmagic.StorageKeys.SiteCert(authority, host))
		if errors.Is(err, fs.ErrNotExist) {
			warnings = append(
				warnings, fmt.Sprintf(
					"tls.acme: no certificate for %s yet: the server obtains it when it runs", host))
			continue
		}
		if err != nil {
			return notes, warnings, fmt.Errorf("tls.acme: the certificate for %s cannot be read: %w", host, err)
		}
		left := c.NotAfter.Sub(now)
		end := c.NotAfter.UTC().Format(time.DateOnly)
		switch {
		case left <= 0:
			ended = append(
				ended, fmt.Errorf(
					"tls.acme: the certificate for %s expired on %s: check the log for why the server does not renew it",
					host, end))
		case left < c.NotAfter.Sub(c.NotBefore)/overdue:
			warnings = append(
				warnings, fmt.Sprintf(
					"tls.acme: the certificate for %s expires on %s, but should have been renewed: check the log for the reason",
					host, end))
		default:
			const day = 24 * time.Hour
			notes = append(
				notes, fmt.Sprintf("tls.acme: the certificate for %s expires on %s, in %d days", host, end, left/day))
		}
	}
	return notes, warnings, errors.Join(ended...)
}

// checkFolder tests whether a file can be created in the folder. Root can write anywhere, so for root it checks the
// owner of the folder instead.
func (m *ACME) checkFolder(ctx context.Context) (warning string, err error) {
	info, err := os.Stat(m.cfg.Folder)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("tls.acme.folder: %s does not exist yet: the server creates it when it starts, and its user "+
			"needs write access to %s", m.cfg.Folder, filepath.Dir(m.cfg.Folder)), nil
	}
	if err != nil {
		return "", fmt.Errorf("tls.acme.folder: %w", err)
	}
	if os.Geteuid() == 0 {
		if owner, known := ownerOf(info); known && owner == 0 {
			return fmt.Sprintf("tls.acme.folder: %s belongs to root: if the server runs as another user, give the folder "+
				"to that user with chown", m.cfg.Folder), nil
		}
		return "", nil
	}
	probe := "check-" + rand.Text()
	if err := m.storage.Store(ctx, probe, nil); err != nil {
		return "", fmt.Errorf("tls.acme.folder: the user who runs this check cannot write here: %w: "+
			"run the check as the user of the server, who needs write access", err)
	}
	if err := m.storage.Delete(ctx, probe); err != nil {
		return "", fmt.Errorf("tls.acme.folder: the user who runs this check cannot delete here: %w", err)
	}
	return "", nil
}

// readStored reads a certificate from the folder.
func (m *ACME) readStored(ctx context.Context, key string) (*x509.Certificate, error) {
	text, err := m.storage.Load(ctx, key)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s has no certificate", key)
	}
	return x509.ParseCertificate(block.Bytes)
}
