package dataconn

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/babelftp/babelftp/internal/base/netaddr"
)

// A Handshake is what a session knows of a TLS handshake before it begins.
type Handshake struct {
	Host string // from HOST, empty for none
	// Session is of the control connection: other than that of all others, and new in each handshake.
	Session string

	// Certificates are what the client has shown there, its own first. A data connection must show the same, or
	// resume (RFC 4217 15.1.2).
	Certificates []*x509.Certificate

	data bool        // on a data connection
	hold *ticketHold // of an upload, else nil
}

// handshakeKey is the key of a handshake's context under which the Handshake is.
type handshakeKey struct{}

// WithHandshake is the context of a handshake on a control connection.
func WithHandshake(ctx context.Context, h Handshake) context.Context {
	return context.WithValue(ctx, handshakeKey{}, &h)
}

// errOtherClient reports a data connection on which the client has shown another certificate than on the control
// connection, or none.
var errOtherClient = fmt.Errorf("%w with the client's certificate", ErrTLS)

// check returns an error if the handshake of a data connection is not that of the session's client.
func (h *Handshake) check(state tls.ConnectionState, requireReuse bool) error {
	switch {
	case requireReuse && !state.DidResume:
		return ErrNotResumed
	case len(h.Certificates) > 0 &&
		(len(state.PeerCertificates) == 0 || !state.PeerCertificates[0].Equal(h.Certificates[0])):
		return errOtherClient
	}
	return nil
}

// TLSConfig is a TLS configuration for handshakes with the context of WithHandshake, on control and data connections
// of sessions with HOST before the handshake (RFC 7151 4). A client that does not name the host again also gets the
// host's certificate. A client that names another host fails the handshake.
func TLSConfig(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	configFor, certificate := cfg.GetConfigForClient, cfg.GetCertificate
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if err := netaddr.CheckServerName(hello); err != nil {
			return nil, err
		}
		h := handshakeOf(hello)
		host := h.Host
		if named, ok := netaddr.ParseHost(hello.ServerName); ok && host != "" && named != host {
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
