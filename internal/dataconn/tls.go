package dataconn

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"

	"github.com/babelftp/babelftp/internal/wire"
)

// hostOfHandshake is the key of a handshake's context under which the host is
// that HOST has chosen.
type hostOfHandshake struct{}

// WithHost is the context of a handshake with the host that HOST has chosen,
// empty for none.
func WithHost(ctx context.Context, host string) context.Context {
	return context.WithValue(ctx, hostOfHandshake{}, host)
}

// TLSConfig is a TLS configuration for control and data connections of sessions with HOST before the handshake
// (RFC 7151 4). A client that does not name the host again also gets the host's
// certificate. A client that names another host fails the handshake.
func TLSConfig(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	configFor, certificate := cfg.GetConfigForClient, cfg.GetCertificate
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		host := hostOf(hello)
		if named, ok := wire.ParseHost(hello.ServerName); ok && host != "" && named != host {
			return nil, fmt.Errorf("the client named %s to HOST and %s to TLS", host, named)
		}
		if configFor != nil {
			if chosen, err := configFor(hello); chosen != nil || err != nil {
				return chosen, err
			}
		}
		return holdTickets(hello.Context(), cfg), nil // nil: cfg itself
	}
	if certificate != nil {
		cfg.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			named := *hello
			named.ServerName = cmp.Or(hello.ServerName, hostOf(hello))
			return certificate(&named)
		}
	}
	return cfg
}

func hostOf(hello *tls.ClientHelloInfo) string {
	host, _ := hello.Context().Value(hostOfHandshake{}).(string)
	return host
}
