package certificates

import (
	"crypto/tls"
	"fmt"
	"log/slog"

	"github.com/babelftp/babelftp/internal/filecache"
)

// files is a certificate that is read again when its files change, as they do when an ACME client renews them.
type files struct {
	*filecache.Value[*tls.Certificate]
	cert string
}

// open reads the certificate for the first time.
func open(cert, key string, log *slog.Logger) (*files, error) {
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		return &pair, err
	}
	changed := func(err error) {
		if err != nil {
			log.Error("changed certificate cannot be used, and the server shows the previous one; correct the files", "file", cert, "err", err)
			return
		}
		log.Info("changed certificate read", "file", cert)
	}
	value, err := filecache.Open(load, changed, cert, key)
	if err != nil {
		err = fmt.Errorf("certificate %s with key %s: %w", cert, key, err)
	}
	return &files{value, cert}, err
}
