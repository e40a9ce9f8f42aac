package doctor

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A Target is a server and a user there.
type Target struct {
	Host           string
	Port           uint16
	Implicit       bool // TLS begins with the connection
	User, Password string
}

// ParseTarget reads a URL such as ftp://alice@ftp.example.com or ftps://ftp.example.com:990. Without a user it is
// anonymous. A password in it is an error, because other users of the machine see command lines.
func ParseTarget(text string) (Target, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "ftp" && u.Scheme != "ftps" {
		return Target{}, fmt.Errorf("%q is no URL like ftp://alice@ftp.example.com or ftps://alice@ftp.example.com", text)
	}
	t := Target{Host: u.Hostname(), Port: 21, Implicit: u.Scheme == "ftps", User: "anonymous", Password: "anonymous@"}
	if t.Implicit {
		t.Port = 990
	}
	if u.User != nil {
		if _, has := u.User.Password(); has {
			return Target{}, errors.New("the URL has a password, which others can see: leave it out")
		}
		t.User, t.Password = u.User.Username(), ""
	}
	if u.Port() != "" {
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil || port == 0 {
			return Target{}, fmt.Errorf("%q has no port from 1 to 65535", text)
		}
		t.Port = uint16(port)
	}
	if strings.ContainsAny(t.User, "\r\n") {
		return Target{}, errors.New("the user has a line break")
	}
	return t, nil
}

// Options say how to look at a server. The zero value is not useful: see the command line for good values.
type Options struct {
	Authorities *x509.CertPool // nil for those of the system
	Insecure    bool           // the password goes to a server with a wrong certificate
	Samples     int            // passive ports to try
	Logins      int            // sessions to compare
	Idle        time.Duration  // how long a control connection stays idle
	Progress    func(step string)
}

// An examination is one of a server.
type examination struct {
	Options
	target    Target
	found     Findings
	addresses []netip.AddrPort
	address   netip.AddrPort // that works
	way       string         // EPSV, PASV, or PORT: how data connections work; empty if they do not
	dir       string         // made by the examination
	prefix    string         // of its names
	made      []string       // files that may be there
}

// Examine looks at a server as a client does. It makes a directory and files there, and removes them, also after
// ctx has ended; then the error is that of ctx, and the findings are those up to there.
func Examine(ctx context.Context, target Target, o Options) (*Findings, error) {
	x := &examination{Options: o, target: target, prefix: "babelftp-doctor-" + strings.ToLower(rand.Text()[:8])}
	s := x.logins(ctx)
	if s != nil {
		x.data(ctx, s)
		x.remove(ctx)
		if ctx.Err() == nil {
			x.idle(ctx)
		}
	}
	return &x.found, ctx.Err()
}

// note adds a finding about the server.
func (x *examination) note(id ID, args []string, evidence ...string) {
	if id == certificateSoon {
		id = certificateExpired
	}
	x.found.about(id, "", "", args...).see(1, evidence...)
}

// noteProblem adds the finding of an error of login.
func (x *examination) noteProblem(ctx context.Context, err error) *problem {
	p, ok := errors.AsType[*problem](err)
	if ok && ctx.Err() == nil {
		x.note(p.id, p.args, p.evidence...)
	}
	return p
}

// logins resolves the name and logs in several times, at each address and as often as the options say. It returns the
// last session, or nil.
func (x *examination) logins(ctx context.Context) *session {
	x.Progress("DNS " + x.target.Host)
	resolved, err := net.DefaultResolver.LookupNetIP(ctx, "ip", x.target.Host)
	if err != nil {
		if ctx.Err() == nil {
			x.note(nameUnresolved, []string{x.target.Host}, err.Error())
		}
		return nil
	}
	for _, a := range resolved {
		x.addresses = append(x.addresses, netip.AddrPortFrom(a.Unmap(), x.target.Port))
	}
	var last *session
	servers := map[string]int{}
	var order []string
	for i := range max(len(x.addresses), x.Logins) {
		address := x.addresses[i%len(x.addresses)]
		x.Progress(fmt.Sprintf("USER %d %s", i+1, address))
		last.close() // a user may have one session only
		s, err := x.login(ctx, address)
		if err != nil {
			p, _ := errors.AsType[*problem](err)
			if ctx.Err() != nil || !x.passedOver(address.Addr(), p) {
				_ = x.noteProblem(ctx, err)
			}
			if last = nil; ctx.Err() != nil || p.id != addressUnreachable {
				break // a password that is wrong more often is a ban
			}
			continue
		}
		if signature := s.signature(); servers[signature] == 0 {
			order = append(order, signature)
		}
		servers[s.signature()]++
		for _, p := range s.unsafe {
			if len(servers) == 1 && servers[s.signature()] == 1 {
				x.note(p.id, p.args, p.evidence...)
			}
		}
		last, x.address = s, address
	}
	if last == nil && x.address.IsValid() && ctx.Err() == nil { // another address has worked
		last, _ = x.login(ctx, x.address)
	}
	if len(order) > 1 {
		for _, signature := range order {
			x.note(replicasDiffer, nil, fmt.Sprintf("%d × %s", servers[signature], signature))
		}
	}
	if last != nil && last.tls != nil {
		x.oldTLS(ctx)
	}
	return last
}

