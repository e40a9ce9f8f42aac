package certs

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/babelftp/babelftp/internal/base/reload"
)

// Files are the certificate and key files, which are reloaded when they change, for example after a renewal by an
// ACME client.
type Files struct {
	*reload.Value[*tls.Certificate]
	cert, key string
}

// OpenFiles reads a certificate and its key. Errors name the files.
func OpenFiles(cert, key string, log *slog.Logger) (*Files, error) {
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		return &pair, err
	}
	changed := func(err error) {
		if err != nil {
			log.Error("changed certificate is invalid; keeping the previous one",
				"file", cert, "err", err)
			return
		}
		log.Info("changed certificate loaded", "file", cert)
	}
	value, err := reload.Open(load, changed, cert, key)
	if err != nil {
		err = fmt.Errorf("certificate %s with key %s: %w", cert, key, err)
	}
	return &Files{value, cert, key}, err
}

// orOpen returns f if it has these files and they can still be read; otherwise it opens them. f may be nil.
func (f *Files) orOpen(cert, key string, log *slog.Logger) (*Files, error) {
	opened, err := f.orOpenNew(cert, key, log)
	if err == nil && opened == f {
		if err := f.Check(); err != nil {
			return nil, fmt.Errorf("certificate %s with key %s: %w", cert, key, err)
		}
	}
	return opened, err
}

// orOpenNew returns f if it has these files; otherwise it opens them. f may be nil.
func (f *Files) orOpenNew(cert, key string, log *slog.Logger) (*Files, error) {
	if f == nil || f.cert != cert || f.key != key {
		return OpenFiles(cert, key, log)
	}
	return f, nil
}

// Expiry returns the first host name in the certificate and the time when it expires, or zero if the file cannot be
// read.
func (f *Files) Expiry() (host string, at time.Time) {
	c, err := f.Current()
	if err != nil || c.Leaf == nil {
		return "", time.Time{}
	}
	return hostOf(c.Leaf), c.Leaf.NotAfter
}
