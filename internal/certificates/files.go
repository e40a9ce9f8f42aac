package certificates

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// files is a certificate that is read again when its files change, as they do in a mounted Secret of Kubernetes or when an ACME client renews them.
type files struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex
	loaded *tls.Certificate
	stamp  [2]fileStamp // of the files that were tried last
}

// A fileStamp changes when a file does.
type fileStamp struct {
	modified time.Time
	size     int64
}

// open reads the certificate for the first time.
func open(cert, key string, log *slog.Logger) (*files, error) {
	f := &files{cert: cert, key: key, log: log}
	_, err := f.certificate()
	return f, err
}

// certificate returns the certificate for a handshake. While its files cannot be used, because a renewal is half done, that is the
// one before. To look at two files costs little compared to a handshake.
func (f *files) certificate() (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	stamp := [2]fileStamp{stampOf(f.cert), stampOf(f.key)}
	if f.loaded != nil && stamp == f.stamp {
		return f.loaded, nil
	}
	f.stamp = stamp
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	switch {
	case err == nil:
		if f.loaded != nil {
			f.log.Info("changed certificate read", "file", f.cert)
		}
		f.loaded = &pair
	case f.loaded == nil:
		return nil, fmt.Errorf("certificate %s with key %s: %w", f.cert, f.key, err)
	default:
		f.log.Error("changed certificate cannot be used, and the server shows the previous one; correct the files", "file", f.cert, "err", err)
	}
	return f.loaded, nil
}

func stampOf(name string) fileStamp {
	info, err := os.Stat(name)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{modified: info.ModTime(), size: info.Size()}
}
