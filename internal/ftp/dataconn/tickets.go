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

// A ticketHold is the connection below TLS for an upload. It holds back everything that the server writes from the
// first session ticket on, and sends it when the connection closes.
//
// Under TLS 1.3, crypto/tls sends a ticket directly after the handshake. A client that only writes never reads it.
// When such a client closes its socket, its kernel sends RST instead of FIN (RFC 1122, 4.2.2.13), which may
// discard the last bytes of the upload. Net::FTP of Ruby and Net::FTP of Perl are such clients.
//
// Tickets cannot be disabled in the configuration, because crypto/tls would then not resume sessions, which some
// clients require.
type ticketHold struct {
	net.Conn
	issued int    // number of tickets in the next write of crypto/tls
	held   []byte // held records, nil before the first ticket
}

// maxHeld limits the held bytes. These are a ticket of some hundred bytes, close_notify, and replies to key
// updates (RFC 8446, 4.6.3).
const maxHeld = 16 << 10

// Write holds back the records of tickets and all later records, because TLS records are numbered.
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

// release sends the held records.
func (h *ticketHold) release() error {
	_, err := h.Conn.Write(h.held)
	h.held = h.held[:0]
	return err
}

// Close sends the held records and closes the connection. If the client has gone, nothing is lost.
func (h *ticketHold) Close() error {
	if len(h.held) > 0 {
		_ = h.SetWriteDeadline(time.Now().Add(wire.TLSTimeout)) // tls.Conn has left an expired deadline
		_ = h.release()
	}
	return h.Conn.Close()
}

// lastRecords returns the offset of the last n TLS records in b.
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

// forHandshake returns the configuration of one handshake, a copy of cfg. It encrypts and decrypts session tickets with
// the current keys of tickets.
//
// A control connection may resume any session, and its tickets are marked with the control connection. A data
// connection may only resume the session of its own control connection (RFC 4217, 10.2). Its tickets are marked as
// well, but only if it resumed that session. Otherwise another client that made one full handshake could resume
// with the ticket it got.
//
// Under TLS 1.2 a data connection that resumes gets no new ticket. Clients that use OpenSSL would replace the
// session of the control connection with it, and Net::FTP of Ruby could resume only once.
func forHandshake(h *Handshake, cfg, tickets *tls.Config) *tls.Config {
	own := cfg.Clone()
	own.WrapSession = func(state tls.ConnectionState, session *tls.SessionState) ([]byte, error) {
		// tickets of TLS 1.2 are a part of the handshake, which every client reads
		if h.hold != nil && state.Version == tls.VersionTLS13 {
			h.hold.issued++
		}
		if !h.data || state.DidResume {
			session.Extra = append(session.Extra, h.mark())
		}
		if h.data && state.DidResume && state.Version < tls.VersionTLS13 {
			return nil, nil // empty ticket (RFC 5077, 3.3)
		}
		return tickets.EncryptTicket(state, session)
	}
	own.UnwrapSession = func(identity []byte, state tls.ConnectionState) (*tls.SessionState, error) {
		session, err := tickets.DecryptTicket(identity, state)
		isOwn := func(extra []byte) bool { return bytes.Equal(extra, h.mark()) }
		if err != nil || session == nil || h.data && !slices.ContainsFunc(session.Extra, isOwn) {
			return nil, err // leads to a full handshake
		}
		return session, nil
	}
	return own
}

// mark returns the part of a ticket that identifies the control connection. Clients cannot read it, because
// tickets are encrypted.
func (h *Handshake) mark() []byte { return []byte("babelftp control connection " + h.Session) }
