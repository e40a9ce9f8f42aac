package dataconn

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/babelftp/babelftp/internal/base/netaddr"
)

// A Handshake describes the session in which a TLS handshake takes place.
type Handshake struct {
	Host string // from HOST, or empty
	// Session is a unique ID of the handshake of the control connection.
	Session string

	// Certificates are the certificates from the control connection, beginning with the client certificate. A data
	// connection must use the same client certificate, or resume the session (RFC 4217, 15.1.2).
	Certificates []*x509.Certificate

	data bool        // data connection
	hold *ticketHold // set for an upload
}

// handshakeKey is the context key of the Handshake.
type handshakeKey struct{}

// WithHandshake returns the context for a handshake on a control connection.
func WithHandshake(ctx context.Context, h Handshake) context.Context {
	return context.WithValue(ctx, handshakeKey{}, &h)
}

// errOtherClient reports a data connection whose client certificate is missing or differs from the certificate of
// the control connection.
var errOtherClient = fmt.Errorf("%w with the client's certificate", ErrTLS)

// check returns an error if the handshake of a data connection was not made by the client of the session.
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

// TLSConfig returns a copy of cfg for handshakes with a context of WithHandshake. If the session has sent HOST
// before the handshake (RFC 7151, 4), a client without SNI gets the certificate of that host, and a client whose
// SNI names another host fails the handshake. Session tickets have the keys of cfg, which may change later.
func TLSConfig(cfg *tls.Config) *tls.Config {
	tickets := cfg
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
		return forHandshake(h, cfg, tickets), nil
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
