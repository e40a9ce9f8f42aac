package doctor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/textproto"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/internal/base/ftpclient"
	"github.com/babelftp/babelftp/internal/base/netaddr"
)

const (
	dialTimeout = 5 * time.Second
	// replyTimeout limits the wait for a reply or a part of a transfer.
	replyTimeout = 15 * time.Second
	// greetingTimeout limits the wait for the greeting. A greeting that takes longer than slowGreeting is a
	// finding.
	greetingTimeout, slowGreeting = 45 * time.Second, 4 * time.Second
	// strayTimeout limits the wait for an unexpected reply.
	strayTimeout = 500 * time.Millisecond
	// quitTimeout limits the wait for the reply to QUIT, which does not matter.
	quitTimeout = 2 * time.Second
	// Effects of ending a session may be delayed on the server, so some steps are repeated with a pause.
	attempts, pause = 4, 500 * time.Millisecond
	// maxRead limits the bytes of a download that are kept.
	maxRead = 1 << 20
)

// software is the name that doctor sends with CLNT.
const software = "babelftp-doctor"

// A reply is a reply of the server with all its lines. If no reply arrived, the code is 0 and the text is the
// error.
type reply struct {
	code    int
	text    string
	timeout bool   // timed out
	foreign bool   // not an FTP reply
	missed  bool   // no passive port could be reached, which was already added to the findings
	command string // the failed command if it is not the transfer command itself
}

func failed(err error) reply {
	_, foreign := errors.AsType[textproto.ProtocolError](err)
	return reply{text: err.Error(), timeout: errors.Is(err, os.ErrDeadlineExceeded), foreign: foreign}
}

func newReply(code int, text string, err error) reply {
	if err != nil {
		return failed(err)
	}
	return reply{code: code, text: text}
}

func (r reply) String() string {
	if r.code == 0 {
		return r.text
	}
	return strconv.Itoa(r.code) + " " + r.text
}

func (r reply) ok() bool { return r.code/100 == 2 }

// A session is a session on the server.
type session struct {
	conn     *ftpclient.Conn
	remote   netip.AddrPort
	greeting string
	auth     reply // reply to AUTH TLS
	features reply
	tls      *tls.Config // nil without TLS
	private  bool        // data connections are encrypted
	state    tls.ConnectionState
	warnings []*Finding // findings to add after the first login, most of them about TLS
	missed   func(port uint16, err error)
}

// send sends a command and reads its reply.
func (s *session) send(command string) reply {
	_ = s.conn.SetDeadline(time.Now().Add(replyTimeout))
	return newReply(s.conn.Cmd(command))
}

// wait waits for a reply: the greeting, the last reply of a transfer, or an unexpected reply.
func (s *session) wait(timeout time.Duration) reply {
	_ = s.conn.SetDeadline(time.Now().Add(timeout))
	return newReply(s.conn.Reply())
}

// close ends the session, which may be nil.
func (s *session) close() {
	if s != nil {
		_ = s.conn.SetDeadline(time.Now().Add(quitTimeout))
		_, _, _ = s.conn.Cmd("QUIT")
		_ = s.conn.Close()
	}
}

