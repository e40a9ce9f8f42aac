package doctor

import (
	"bufio"
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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	dialTimeout = 5 * time.Second
	// replyTimeout is how long a reply or a part of a transfer may take.
	replyTimeout = 15 * time.Second
	// quitTimeout is how long a goodbye may take, of which nothing depends.
	quitTimeout = 2 * time.Second
	// maxControl and maxData bound what a server may make this process keep, in bytes.
	maxControl = 1 << 20
	maxData    = 1 << 20
)

// A problem is a finding that ends a session.
type problem struct {
	id       ID
	args     []string
	evidence []string
	noRoute  bool // of an address that is unreachable
}

// Error is for a reader of code; people see the finding.
func (p *problem) Error() string { return string(p.id) + ": " + strings.Join(p.evidence, "; ") }

// A reply is one of the server, with all of its lines.
type reply struct {
	code int
	text string
}

func (r reply) String() string { return strconv.Itoa(r.code) + " " + r.text }

func (r reply) ok() bool { return r.code >= 200 && r.code < 300 }

// A session is one with the server, logged in.
type session struct {
	conn     net.Conn
	text     *textproto.Reader
	remote   netip.AddrPort
	stop     func() bool // ends what closes the connection with the context
	greeting reply
	features reply
	tls      *tls.Config // nil in the clear
	private  bool        // data connections are encrypted
	unsafe   []*problem  // what is wrong with the certificate, and yet the session goes on
	state    tls.ConnectionState
}

// send sends a command and reads its reply.
func (s *session) send(command string) (reply, error) {
	_ = s.conn.SetDeadline(time.Now().Add(replyTimeout))
	if _, err := io.WriteString(s.conn, command+"\r\n"); err != nil {
		return reply{}, err
	}
	return s.read()
}

// read reads a reply.
func (s *session) read() (reply, error) {
	if first, err := s.text.R.Peek(1); err == nil && (first[0] < '1' || first[0] > '5') {
		line, _ := s.text.ReadLine() // as far as there is one
		return reply{}, fmt.Errorf("no reply of FTP: %q", line)
	}
	code, text, err := s.text.ReadResponse(0)
	if r := (reply{code, text}); code != 0 {
		return r, nil
	}
	return reply{}, err
}

func (s *session) use(conn net.Conn) {
	s.conn, s.text = conn, textproto.NewReader(bufio.NewReader(io.LimitReader(conn, maxControl)))
}

// close ends the session.
func (s *session) close() {
	if s != nil {
		s.stop()
		_ = s.conn.SetDeadline(time.Now().Add(quitTimeout))
		if _, err := io.WriteString(s.conn, "QUIT\r\n"); err == nil {
			_, _ = s.read()
		}
		_ = s.conn.Close()
	}
}