// passedOver tells whether clients use another address without being slowed down: this host has no route to it, or it
// is one of localhost.
func (x *examination) passedOver(address netip.Addr, p *problem) bool {
	return len(x.addresses) > 1 && p.id == addressUnreachable && (p.noRoute || address.IsLoopback())
}

// oldTLS looks whether the server accepts TLS 1.1.
func (x *examination) oldTLS(ctx context.Context) {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", x.address.String())
	if err != nil {
		return
	}
	defer conn.Close()
	s := &session{}
	s.use(conn)
	_ = conn.SetDeadline(time.Now().Add(replyTimeout))
	if !x.target.Implicit {
		_, _ = s.read()
		if r, err := s.send("AUTH TLS"); err != nil || r.code != 234 {
			return
		}
	}
	config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	old := tls.Client(conn, config)
	if old.HandshakeContext(ctx) == nil {
		x.note(tlsOld, nil, tls.VersionName(old.ConnectionState().Version))
	}
}

// data makes the directory and looks at all that needs data connections. It closes the session.
func (x *examination) data(ctx context.Context, s *session) {
	x.Progress("MKD " + x.prefix)
	if r, err := s.send("MKD " + x.prefix); err != nil || r.ok() { // without a reply it may be there
		x.dir, x.prefix = x.prefix, "doctor"
		_, _ = s.send("CWD " + x.dir)
	}
	private := s.private
	s = x.passivePorts(ctx, s)
	s.close()
	if ctx.Err() == nil {
		x.active(ctx)
	}
	if x.way == "" || ctx.Err() != nil {
		return
	}
	if x.way == "EPSV" {
		x.apart(ctx, "EPSV ALL", x.epsvAll)
	}
	if private {
		x.apart(ctx, "TLS", func(s *session) { x.sessionReuse(ctx, s) })
	}
	x.apart(ctx, "STOR", func(s *session) { x.files(ctx, s) })
}

// apart runs a check in a session of its own, because it may leave the session unusable.
func (x *examination) apart(ctx context.Context, step string, check func(*session)) {
	if ctx.Err() != nil {
		return
	}
	x.Progress(step)
	s, err := x.login(ctx, x.address)
	if err != nil {
		_ = x.noteProblem(ctx, err)
		return
	}
	defer s.close()
	check(s)
}

// A tried is what came of the passive ports of EPSV or PASV.
type tried struct {
	good, bad int
	evidence  []string
	missed    map[uint16]string // ports without a connection, and why
	wrong     bool              // another address is shown
	refused   string            // the reply of a server that does not know the command
}

// enough is how many failures end the sampling of a command that never works.
const enough = 4

// passivePorts asks for passive ports, connects to each, and lists the directory over it. It returns the session, or
// a new one where the old has become unusable; nil if there is none.
func (x *examination) passivePorts(ctx context.Context, s *session) *session {
	verbs := []string{"EPSV", "PASV"}
	if s.remote.Addr().Is6() {
		verbs = verbs[:1] // PASV has no room for such an address
	}
	all := map[string]*tried{"EPSV": {missed: map[uint16]string{}}, "PASV": {missed: map[uint16]string{}}}
	local := addrOf(s.conn.LocalAddr())
	for i := range max(x.Samples, len(verbs)) {
		verb := verbs[i%len(verbs)]
		t := all[verb]
		if ctx.Err() != nil || s == nil || t.refused != "" || t.good == 0 && t.bad >= enough {
			continue
		}
		if usable := x.sample(ctx, s, verb, t); !usable {
			s.close()
			s, _ = x.login(ctx, x.address)
		}
	}
	if ctx.Err() == nil {
		x.judge(verbs, all["EPSV"], all["PASV"], local)
	}
	return s
}

// sample tries one port. It returns false if the session is not usable after it.
func (x *examination) sample(ctx context.Context, s *session, verb string, t *tried) (usable bool) {
	address, r, err := s.passive(verb)
	fail := func(evidence ...string) {
		t.bad++
		t.evidence = append(t.evidence, evidence...)
	}
	switch {
	case err != nil:
		fail(verb + ": " + err.Error())
		return false
	case r.code >= 500:
		t.refused = r.String()
		return true
	case !address.IsValid():
		fail(verb, r.String())
		return true
	}
	x.Progress(fmt.Sprintf("%s %s", verb, address))
	if control := s.remote.Addr(); address.Addr() != control && !t.wrong {
		t.wrong = true
		x.note(passiveAddress, []string{address.Addr().String()}, verb, r.String(), "≠ "+control.String())
	}
	conn, err := x.dialData(ctx, s, address.Port())
	if err != nil {
		t.missed[address.Port()] = err.Error()
		fail(fmt.Sprintf("%s: %s", r, err))
		return true
	}
	_, last, err := s.transfer("LIST", nil, func() (net.Conn, error) { return conn, nil })
	_ = conn.Close()
	switch {
	case err == nil && last.ok():
		t.good++
		return true
	case ctx.Err() != nil:
	case last.code == 521 || last.code == 522 || last.code == 534 || last.code == 536:
		x.note(protection, nil, "LIST", last.String())
	case err == nil && last.code >= 500:
		x.note(commandRefused, []string{"LIST"}, last.String())
		t.good++ // of the port nothing is wrong
	case err == nil && last.code == 450: // some say so of an empty directory
		t.good++
	default:
		x.note(dataElsewhere, nil, r.String(), "LIST", textOf(last, err))
	}
	return err == nil
}

