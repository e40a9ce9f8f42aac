package certs

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/babelftp/babelftp/internal/base/reload"
)

// Files are those of a certificate, which is read again when they change, as they do when an ACME client renews them.
type Files struct {
	*reload.Value[*tls.Certificate]
	cert, key string
}

// OpenFiles reads a certificate and its key for the first time. The error says which file cannot be read.
func OpenFiles(cert, key string, log *slog.Logger) (*Files, error) {
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		return &pair, err
	}
	changed := func(err error) {
		if err != nil {
			log.Error("changed certificate cannot be used, and the server shows the previous one; correct the files",
				"file", cert, "err", err)
			return
		}
		log.Info("changed certificate read", "file", cert)
	}
	value, err := reload.Open(load, changed, cert, key)
	if err != nil {
		err = fmt.Errorf("certificate %s with key %s: %w", cert, key, err)
	}
	return &Files{value, cert, key}, err
}

// orOpen is f, which may be nil, if that is the certificate in these files, or else opens it. The error says that it
// cannot be used as it is now.
func (f *Files) orOpen(cert, key string, log *slog.Logger) (*Files, error) {
	if f == nil || f.cert != cert || f.key != key {
		return OpenFiles(cert, key, log)
	}
	if err := f.Check(); err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", cert, key, err)
	}
	return f, nil
}

// Ends is when the certificate expires, and the first name in it. The time is zero where it cannot be read.
func (f *Files) Ends() (host string, at time.Time) {
	c, err := f.Current()
	if err != nil || c.Leaf == nil {
		return "", time.Time{}
	}
	return hostOf(c.Leaf), c.Leaf.NotAfter
}