// login opens a session and logs in, or returns the reason why it cannot. Some servers count a session for a
// moment after its end, so login retries after a reply that may come from a limit on sessions.
func (x *examination) login(ctx context.Context, address netip.AddrPort) (*session, *Finding) {
	for attempt := 1; ; attempt++ {
		s, f := x.connect(ctx, address, 0)
		if f == nil {
			f = x.logIn(s)
			if !x.tlsChecked {
				x.add(s.warnings...)
				x.tlsChecked = true
			}
			if f == nil {
				return s, nil
			}
			s.close()
		}
		again := f.ID == limitReached || f.ID == unavailable
		if !again || attempt == attempts || ctx.Err() != nil {
			return nil, f
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// connect opens a session, with TLS if the server offers it, up to the version newest (0 for no limit).
func (x *examination) connect(ctx context.Context, address netip.AddrPort, newest uint16) (*session, *Finding) {
	conn, err := dial(ctx, address)
	if err != nil {
		f := newFinding(addressUnreachable, []string{address.String()}, err.Error())
		f.harmless = errors.Is(err, syscall.ENETUNREACH) || address.Addr().IsLoopback()
		return nil, f
	}
	s := &session{conn: ftpclient.New(ctx, conn), remote: address}
	s.missed = func(port uint16, err error) { x.addMissed(s.local(), port, err.Error()) }
	if f := x.greet(ctx, s, newest); f != nil {
		_ = s.conn.Close()
		return nil, f
	}
	return s, nil
}

// greet reads the greeting, and starts TLS if the server offers it.
func (x *examination) greet(ctx context.Context, s *session, newest uint16) *Finding {
	if x.target.Implicit {
		if err := s.startTLS(ctx, x.target.Host, newest); err != nil {
			return x.withoutTLS(ctx, s.remote, err)
		}
	}
	began := time.Now()
	r := s.wait(slowGreeting)
	if r.code == 0 && !x.target.Implicit && x.beginsTLS(ctx, s.remote) {
		return newFinding(protocolMismatch, nil, s.remote.String(), r.String(), "TLS: ok")
	}
	if r.timeout {
		r = s.wait(greetingTimeout - slowGreeting)
	}
	for r.code == 120 {
		r = s.wait(replyTimeout)
	}
	if waited := time.Since(began); r.code == 220 && waited > slowGreeting {
		f := newFinding(slow, []string{wholeSeconds(waited)}, r.String()+" (DNS? ident?)")
		f.harmless = true
		s.warnings = append(s.warnings, f)
	}
	s.greeting = r.text
	switch {
	case r.code == 220:
	case r.code == 0 && r.foreign:
		return newFinding(protocolMismatch, nil, s.remote.String(), r.String())
	case r.code == 0:
		return newFinding(noGreeting, []string{s.remote.String()}, r.String())
	default:
		return x.loginFailed("", r)
	}
	if x.target.Implicit {
		return nil
	}
	return x.upgrade(ctx, s, newest)
}

// withoutTLS returns the reason why implicit TLS failed: the port may be for explicit TLS, or for something else.
func (x *examination) withoutTLS(ctx context.Context, address netip.AddrPort, failed error) *Finding {
	evidence := []string{address.String(), "TLS: " + failed.Error()}
	if conn, err := dial(ctx, address); err == nil {
		s := &session{conn: ftpclient.New(ctx, conn)}
		r := s.wait(slowGreeting)
		s.close()
		if r.code != 0 {
			return newFinding(protocolMismatch, nil, append(evidence, r.String())...)
		}
	}
	if alert := (*net.OpError)(nil); errors.As(failed, &alert) && alert.Op == "remote error" {
		return newFinding(tlsFailed, nil, evidence...)
	}
	return newFinding(noGreeting, []string{address.String()}, evidence...)
}

// beginsTLS reports whether a server uses implicit TLS.
func (x *examination) beginsTLS(ctx context.Context, address netip.AddrPort) bool {
	conn, err := dial(ctx, address)
	if err != nil {
		return false
	}
	s := &session{conn: ftpclient.New(ctx, conn)}
	defer s.conn.Close()
	return s.startTLS(ctx, x.target.Host, 0) == nil
}

// upgrade starts explicit TLS if the server offers it, up to the version newest (0 for no limit).
func (x *examination) upgrade(ctx context.Context, s *session, newest uint16) *Finding {
	if newest != 0 { // the handshake may fail, and then the log of the server shows that doctor caused it
		_ = s.send("CLNT " + software)
	}
	switch s.auth = s.send("AUTH TLS"); {
	case s.auth.code == 0:
		return newFinding(protocolMismatch, nil, "AUTH TLS", s.auth.String())
	case s.auth.code == 234:
		if err := s.startTLS(ctx, x.target.Host, newest); err != nil {
			return newFinding(tlsFailed, nil, "AUTH TLS", err.Error())
		}
	case !x.tlsChecked:
		// A second reply means that the server received something before the command, such as a PROXY header.
		if r := s.wait(strayTimeout); r.code != 0 || r.foreign {
			return newFinding(proxyHeader, nil, "AUTH TLS", s.auth.String(), r.String())
		}
	}
	return nil
}

// logIn logs in and changes to the directory of the examination. It sends a password to an unencrypted or
// unverified server only if the options allow it.
func (x *examination) logIn(s *session) *Finding {
	x.checkTLS(s)
	harmful := func(f *Finding) bool { return !f.harmless }
	if at := slices.IndexFunc(s.warnings, harmful); at >= 0 && !x.Insecure && x.target.User != anonymous {
		return newFinding(passwordKept, nil, s.warnings[at].Evidence...)
	}
	command := "USER"
	r := s.send("USER " + x.target.User)
	if r.code == 331 {
		command, r = "PASS", s.send("PASS "+x.target.Password)
	}
	switch {
	case r.code == 0 && strings.Contains(r.text, "certificate required"): // an alert of TLS 1.3
		return newFinding(clientCertificate, nil, command, r.String())
	case r.code == 0:
		return newFinding(unavailable, nil, command, r.String())
	case !r.ok():
		return x.loginFailed(command, r)
	}
	if s.tls != nil {
		_ = s.send("PBSZ 0")
		if r = s.send("PROT P"); r.ok() {
			s.private = true
		} else {
			s.warnings = append(s.warnings, newFinding(protection, nil, "PROT P", r.String()))
		}
	}
	_ = s.send("CLNT " + software)
	_ = s.send("TYPE I")
	x.feat(s)
	if r = s.send("OPTS UTF8 ON"); r.code == 0 {
		return newFinding(transferCut, nil, "OPTS UTF8 ON", r.String())
	}
	if x.dir != "" {
		return x.classifyReply("CWD", s.send("CWD "+x.dir))
	}
	return nil
}

// feat requests the features. If the reply does not end, the session has no features, and other sessions do not
// request them.
func (x *examination) feat(s *session) {
	if x.endless {
		return
	}
	if r := s.send("FEAT"); r.code != 0 {
		s.features = r
	} else {
		x.endless = true
		x.note(commandBroken, []string{"FEAT"}, "FEAT", r.String())
	}
}

// full matches replies of a server with a full disk. Some servers have codes for that.
var full = regexp.MustCompile(`(?i)no space|disk full|quota`)

// A frozen cache holds the TLS session of the control connection, so that data connections resume it.
type frozen struct {
	session *tls.ClientSessionState
	full    bool
}

// Get implements [tls.ClientSessionCache].
func (f *frozen) Get(string) (*tls.ClientSessionState, bool) { return f.session, f.session != nil }

// Put stores sessions until the first data connection.
func (f *frozen) Put(_ string, s *tls.ClientSessionState) {
	if !f.full && s != nil {
		f.session = s
	}
}

// startTLS starts TLS. It accepts old versions and wrong certificates, so that they can be reported.
func (s *session) startTLS(ctx context.Context, host string, newest uint16) (err error) {
	s.tls = &tls.Config{ServerName: host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: newest,
		ClientSessionCache: &frozen{}}
	_ = s.conn.SetDeadline(time.Now().Add(replyTimeout))
	s.state, err = s.conn.StartTLS(ctx, s.tls)
	return err
}

// expiresSoon is the remaining lifetime at which a certificate is a finding, because its renewal must have failed.
// For a certificate with a short lifetime it is a third of it.
const expiresSoon = 14 * 24 * time.Hour

// checkTLS adds findings about TLS: missing TLS, an old version, or problems with the dates, the chain or the name
// of the certificate.
func (x *examination) checkTLS(s *session) {
	wrong := func(id ID, args []string, evidence ...string) *Finding {
		f := newFinding(id, args, evidence...)
		s.warnings = append(s.warnings, f)
		return f
	}
	if s.tls == nil {
		wrong(tlsMissing, nil, "AUTH TLS", s.auth.String())
		return
	}
	if s.state.Version < tls.VersionTLS12 {
		wrong(tlsOld, nil, tls.VersionName(s.state.Version)).harmless = true
	}
	leaf, between := s.state.PeerCertificates[0], x509.NewCertPool()
	for _, c := range s.state.PeerCertificates[1:] {
		between.AddCert(c)
	}
	about := fmt.Sprintf("serial %s, names %s, issuer %q, expires %s", serialNumber(leaf.SerialNumber.Bytes()),
		strings.Join(namesOf(leaf), " "), leaf.Issuer, leaf.NotAfter.UTC().Format(time.RFC3339))
	now := time.Now()
	at := now
	if now.After(leaf.NotAfter) { // check the rest of the chain as of the end of this certificate
		wrong(certificateExpired, nil, about)
		at = leaf.NotAfter
	} else if now.Add(min(expiresSoon, leaf.NotAfter.Sub(leaf.NotBefore)/3)).After(leaf.NotAfter) {
		wrong(certificateExpired, nil, about).harmless = true
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: x.Authorities, Intermediates: between, CurrentTime: at})
	invalid, _ := errors.AsType[x509.CertificateInvalidError](err)
	renewed := at != now && invalid.Reason == x509.Expired // other certificates of the chain may be newer
	if err != nil && !renewed {
		wrong(certificateUntrusted, nil, err.Error(), about, fmt.Sprintf("chain: %d", len(s.state.PeerCertificates)))
	}
	if err := leaf.VerifyHostname(x.target.Host); err != nil {
		wrong(certificateName, []string{x.target.Host}, err.Error())
	}
}

// serialNumber formats a serial number like openssl and browsers: 0A:1B:2C.
func serialNumber(b []byte) string {
	text := fmt.Sprintf("% X", b)
	return strings.ReplaceAll(text, " ", ":")
}

// namesOf returns the host names and addresses for which a certificate is valid.
func namesOf(c *x509.Certificate) []string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// signature returns a text that is equal for equal servers behind one address. Numbers in a greeting are ignored,
// because they change.
func (s *session) signature() string {
	lines := strings.Fields(s.features.text)
	slices.Sort(lines)
	certificate := []byte{}
	if s.tls != nil {
		certificate = s.state.PeerCertificates[0].Raw
	}
	return fmt.Sprintf("%s, FEAT %.4x, certificate %.8x", regexp.MustCompile(`\d+`).ReplaceAllString(s.greeting, "#"),
		sha256.Sum256([]byte(strings.Join(lines, " "))), sha256.Sum256(certificate))
}

// passive requests a port with EPSV or PASV. If it fails, the address is invalid.
func (s *session) passive(verb string) (none netip.AddrPort, r reply) {
	if r = s.send(verb); !r.ok() {
		return none, r
	}
	if verb == "EPSV" {
		var port uint16 // 0 is reported later
		if _, after, ok := strings.Cut(r.text, "|||"); ok {
			_, _ = fmt.Sscanf(after, "%d|", &port)
		}
		return netip.AddrPortFrom(s.remote.Addr(), port), r
	}
	var n [6]byte
	digits := r.text[max(0, strings.IndexAny(r.text, "0123456789")):]
	if _, err := fmt.Sscanf(digits, "%d,%d,%d,%d,%d,%d", &n[0], &n[1], &n[2], &n[3], &n[4], &n[5]); err != nil {
		return none, r
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(n[:4])), uint16(n[4])<<8|uint16(n[5])), r
}

// dial connects to a passive port at the address of the control connection.
func (s *session) dial(ctx context.Context, port uint16) (net.Conn, error) {
	return dial(ctx, netip.AddrPortFrom(s.remote.Addr(), port))
}

func dial(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address.String())
}

