package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/wire"
)

// tlsConfig is how connections are encrypted, nil without a certificate. builtIn is shown where the configuration names no files.
func tlsConfig(cfg *config.Config, builtIn *tls.Certificate, log *slog.Logger) (*tls.Config, error) {
	version := uint16(cfg.TLS.MinVersion)
	if version == 0 {
		version = tls.VersionTLS12 // RFC 8996 forbids those before
	}
	c := certificates{byHost: map[string]*certificateFiles{}, builtIn: builtIn}
	open := func(cert, key string) (*certificateFiles, error) {
		files := &certificateFiles{cert: cert, key: key, log: log}
		_, err := files.certificate()
		return files, err
	}
	if cfg.TLS.CertFile != "" {
		files, err := open(cfg.TLS.CertFile, cfg.TLS.KeyFile)
		if err != nil {
			return nil, err
		}
		c.server = files
	}
	for _, t := range cfg.Tenants {
		if t.TLS.CertFile == "" {
			continue
		}
		files, err := open(t.TLS.CertFile, t.TLS.KeyFile)
		if err != nil {
			return nil, err
		}
		for _, host := range t.Hosts {
			c.byHost[host] = files
		}
	}
	if c.server == nil && c.builtIn == nil {
		return nil, nil
	}
	return &tls.Config{MinVersion: version, CipherSuites: cipherSuites(), GetCertificate: c.certificate}, nil
}

// cipherSuites are those of TLS 1.2 that Go calls secure and that authenticate the data as they encrypt it (AEAD): in CBC mode errors have
// leaked the text. TLS 1.3 has no others.
func cipherSuites() []uint16 {
	var ids []uint16
	for _, suite := range tls.CipherSuites() {
		if !strings.Contains(suite.Name, "_CBC_") {
			ids = append(ids, suite.ID)
		}
	}
	return ids
}

// certificates are those of the server and of the tenants that have their own.
type certificates struct {
	byHost  map[string]*certificateFiles
	server  *certificateFiles // nil: builtIn
	builtIn *tls.Certificate
}

// certificate returns the one for a handshake: that of the tenant whose host the client names (SNI, RFC 6066, section 3), else the
// server's.
func (c *certificates) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if files, ok := c.byHost[wire.NormalizeHost(hello.ServerName)]; ok {
		return files.certificate()
	}
	if c.server != nil {
		return c.server.certificate()
	}
	return c.builtIn, nil
}

// certificateFiles is a certificate that is read again when its files change, as they do in a mounted Secret of Kubernetes or when
// an ACME client renews them.
type certificateFiles struct {
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

// certificate returns the certificate for a handshake. While its files cannot be used, because a renewal is half done, that is the
// one before. To look at two files costs little compared to a handshake.
func (c *certificateFiles) certificate() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stamp := [2]fileStamp{stampOf(c.cert), stampOf(c.key)}
	if c.loaded != nil && stamp == c.stamp {
		return c.loaded, nil
	}
	c.stamp = stamp
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	switch {
	case err == nil:
		if c.loaded != nil {
			c.log.Info("changed certificate read", "file", c.cert)
		}
		c.loaded = &pair
	case c.loaded == nil:
		return nil, fmt.Errorf("certificate %s with key %s: %w", c.cert, c.key, err)
	default:
		c.log.Error("changed certificate cannot be used, and the server shows the previous one; correct the files", "file", c.cert, "err", err)
	}
	return c.loaded, nil
}

func stampOf(name string) fileStamp {
	info, err := os.Stat(name)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{modified: info.ModTime(), size: info.Size()}
}
