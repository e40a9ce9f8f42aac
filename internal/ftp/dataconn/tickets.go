package dataconn

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"net"
	"slices"
	"time"

	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// A ticketHold lies below TLS on the data connection of an upload. From the
// first session ticket on it holds back what the server writes, and sends it
// when the connection is closed.
//
// Under TLS 1.3 crypto/tls sends a ticket right behind the handshake. A client
// that only writes never reads it. When it closes its end, its kernel
// sends RST instead of FIN (RFC 1122 4.2.2.13), and that may discard the last
// bytes of the upload. Net::FTP of Ruby and of Perl are such clients.
//
// Without tickets in the configuration crypto/tls would not resume sessions. Some
// clients insist on that.
type ticketHold struct {
	net.Conn
	issued int    // tickets that are in what crypto/tls writes next
	held   []byte // records, nil before the first ticket
}

// maxHeld is the maximum of held bytes. They are a ticket of some hundred bytes,
// close_notify, and answers to changes of keys (RFC 8446 4.6.3).
const maxHeld = 16 << 10

// Write holds the records of tickets, and all that follow, because the records
// of a connection are numbered.
func (h *ticketHold) Write(b []byte) (int, error) {
	now := b
	if h.held != nil {
		now = nil
	} else if h.issued > 0 {
		now = b[:lastRecords(b, h.issued)]
	}
	h.issued = 0
	if rest := b[len(now):]; len(rest) > 0 {
		h.held = append(h.held, rest...)
	}
	if len(h.held) > maxHeld {
		return len(b), h.release()
	}
	if len(now) == 0 {
		return len(b), nil
	}
	n, err := h.Conn.Write(now)
	if err == nil {
		n = len(b)
	}
	return n, err
}

// release sends what is held.
func (h *ticketHold) release() error {
	_, err := h.Conn.Write(h.held)
	h.held = h.held[:0]
	return err
}

// Close sends what is held, then closes the connection. A client that has gone
// misses nothing.
func (h *ticketHold) Close() error {
	if len(h.held) > 0 {
		_ = h.SetWriteDeadline(time.Now().Add(wire.TLSTimeout)) // tls.Conn has left one that is over
		_ = h.release()
	}
	return h.Conn.Close()
}

// lastRecords returns where the last n TLS records of b begin.
func lastRecords(b []byte, n int) int {
	var starts []int
	for at := 0; at+wire.RecordHeader <= len(b); {
		starts = append(starts, at)
		at += wire.RecordHeader + int(binary.BigEndian.Uint16(b[at+wire.RecordLength:]))
	}
	if n >= len(starts) {
		return 0
	}
	return starts[len(starts)-n]
}

// forHandshake returns the configuration for one handshake. It takes tickets and
// makes them with the keys of cfg, which all handshakes share.
//
// A control connection resumes any session, and its tickets tell whose they are.
// A data connection resumes the session of its own control connection only (RFC
// 4217 10.2). Its tickets tell the same, but only if it did so: else who
// has made one full handshake could resume with the ticket of that.
//
// Under TLS 1.2 such a data connection gets no new ticket. With one, OpenSSL's
// clients would forget the session of the control connection, and Net::FTP of
// Ruby could resume it once.
func forHandshake(h *Handshake, cfg *tls.Config) *tls.Config {
	own := cfg.Clone()
	own.WrapSession = func(state tls.ConnectionState, session *tls.SessionState) ([]byte, error) {
		// those of TLS 1.2 are a part of the handshake, which the client reads
		if h.hold != nil && state.Version == tls.VersionTLS13 {
			h.hold.issued++
		}
		if !h.data || state.DidResume {
			session.Extra = append(session.Extra, h.mark())
		}
		if h.data && state.DidResume && state.Version < tls.VersionTLS13 {
			return nil, nil // an empty one (RFC 5077 3.3)
		}
		return cfg.EncryptTicket(state, session)
	}
	if h.data {
		own.UnwrapSession = func(identity []byte, state tls.ConnectionState) (*tls.SessionState, error) {
			session, err := cfg.DecryptTicket(identity, state)
			if err != nil || session == nil || !slices.ContainsFunc(session.Extra, func(b []byte) bool {
				return bytes.Equal(b, h.mark())
			}) {
				return nil, err // a full handshake follows
			}
			return session, nil
		}
	}
	return own
}

// mark is what a ticket tells of its control connection. Clients cannot read it, because the server encrypts tickets.
func (h *Handshake) mark() []byte { return []byte("babelftp control connection " + h.Session) }
