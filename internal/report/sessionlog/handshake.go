package sessionlog

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
)

// badRecordMAC is the alert for a record that cannot be decrypted (RFC 8446 section 6.2).
const badRecordMAC tls.AlertError = 20

// Log hints about TLS connections that end early.
const (
	CertificateHint = "the client may not trust the certificate, or the certificate may not have the name that the " +
		"client connects to"
	explicitHint = "the client may use explicit TLS, which starts unencrypted and needs the port of listen"
)

// HandshakeHint returns the most common cause of this TLS handshake error, or "" if the error explains itself.
func HandshakeHint(err error, implicit bool) string {
	alert, sent := errors.AsType[*net.OpError](err)
	switch {
	case sent && alert.Op == "local error" && alert.Err.Error() == badRecordMAC.Error():
		// A TLS 1.3 client can reject a certificate before it has the key to encrypt its alert, which the server then
		// cannot read.
		return CertificateHint
	case errors.Is(err, io.EOF) && implicit:
		return explicitHint
	case errors.Is(err, io.EOF):
		return CertificateHint
	}
	return ""
}
