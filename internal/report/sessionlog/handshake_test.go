package sessionlog

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
)

func TestHandshakeHint(t *testing.T) {
	alert := func(op string, a tls.AlertError) error {
		return fmt.Errorf("start TLS: %w", &net.OpError{Op: op, Err: a})
	}
	for _, tc := range []struct {
		name     string
		err      error
		implicit bool
		want     string
	}{
		{"unreadable-alert", alert("local error", badRecordMAC), false, CertificateHint},
		{"unreadable-alert-implicit", alert("local error", badRecordMAC), true, CertificateHint},
		{"alert-that-says-it", alert("remote error", 48), false, ""},
		{"alert-of-ours", alert("local error", 70), false, ""},
		{"left", fmt.Errorf("read: %w", io.EOF), false, CertificateHint},
		{"left-implicit", io.EOF, true, explicitHint},
		{"other", errors.New("no TLS record"), false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := HandshakeHint(tc.err, tc.implicit); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
