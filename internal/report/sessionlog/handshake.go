package sessionlog

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
)

// badRecordMAC is the alert about a record that its key does not open (RFC 8446 6.2).
const badRecordMAC tls.AlertError = 20

// Hints for the log about connections under TLS that end early.
const (
	CertificateHint = "the client may not trust the certificate, or the certificate may not have the name that the " +
		"client connects to"
	explicitHint = "the client may use explicit TLS, which begins in the clear: it needs the port of listen"
)

// HandshakeHint returns what most often ends a TLS handshake of a client with such an error, or nothing where the
// error says it itself.
func HandshakeHint(err error, implicit bool) string {
	alert, sent := errors.AsType[*net.OpError](err)
	switch {
	case sent && alert.Op == "local error" && alert.Err.Error() == badRecordMAC.Error():
		// a client of TLS 1.3 can say so before it has the key to say it under TLS, which the server then cannot read
		return CertificateHint
	case errors.Is(err, io.EOF) && implicit:
		return explicitHint
	case errors.Is(err, io.EOF):
		return CertificateHint
	}
	return ""
}
