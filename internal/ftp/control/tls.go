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

// auth handles AUTH (RFC 4217, 4). TLS starts after the reply.
func (s *session) auth(mechanism string) (wire.Reply, error) {
	switch wire.Upper(mechanism) {
	case "TLS", "TLS-C", "SSL": // RFC 4217, 17; old devices send SSL
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

// beginTLS runs after the reply to AUTH.
func (s *session) beginTLS() wire.Reply {
	s.logOut()
	r, ok := s.startTLS(s.dialogue.conn.StartTLS)
	s.dialogue.closing = !ok
	return r
}

// startImplicitTLS starts TLS if it is implicit. It returns false if that fails.
func (s *session) startImplicitTLS() bool {
	r, ok := s.startTLS(s.dialogue.conn.StartImplicitTLS)
	if r.Code != 0 {
		s.finish(r, nil)
	}
	return ok
}

// startTLS starts TLS on the control connection. If it fails, the returned reply, if any, can be sent in the
// clear.
func (s *session) startTLS(start func(context.Context, *tls.Config) error) (r wire.Reply, ok bool) {
	ctx, cancel := s.dialogue.loginUntil.Context(s.ctx)
	defer cancel()
	s.dialogue.tlsSession = rand.Text()
	if err := start(dataconn.WithHandshake(ctx, s.dialogue.handshake(s.identity.hostname)), s.cfg.TLS); err != nil {
		hint := sessionlog.HandshakeHint(err, s.dialogue.implicit)
		if more, first := s.log.SampleStranger("handshake", hint); first {
			s.log.Info("TLS handshake failed; logged once a minute for each address",
				"err", err, "hint", hint, "more", more)
		}
		if errors.Is(err, wire.ErrNotTLS) {
			r = wire.NewReply(421, s.identity.text(i18n.TLSFailed))
		}
		return r, false
	}
	if err := s.cfg.Backend.Admit(s.dialogue.conn.Certificates()); err != nil {
		if more, first := s.log.SampleStranger("certificate", ""); first {
			s.log.Info("client refused; logged once a minute for each address", "err", err, "more", more)
		}
		return wire.NewReply(421, s.identity.text(i18n.ClientCertificateRequired)), false // RFC 4217 10.1
	}
	s.takeServerName()
	s.identity.onlyTLS = true
	s.identify()
	return r, true
}

// pbsz handles PBSZ (RFC 4217, 8). TLS needs no buffer size, but a number over 32 bits is invalid (RFC 2228, 3).
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

// prot handles PROT (RFC 4217, 9).
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

// ccc handles CCC, which asks to end TLS on the control connection. It is always refused.
func (s *session) ccc(string) (wire.Reply, error) {
	if s.dialogue.conn.Encrypted() {
		return s.reply(534, i18n.EncryptionStays)
	}
	return s.reply(533, i18n.TLSFirst)
}
