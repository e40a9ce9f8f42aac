package dataconn

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"net"
	"time"

	"github.com/babelftp/babelftp/internal/wire"
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

// holdOfHandshake is the key of a handshake's context under which its
// ticketHold is.
type holdOfHandshake struct{}

// withHold is the context of a handshake whose tickets are to be held.
func withHold(ctx context.Context, hold *ticketHold) context.Context {
	return context.WithValue(ctx, holdOfHandshake{}, hold)
}

// holdTickets returns the configuration for a handshake whose context is from
// withHold. It counts the tickets of TLS 1.3. Those of TLS 1.2 are a part of the handshake,
// which the client reads. All handshakes share the keys of cfg, so that any
// connection resumes the session of any other.
func holdTickets(ctx context.Context, cfg *tls.Config) *tls.Config {
	hold, ok := ctx.Value(holdOfHandshake{}).(*ticketHold)
	if !ok {
		return nil
	}
	counting := cfg.Clone()
	counting.WrapSession = func(state tls.ConnectionState, session *tls.SessionState) ([]byte, error) {
		if state.Version == tls.VersionTLS13 {
			hold.issued++
		}
		return cfg.EncryptTicket(state, session)
	}
	return counting
}