// transfer runs a transfer with EPSV, PASV or PORT. body is the data to send, or nil to receive data.
func (s *session) transfer(ctx context.Context, mode, command string, body []byte) ([]byte, reply) {
	if mode == "PORT" {
		return s.activeTransfer(command, body)
	}
	const ports = 3 // because a single unreachable port says nothing about the command
	for attempt := 1; ; attempt++ {
		address, r := s.passive(mode)
		if !address.IsValid() {
			r.command = mode
			return nil, r
		}
		conn, err := s.dial(ctx, address.Port())
		if err == nil {
			defer conn.Close()
			return s.run(command, body, func() (net.Conn, error) { return conn, nil })
		}
		if s.missed(address.Port(), err); attempt == ports || ctx.Err() != nil {
			return nil, reply{text: err.Error(), missed: true}
		}
	}
}

// activeTransfer runs a transfer for which the server connects to this client.
func (s *session) activeTransfer(command string, body []byte) ([]byte, reply) {
	local := s.local()
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(local, 0)))
	if err != nil {
		return nil, failed(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	ask := fmt.Sprintf("EPRT |2|%s|%d|", local, port)
	if local.Is4() {
		ask = fmt.Sprintf("PORT %s,%d,%d", strings.ReplaceAll(local.String(), ".", ","), port>>8, port&0xff)
	}
	if r := s.send(ask); !r.ok() {
		r.command, _, _ = strings.Cut(ask, " ")
		return nil, r
	}
	_ = l.SetDeadline(time.Now().Add(replyTimeout))
	return s.run(command, body, func() (net.Conn, error) { return l.Accept() })
}

// run sends a command whose data uses the connection that open returns after the preliminary reply. It returns the
// received data and the last reply.
func (s *session) run(command string, body []byte, open func() (net.Conn, error)) ([]byte, reply) {
	r := s.send(command)
	if r.code/100 != 1 {
		return nil, r
	}
	raw, err := open()
	if err != nil {
		return nil, failed(err)
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(replyTimeout))
	conn := raw
	if s.private {
		if cache, ok := s.tls.ClientSessionCache.(*frozen); ok {
			cache.full = true
		}
		conn = tls.Client(raw, s.tls)
	}
	var data []byte
	if body == nil {
		data, err = io.ReadAll(io.LimitReader(conn, maxRead))
	} else if _, err = conn.Write(body); err == nil {
		err = finish(conn, raw)
	}
	_ = conn.Close()
	// A negative reply is more informative than the error of the connection.
	if r = s.wait(replyTimeout); err != nil && (r.ok() || r.code == 0) {
		return data, failed(err)
	}
	return data, r
}

// finish ends an upload. It reads data that the server has sent during the upload, such as session tickets,
// because otherwise closing the socket would reset the connection and the server might lose the end of the file.
func finish(conn, raw net.Conn) (err error) {
	if secure, ok := conn.(*tls.Conn); ok {
		err = secure.CloseWrite()
	}
	if half, ok := raw.(*net.TCPConn); ok {
		err = cmp.Or(err, half.CloseWrite())
	}
	_, _ = io.Copy(io.Discard, raw) // until the server ends it
	return err
}

// local returns the local address of the control connection.
func (s *session) local() netip.Addr { return netaddr.Of(s.conn.LocalAddr()) }
