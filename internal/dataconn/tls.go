package dataconn

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"

	"github.com/babelftp/babelftp/internal/wire"
)

// A Handshake is what a session knows of a TLS handshake before it begins.
type Handshake struct {
	Host string // from HOST, empty for none
	// Session is of the control connection: other than that of all others, and new in each handshake.
	Session string

	data bool        // on a data connection
	hold *ticketHold // of an upload, else nil
}

// handshakeKey is the key of a handshake's context under which the Handshake is.
type handshakeKey struct{}

// WithHandshake is the context of a handshake on a control connection.
func WithHandshake(ctx context.Context, h Handshake) context.Context {
	return context.WithValue(ctx, handshakeKey{}, &h)
}

// TLSConfig is a TLS configuration for handshakes with the context of WithHandshake, on control and data connections of sessions with HOST before the handshake
// (RFC 7151 4). A client that does not name the host again also gets the host's
// certificate. A client that names another host fails the handshake.
func TLSConfig(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	configFor, certificate := cfg.GetConfigForClient, cfg.GetCertificate
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		h := handshakeOf(hello)
		host := h.Host
		if named, ok := wire.ParseHost(hello.ServerName); ok && host != "" && named != host {
			return nil, fmt.Errorf("the client named %s to HOST and %s to TLS", host, named)
		}
		if configFor != nil {
			if chosen, err := configFor(hello); chosen != nil || err != nil {
				return chosen, err
			}
		}
		return forHandshake(h, cfg), nil
	}
	if certificate != nil {
		cfg.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			named := *hello
			named.ServerName = cmp.Or(hello.ServerName, handshakeOf(hello).Host)
			return certificate(&named)
		}
	}
	return cfg
}

func handshakeOf(hello *tls.ClientHelloInfo) *Handshake {
	return hello.Context().Value(handshakeKey{}).(*Handshake)
}
