package clientcert

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"testing"
)

// TestCheckSize checks the limits of the number, the size and the memory of certificates.
func TestCheckSize(t *testing.T) {
	usual := &x509.Certificate{Raw: make([]byte, 1500), DNSNames: make([]string, 3)}
	for name, tc := range map[string]struct {
		shown []*x509.Certificate
		want  error
	}{
		"none":             {nil, nil},
		"one":              {[]*x509.Certificate{usual}, nil},
		"with-authorities": {[]*x509.Certificate{usual, usual, usual, usual}, nil},
		"too-many": {[]*x509.Certificate{usual, usual, usual, usual, usual, usual, usual, usual, usual},
			ErrTooLarge},
		"too-large": {[]*x509.Certificate{{Raw: make([]byte, 15000)}, usual}, ErrTooLarge},
		"too-large-in-memory": {[]*x509.Certificate{{URIs: make([]*url.URL, 200)}, {DNSNames: make([]string, 100)}},
			ErrTooLarge},
		"names-of-a-site": {[]*x509.Certificate{{DNSNames: make([]string, 100)}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if err := CheckSize(tls.ConnectionState{PeerCertificates: tc.shown}); !errors.Is(err, tc.want) {
				t.Errorf("got error %v, want %v", err, tc.want)
			}
		})
	}
}