// login opens a session. The error is a *problem. Some servers count a session for a moment after its end, so a limit
// on sessions is not taken at its word when there was one.
func (x *examination) login(ctx context.Context, address netip.AddrPort) (s *session, err error) {
	const attempts, pause = 4, 500 * time.Millisecond
	for range attempts {
		s, err = x.open(ctx, address)
		if p, _ := errors.AsType[*problem](err); p == nil || p.id != limitReached {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return s, err
}

// open opens a session, at once or not at all.
func (x *examination) open(ctx context.Context, address netip.AddrPort) (*session, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", address.String())
	if err != nil {
		return nil, &problem{id: addressUnreachable, args: []string{address.String()}, evidence: []string{err.Error()},
			noRoute: errors.Is(err, syscall.ENETUNREACH)}
	}
	s := &session{remote: address}
	s.use(conn)
	s.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
	if err := x.prepare(ctx, s); err != nil {
		s.stop()
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

// prepare brings a session from the greeting to the working directory of the examination.
func (x *examination) prepare(ctx context.Context, s *session) (err error) {
	_ = s.conn.SetDeadline(time.Now().Add(replyTimeout))
	if x.target.Implicit {
		if err := x.secure(ctx, s); err != nil {
			return err
		}
	}
	for s.greeting, err = s.read(); err == nil && s.greeting.code == 120; s.greeting, err = s.read() {
	}
	switch {
	case err != nil:
		return &problem{id: protocolMismatch, evidence: []string{s.remote.String() + ": " + err.Error()}}
	case s.greeting.code == 421:
		return &problem{id: limitReached, evidence: []string{s.greeting.String()}}
	case s.greeting.code != 220:
		return &problem{id: protocolMismatch, evidence: []string{s.greeting.String()}}
	}
	if !x.target.Implicit {
		auth, err := s.send("AUTH TLS")
		if err == nil && auth.code == 234 {
			err = x.secure(ctx, s)
		}
		if p, ok := errors.AsType[*problem](err); ok {
			return p
		}
		if s.tls == nil {
			s.unsafe = append(s.unsafe, &problem{id: tlsMissing, evidence: []string{"AUTH TLS", textOf(auth, err)}})
		}
		if err != nil {
			return &problem{id: protocolMismatch, evidence: []string{"AUTH TLS: " + err.Error()}}
		}
	}
	if err := x.authenticate(s); err != nil {
		return err
	}
	for _, command := range []string{"TYPE I", "FEAT", "OPTS UTF8 ON"} {
		r, err := s.send(command)
		if err != nil {
			return &problem{id: transferCut, evidence: []string{command + ": " + err.Error()}}
		}
		if command == "FEAT" {
			s.features = r
		}
	}
	if x.dir != "" {
		if r, err := s.send("CWD " + x.dir); err != nil || !r.ok() {
			return &problem{id: commandRefused, args: []string{"CWD"}, evidence: []string{textOf(r, err)}}
		}
	}
	return nil
}

// textOf is a reply, or why there is none.
func textOf(r reply, err error) string {
	if err != nil {
		return err.Error()
	}
	return r.String()
}

// authenticate logs in, and asks for encrypted data connections.
func (x *examination) authenticate(s *session) error {
	r, err := s.send("USER " + x.target.User)
	if err == nil && r.code == 331 {
		r, err = s.send("PASS " + x.target.Password)
	}
	switch {
	case err != nil:
		return &problem{id: protocolMismatch, evidence: []string{"USER: " + err.Error()}}
	case r.code == 421:
		return &problem{id: limitReached, evidence: []string{r.String()}}
	case !r.ok():
		return &problem{id: loginRefused, evidence: []string{r.String()}}
	case s.tls == nil:
		return nil
	}
	if _, err = s.send("PBSZ 0"); err == nil {
		r, err = s.send("PROT P")
	}
	if err != nil || !r.ok() {
		s.unsafe = append(s.unsafe, &problem{id: protection, evidence: []string{"PROT P", textOf(r, err)}})
		return nil
	}
	s.private = true
	return nil
}

// A frozen cache has the TLS session of the control connection, which data connections resume.
type frozen struct {
	session *tls.ClientSessionState
	full    bool
}

// Get implements [tls.ClientSessionCache].
func (f *frozen) Get(string) (*tls.ClientSessionState, bool) { return f.session, f.session != nil }

// Put keeps what comes before the first data connection.
func (f *frozen) Put(_ string, s *tls.ClientSessionState) {
	if !f.full && s != nil {
		f.session = s
	}
}

// secure begins TLS. Old versions are accepted in order to be found. No password goes to a server with a wrong
// certificate, unless the options say so.
func (x *examination) secure(ctx context.Context, s *session) error {
	s.tls = &tls.Config{
		ServerName: x.target.Host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS10,
		ClientSessionCache: &frozen{},
	}
	conn := tls.Client(s.conn, s.tls)
	if err := conn.HandshakeContext(ctx); err != nil {
		return &problem{id: protocolMismatch, evidence: []string{"TLS: " + err.Error()}}
	}
	s.use(conn)
	s.state = conn.ConnectionState()
	s.unsafe = append(s.unsafe, x.checkCertificate(s.state)...)
	if s.state.Version < tls.VersionTLS12 {
		s.unsafe = append(s.unsafe, &problem{id: tlsOld, evidence: []string{tls.VersionName(s.state.Version)}})
	}
	for _, p := range s.unsafe {
		if p.id != tlsOld && p.id != certificateSoon && !x.Insecure {
			return p
		}
	}
	return nil
}

// certificateSoon marks a certificate that is still good.
const certificateSoon = certificateExpired + "-soon"

// soon is how long before its end a certificate is a finding: renewal has failed then. Of one with a short life it is
// the last third.
const soon = 14 * 24 * time.Hour

// checkCertificate verifies the chain, the time and the name.
func (x *examination) checkCertificate(state tls.ConnectionState) (wrong []*problem) {
	leaf, between := state.PeerCertificates[0], x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		between.AddCert(c)
	}
	about := fmt.Sprintf("%s: %q, issuer %q, %s", leaf.SerialNumber, leaf.DNSNames, leaf.Issuer, leaf.NotAfter)
	now := time.Now()
	at := now
	if now.After(leaf.NotAfter) { // the chain is another question
		wrong = append(wrong, &problem{id: certificateExpired, evidence: []string{about}})
		at = leaf.NotAfter
	} else if now.Add(min(soon, leaf.NotAfter.Sub(leaf.NotBefore)/3)).After(leaf.NotAfter) {
		wrong = append(wrong, &problem{id: certificateSoon, evidence: []string{about}})
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: x.Authorities, Intermediates: between, CurrentTime: at})
	if err != nil {
		chain := fmt.Sprintf("%d", len(state.PeerCertificates))
		wrong = append(wrong, &problem{id: certificateUntrusted,
			evidence: []string{err.Error(), about, "chain: " + chain}})
	}
	if err := leaf.VerifyHostname(x.target.Host); err != nil {
		wrong = append(wrong, &problem{id: certificateName, args: []string{x.target.Host},
			evidence: []string{err.Error()}})
	}
	return wrong
}

// signature is what the servers behind one address have in common if they are alike. Numbers in a greeting change.
func (s *session) signature() string {
	certificate := ""
	if s.tls != nil {
		certificate = fmt.Sprintf(", certificate %x", sha256.Sum256(s.state.PeerCertificates[0].Raw))[:30]
	}
	lines := strings.Fields(s.features.text)
	slices.Sort(lines)
	features := fmt.Sprintf(", FEAT %x", sha256.Sum256([]byte(strings.Join(lines, " "))))[:15]
	return regexp.MustCompile(`\d+`).ReplaceAllString(s.greeting.text, "#") + features + certificate
}

var (
	passiveReply = regexp.MustCompile(`(\d{1,3}),(\d{1,3}),(\d{1,3}),(\d{1,3}),(\d{1,3}),(\d{1,3})`)
)

// passive asks for a port by EPSV or PASV. The address is not valid if there is none.
func (s *session) passive(verb string) (netip.AddrPort, reply, error) {
	r, err := s.send(verb)
	if err != nil || !r.ok() {
		return netip.AddrPort{}, r, err
	}
	if verb == "EPSV" {
		fields := strings.Split(r.text, "|")
		if len(fields) < 5 {
			return netip.AddrPort{}, r, nil
		}
		port, _ := strconv.ParseUint(fields[3], 10, 16) // 0 is found to be wrong
		return netip.AddrPortFrom(s.remote.Addr(), uint16(port)), r, nil
	}
	m := passiveReply.FindStringSubmatch(r.text)
	if m == nil {
		return netip.AddrPort{}, r, nil
	}
	var n [6]byte
	for i, text := range m[1:] {
		v, _ := strconv.ParseUint(text, 10, 8) // the same
		n[i] = byte(v)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(n[:4])), uint16(n[4])<<8|uint16(n[5])), r, nil
}

// transfer sends a command whose data goes over the connection that open returns after the preliminary reply, and
// returns what came and the last reply. body is what to send, nil for a transfer from the server.
func (s *session) transfer(command string, body []byte, open func() (net.Conn, error)) ([]byte, reply, error) {
	r, err := s.send(command)
	if err != nil || r.code >= 200 {
		return nil, r, err
	}
	conn, err := open()
	if err != nil {
		return nil, r, err
	}
	defer conn.Close()
	raw := conn
	_ = raw.SetDeadline(time.Now().Add(replyTimeout))
	if s.private {
		if cache, ok := s.tls.ClientSessionCache.(*frozen); ok {
			cache.full = true
		}
		conn = tls.Client(conn, s.tls)
	}
	var data []byte
	if body != nil {
		if _, err = conn.Write(body); err == nil {
			err = finish(conn, raw)
		}
	} else {
		data, err = io.ReadAll(io.LimitReader(conn, maxData))
	}
	_ = conn.Close()
	_ = s.conn.SetDeadline(time.Now().Add(replyTimeout))
	last, replied := s.read()
	if replied != nil {
		if err == nil {
			err = replied
		}
		return data, r, err
	}
	if !last.ok() { // the reply says more than the connection
		err = nil
	}
	return data, last, err
}

// finish ends an upload. It reads what the server has sent meanwhile, such as session tickets. Otherwise the connection
// would be reset at its end, and the server might lose the end of the file.
func finish(conn, raw net.Conn) error {
	if secure, ok := conn.(*tls.Conn); ok {
		if err := secure.CloseWrite(); err != nil {
			return err
		}
	}
	if half, ok := raw.(interface{ CloseWrite() error }); ok {
		if err := half.CloseWrite(); err != nil {
			return err
		}
	}
	_, _ = io.Copy(io.Discard, raw) // the server ends it, in one way or another
	return nil
}