// dialData connects to a passive port at the address of the control connection.
func (x *examination) dialData(ctx context.Context, s *session, port uint16) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	return dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(s.remote.Addr(), port).String())
}

// judge says what is wrong from both ways to ask for a port, and chooses the one for the files.
func (x *examination) judge(verbs []string, extended, passive *tried, local netip.Addr) {
	for _, verb := range verbs {
		if t := map[string]*tried{"EPSV": extended, "PASV": passive}[verb]; t.good > 0 && x.way == "" {
			x.way = verb
		}
	}
	blocked := extended.good == 0 && extended.bad > 0 && passive.good > 0
	changed := passive.good == 0 && passive.bad > 0 && extended.good > 0
	switch {
	case blocked:
		x.note(inspected, []string{"EPSV"}, extended.evidence...)
	case changed && !passive.wrong:
		x.note(inspected, []string{"PASV"}, passive.evidence...)
	case !changed:
		for _, t := range []*tried{extended, passive} {
			for port, why := range t.missed {
				x.found.missed("", "", local.String(), 1, port, why)
			}
		}
	}
	if extended.refused != "" && passive.good > 0 {
		x.note(featureMissing, []string{"EPSV"}, extended.refused)
	}
}

// transfer runs a transfer in the way that works.
func (x *examination) transfer(ctx context.Context, s *session, command string, body []byte) ([]byte, reply, error) {
	if x.way == "PORT" {
		return s.activeTransfer(command, body)
	}
	address, r, err := s.passive(x.way)
	if err != nil || !address.IsValid() {
		return nil, r, err
	}
	conn, err := x.dialData(ctx, s, address.Port())
	if err != nil {
		return nil, r, err
	}
	defer conn.Close()
	return s.transfer(command, body, func() (net.Conn, error) { return conn, nil })
}

// activeTransfer lets the server connect.
func (s *session) activeTransfer(command string, body []byte) ([]byte, reply, error) {
	local := addrOf(s.conn.LocalAddr())
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(local, 0)))
	if err != nil {
		return nil, reply{}, err
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	ask := fmt.Sprintf("EPRT |2|%s|%d|", local, port)
	if local.Is4() {
		ask = fmt.Sprintf("PORT %s,%d,%d", strings.ReplaceAll(local.String(), ".", ","), port>>8, port&0xff)
	}
	if r, err := s.send(ask); err != nil || !r.ok() {
		return nil, r, err
	}
	_ = l.SetDeadline(time.Now().Add(replyTimeout))
	return s.transfer(command, body, func() (net.Conn, error) { return l.Accept() })
}

// active lists the directory in active mode.
func (x *examination) active(ctx context.Context) {
	x.apart(ctx, "PORT", func(s *session) {
		_, r, err := s.activeTransfer("LIST", nil)
		switch {
		case err != nil || !r.ok():
			x.note(activeFailed, nil, textOf(r, err))
		case x.way == "":
			x.way = "PORT"
		}
	})
}

// epsvAll tries EPSV ALL, after which a server takes EPSV only (RFC 2428 4).
func (x *examination) epsvAll(s *session) {
	r, err := s.send("EPSV ALL")
	if err == nil && !r.ok() {
		return // the server does not know it, and says so
	}
	evidence := []string{"EPSV ALL", textOf(r, err)}
	if err == nil {
		if _, r, err = s.passive("EPSV"); err == nil && r.ok() {
			return
		}
		evidence = append(evidence, "EPSV", textOf(r, err))
	}
	x.note(inspected, []string{"EPSV ALL"}, evidence...)
}

// sessionReuse looks whether a data connection works that does not resume the TLS session.
func (x *examination) sessionReuse(ctx context.Context, s *session) {
	s.tls = s.tls.Clone()
	s.tls.ClientSessionCache = nil
	if _, r, err := x.transfer(ctx, s, "LIST", nil); err != nil || !r.ok() {
		x.note(tlsReuse, nil, "LIST", textOf(r, err))
	}
}

// addrOf is the address of an end of a connection.
func addrOf(a net.Addr) netip.Addr {
	tcp, _ := a.(*net.TCPAddr) // nil has no address
	return tcp.AddrPort().Addr().Unmap()
}
