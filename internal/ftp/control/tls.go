package control

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"strconv"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
)

// auth is AUTH (RFC 4217 4). TLS begins after the reply.
func (s *session) auth(mechanism string) (wire.Reply, error) {
	switch wire.Upper(mechanism) {
	case "TLS", "TLS-C", "SSL": // RFC 4217 17; SSL is what old devices call it
	default:
		return s.reply(504, i18n.ParameterNotImplemented, "AUTH")
	}
	switch {
	case s.cfg.TLS == nil:
		return s.reply(431, i18n.TLSUnavailable)
	case s.dialogue.conn.Encrypted():
		return s.reply(503, i18n.TLSActive)
	}
	return s.reply(234, i18n.TLSStarting)
}

// beginTLS comes after the reply to AUTH.
func (s *session) beginTLS() wire.Reply {
	s.logOut()
	r, ok := s.startTLS(s.dialogue.conn.StartTLS)
	s.dialogue.closing = !ok
	return r
}

// begunImplicitTLS begins TLS where it comes with the connection. It returns false where that fails.
func (s *session) begunImplicitTLS() bool {
	r, ok := s.startTLS(s.dialogue.conn.StartImplicitTLS)
	if r.Code != 0 {
		s.finish(r, nil)
	}
	return ok
}

// startTLS makes the control connection one under TLS. Where that fails, the client may read a reply.
func (s *session) startTLS(start func(context.Context, *tls.Config) error) (r wire.Reply, ok bool) {
	ctx, cancel := s.dialogue.loginUntil.Context(s.ctx)
	defer cancel()
	s.dialogue.tlsSession = rand.Text()
	if err := start(dataconn.WithHandshake(ctx, s.dialogue.handshake(s.identity.hostname)), s.cfg.TLS); err != nil {
		hint := sessionlog.HandshakeHint(err, s.dialogue.implicit)
		if more, first := s.log.Seldom("handshake", hint); first {
			s.log.Info("TLS handshake failed; the log shows one a minute for an address",
				"err", err, "hint", hint, "more", more)
		}
		if errors.Is(err, wire.ErrNotTLS) {
			r = wire.NewReply(421, s.identity.text(i18n.TLSFailed))
		}
		return r, false
	}
	if err := s.cfg.Backend.Admit(s.dialogue.conn.Certificates()); err != nil {
		if more, first := s.log.Seldom("certificate", ""); first {
			s.log.Info("client refused; the log shows one a minute for an address", "err", err, "more", more)
		}
		return wire.NewReply(421, s.identity.text(i18n.ClientCertificateRequired)), false // RFC 4217 10.1
	}
	s.takeServerName()
	s.identity.onlyTLS = true
	s.identify()
	return r, true
}

// pbsz is PBSZ (RFC 4217 8): over TLS there is no buffer to agree on, but what does not fit in 32 bits is no size
// (RFC 2228 3).
func (s *session) pbsz(size string) (wire.Reply, error) {
	_, err := strconv.ParseUint(size, 10, 32)
	switch {
	case !s.dialogue.conn.Encrypted():
		return s.reply(503, i18n.TLSFirst)
	case err != nil:
		return wire.Reply{}, errSyntax
	default:
		s.data.sized = true
		return wire.NewReply(200, "PBSZ=0"), nil
	}
}

// prot is PROT (RFC 4217 9).
func (s *session) prot(level string) (wire.Reply, error) {
	switch level = wire.Upper(level); {
	case !s.dialogue.conn.Encrypted():
		return s.reply(503, i18n.TLSFirst)
	case !s.data.sized:
		return s.reply(503, i18n.ProtectionSizeFirst)
	case level == "P":
		s.data.private = true
		return s.reply(200, i18n.ProtectionPrivate)
	case level == "C" && s.mustEncrypt():
		return s.reply(534, i18n.ProtectionRequired)
	case level == "C":
		s.data.private = false
		return s.reply(200, i18n.ProtectionClear)
	case level == "S" || level == "E":
		return s.reply(536, i18n.ProtectionUnsupported)
	default:
		return s.reply(504, i18n.ParameterNotImplemented, "PROT")
	}
}

// ccc is CCC, which would end TLS on the control connection. The server refuses it.
func (s *session) ccc(string) (wire.Reply, error) {
	if s.dialogue.conn.Encrypted() {
		return s.reply(534, i18n.EncryptionStays)
	}
	return s.reply(533, i18n.TLSFirst)
}
