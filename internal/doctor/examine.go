package doctor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"
)

// anonymous is a user without a secret.
const anonymous = "anonymous"

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
	t := Target{Host: u.Hostname(), Port: 21, Implicit: u.Scheme == "ftps", User: anonymous, Password: "anonymous@"}
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
	Authorities *x509.CertPool // nil for those of the system.
	Insecure    bool           // the password goes without TLS too
	Samples     int            // passive ports to try
	Logins      int            // sessions to compare
	Idle        time.Duration  // how long a control connection stays idle
	Limit       time.Duration  // of the whole examination; 0 for a few minutes.
	Progress    func(step string)
}

// limit ends an examination that a server holds up by leaving out or delaying one reply after the other. It has room
// for ports that do not answer, and for the idle connection.
func (o *Options) limit() time.Duration {
	const replies = 3 * time.Minute
	return cmp.Or(o.Limit, replies+o.Idle+time.Duration(o.Samples+o.Logins)*dialTimeout)
}

// An examination is one of a server.
type examination struct {
	Options
	target  Target
	ended   func() error // that of the context
	found   Findings
	judged  bool           // TLS was
	endless bool           // the reply to FEAT is.
	lists   bool           // a listing has worked
	differ  bool           // the servers at the addresses
	address netip.AddrPort // that works
	way     string         // EPSV, PASV, PORT, or none works
	dir     string         // made by the examination
	prefix  string         // of its names
	made    []string       // files that may be there

	meanings  map[string]ID // of the texts of babelftp
	templates []template
}

// Examine looks at a server as a client does. It makes a directory and files there, and removes them, also after
// ctx has ended; then the error is that of ctx, and the findings are those up to there. So it is after the limit of the
// options.
func Examine(ctx context.Context, target Target, o Options) (*Findings, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit(), fmt.Errorf(
		"the server took too long to answer: the examination was ended after %s, and the rest was not examined", o.limit()))
	defer cancel()
	x := &examination{Options: o, target: target, ended: ctx.Err,
		prefix: "babelftp-doctor-" + strings.ToLower(rand.Text()[:8])}
	if s := x.logins(ctx); s != nil {
		x.data(ctx, s)
		x.remove(ctx)
		if x.Idle > 0 {
			x.apart(ctx, "NOOP "+x.Idle.String(), x.idle)
		}
	}
	return &x.found, context.Cause(ctx)
}

// add adds findings. What goes wrong after the context has ended says nothing about the server, but what is left.
func (x *examination) add(findings ...*Finding) {
	for _, f := range findings {
		if f != nil && f.ID != known && (x.ended() == nil || f.ID == leftover) {
			x.hidePassword(f.Args)
			x.hidePassword(f.Evidence)
			x.found.add(f)
		}
	}
}

// hidePassword masks the password in texts of the server, which may repeat what it was sent.
func (x *examination) hidePassword(texts []string) {
	if x.target.Password == "" || x.target.User == anonymous {
		return
	}
	for i, text := range texts {
		texts[i] = strings.ReplaceAll(text, x.target.Password, "***")
	}
}

func (x *examination) note(id ID, args []string, evidence ...string) {
	x.add(newFinding(id, args, evidence...))
}

// logins resolves the name and logs in several times, at each address and as often as the options say. It returns the
// last session, or nil.
func (x *examination) logins(ctx context.Context) (last *session) {
	x.Progress("DNS " + x.target.Host)
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", x.target.Host)
	if err != nil {
		x.note(nameUnresolved, []string{x.target.Host}, err.Error())
		return nil
	}
	servers := map[string]int{}
	for i := range max(len(addresses), x.Logins) {
		address := netip.AddrPortFrom(addresses[i%len(addresses)].Unmap(), x.target.Port)
		x.Progress(fmt.Sprintf("USER %d %s", i+1, address))
		last.close() // a user may have one session only
		s, f := x.login(ctx, address)
		if last = s; f != nil {
			if !f.harmless || len(addresses) == 1 { // otherwise clients use another address without being slowed down
				x.add(f)
			}
			if f.ID != addressUnreachable {
				break // a password that is wrong more often is a ban
			}
			continue
		}
		servers[s.signature()]++
		x.address = address
	}
	if last == nil && x.address.IsValid() { // another address has worked
		last, _ = x.login(ctx, x.address)
	}
	if x.differ = len(servers) > 1; x.differ {
		for _, signature := range slices.Sorted(maps.Keys(servers)) {
			x.note(replicasDiffer, nil, fmt.Sprintf("%d × %s", servers[signature], signature))
		}
	}
	if last != nil && last.tls != nil && !x.target.Implicit { // a server cannot tell who fails before a command
		x.versions(ctx)
	}
	return last
}

// versionRefused is the alert of a server that wants a newer version of TLS, as crypto/tls calls it.
const versionRefused = "protocol version not supported"

// versions tries the versions of TLS that a server may offer to old clients or refuse.
func (x *examination) versions(ctx context.Context) {
	for _, newest := range []uint16{tls.VersionTLS11, tls.VersionTLS12} {
		s, f := x.connect(ctx, x.address, newest)
		switch {
		case f != nil && newest == tls.VersionTLS12 && strings.Contains(strings.Join(f.Evidence, " "), versionRefused):
			x.note(tlsNew, nil, append([]string{tls.VersionName(newest)}, f.Evidence...)...)
		case f == nil && s.tls != nil && newest == tls.VersionTLS11:
			x.note(tlsOld, nil, tls.VersionName(s.state.Version))
		}
		s.close()
	}
}

// data makes the directory and looks at all that needs data connections. It closes the session.
func (x *examination) data(ctx context.Context, s *session) {
	x.Progress("MKD " + x.prefix)
	if r := s.send("MKD " + x.prefix); r.code == 0 || r.ok() { // without a reply it may be there
		x.dir, x.prefix = x.prefix, "doctor"
		_ = s.send("CWD " + x.dir)
	}
	private := s.private
	x.passivePorts(ctx, s)
	x.apart(ctx, "PORT", x.active)
	if x.way == "EPSV" {
		x.apart(ctx, "EPSV ALL", x.epsvAll)
	}
	if x.lists && x.way != "" && private {
		x.apart(ctx, "TLS", x.sessionReuse)
	}
	if x.way != "" {
		x.apart(ctx, "STOR", x.files)
	}
}

// apart runs a check in a session of its own, because it may leave the session unusable.
func (x *examination) apart(ctx context.Context, step string, check func(context.Context, *session)) {
	if ctx.Err() != nil {
		return
	}
	x.Progress(step)
	s, f := x.login(ctx, x.address)
	if f != nil {
		x.add(f)
		return
	}
	defer s.close()
	check(ctx, s)
}

// A tried is what came of the passive ports of EPSV or PASV.
type tried struct {
	verb     string
	good     int
	evidence []string          // of what failed
	missed   map[uint16]string // ports without a connection, and why
	wrong    bool              // another address is shown
	refused  string            // the reply of a server that does not know the command
}

// passivePorts asks for passive ports, connects to each, and lists the directory over it. It closes the session.
func (x *examination) passivePorts(ctx context.Context, s *session) {
	const enough = 4 // failures of a command that never works
	all := []*tried{{verb: "EPSV"}, {verb: "PASV"}}
	if s.remote.Addr().Is6() {
		all = all[:1] // PASV has no room for such an address
	}
	local := s.local()
	for i := range max(x.Samples, len(all)) {
		t := all[i%len(all)]
		if s == nil || ctx.Err() != nil || t.refused != "" || t.good == 0 && len(t.evidence) >= enough {
			continue
		}
		if !x.sample(ctx, s, t) {
			s.close()
			s, _ = x.login(ctx, x.address)
		}
	}
	s.close()
	if at := slices.IndexFunc(all, func(t *tried) bool { return t.good > 0 }); at >= 0 {
		x.way = all[at].verb
	}
	broken := func(t *tried) bool { // the ports of another command work all
		return t.good == 0 && len(t.evidence) > 0 && !x.differ &&
			slices.ContainsFunc(all, func(o *tried) bool { return o.good > 0 && len(o.missed) == 0 })
	}
	for _, t := range all {
		switch {
		case broken(t) && !t.wrong:
			x.note(inspected, []string{t.verb}, t.evidence...)
		case slices.ContainsFunc(all, broken): // the ports work
		default:
			for port, why := range t.missed {
				x.missed(local, port, why)
			}
		}
		switch {
		case !slices.ContainsFunc(all, func(t *tried) bool { return t.refused == "" }): // there is no passive mode
			x.note(commandBroken, []string{t.verb}, t.refused)
		case t.refused != "" && x.way != "":
			x.note(featureMissing, []string{t.verb}, t.refused)
		}
	}
}

// missed notes that this end did not reach a port. Where servers differ, it may be one of another server.
func (x *examination) missed(local netip.Addr, port uint16, why string) {
	if x.differ {
		x.note(dataElsewhere, nil, why)
		return
	}
	x.add(missedPort(local.String(), port, why))
}

// sample tries one port. It returns false if the session is not usable after it.
func (x *examination) sample(ctx context.Context, s *session, t *tried) (usable bool) {
	address, r := s.passive(t.verb)
	switch {
	case r.code >= 500:
		t.refused = r.String()
		return true
	case r.code/100 == 4: // the server says itself that it cannot
		r.command = t.verb
		x.add(x.refused(t.verb, r))
		return r.code != 421
	case !address.IsValid():
		t.evidence = append(t.evidence, t.verb+": "+r.String())
		return r.code != 0
	}
	x.Progress(t.verb + " " + address.String())
	conn, err := x.open(ctx, s, t, address, r)
	if err != nil {
		if t.missed == nil {
			t.missed = map[uint16]string{}
		}
		t.missed[address.Port()] = err.Error()
		t.evidence = append(t.evidence, r.String()+": "+err.Error())
		return true
	}
	defer conn.Close()
	_, last := s.run("LIST", nil, func() (net.Conn, error) { return conn, nil })
	f := x.refused("LIST", last)
	switch {
	case f == nil, last.code == 450: // some servers send it for an empty directory
		t.good++
		x.lists = true
	case f.ID == transferCut, f.ID == dataElsewhere:
		x.note(dataElsewhere, nil, r.String(), "LIST", last.String())
	default:
		x.add(f)
		if f.ID != protection { // the port is fine
			t.good++
		}
	}
	return last.code != 0
}

// open connects to a passive port, and notes an address that clients cannot use. A public address is right for a server
// that this end reaches at a private one, if it leads to the same server.
func (x *examination) open(
	ctx context.Context, s *session, t *tried, address netip.AddrPort, r reply,
) (net.Conn, error) {
	control := s.remote.Addr()
	if address.Addr() == control || t.wrong {
		return s.dial(ctx, address.Port())
	}
	if isPrivate(control) && !isPrivate(address.Addr()) {
		if conn, err := dial(ctx, address); err == nil {
			return conn, nil
		}
	}
	t.wrong = true
	evidence := []string{t.verb, r.String(), "≠ " + control.String()}
	if isPrivate(control) && !isPrivate(address.Addr()) { // clients elsewhere may reach it
		x.note(passiveUnreached, []string{s.local().String(), address.Addr().String()}, evidence...)
	} else {
		x.note(passiveAddress, []string{address.Addr().String()}, evidence...)
	}
	return s.dial(ctx, address.Port())
}

// active lists the directory in active mode. What fails otherwise too says nothing about the mode.
func (x *examination) active(_ context.Context, s *session) {
	_, r := s.activeTransfer("LIST", nil)
	f := x.refused("LIST", r)
	switch {
	case f == nil, r.code == 450:
		if x.way == "" {
			x.way = "PORT"
		}
	case x.lists, r.command != "", f.ID == transferCut, f.ID == dataElsewhere:
		x.note(activeFailed, nil, cmp.Or(r.command, "LIST"), r.String())
	case x.way == "":
		x.add(f)
	}
}

// epsvAll tries EPSV ALL, after which a server takes EPSV only (RFC 2428 4).
func (x *examination) epsvAll(_ context.Context, s *session) {
	first := s.send("EPSV ALL")
	if first.code != 0 && !first.ok() {
		return // the server does not know it, and says so
	}
	if _, r := s.passive("EPSV"); !r.ok() {
		x.note(inspected, []string{"EPSV ALL"}, "EPSV ALL", first.String(), "EPSV", r.String())
	}
}

// sessionReuse looks whether a data connection works that does not resume the TLS session.
func (x *examination) sessionReuse(ctx context.Context, s *session) {
	s.tls = s.tls.Clone()
	s.tls.ClientSessionCache = nil
	if _, r := s.transfer(ctx, x.way, "LIST", nil); !r.ok() && !r.missed && r.code != 450 {
		x.note(tlsReuse, nil, "LIST", r.String())
	}
}

// content is a file of about 256 KiB, more than one TCP window. It shows what a transfer does to it: it has every byte,
// line ends of all systems, and the IAC of Telnet.
func content() []byte {
	const size = 256 << 10
	part := []byte("\r\n\n\r\xff\xf4\xff\xf2")
	for i := range 256 {
		part = append(part, byte(i))
	}
	return bytes.Repeat(part, size/len(part))
}

// scripts returns names in six scripts.
func scripts() []string {
	return []string{"Crème", "Ωμέγα", "Привет", "مرحبا", "नमस्ते", "漢字"}
}

// files sends a file and names, and looks whether they come back.
func (x *examination) files(ctx context.Context, s *session) {
	name, body := x.prefix+".bin", content()
	if f := x.refused("STOR "+name, x.store(ctx, s, name, body)); f != nil {
		if f.ID == transferCut {
			x.apart(ctx, "MTU", func(ctx context.Context, s *session) {
				if r := x.store(ctx, s, x.prefix+"-small.bin", body[:64]); r.ok() { // a tunnel may lose large packets
					f.Evidence = append(f.Evidence, "64 bytes: "+r.String()+" (MTU?)")
				}
			})
		}
		x.add(f)
		return
	}
	if x.fetch(ctx, s, name, body, 0) {
		x.fetch(ctx, s, name, body, len(body)/2)
	}
	x.names(ctx, s)
	x.Progress("RNTO")
	to := x.prefix + "-renamed.bin"
	command := "RNFR " + name
	r := s.send(command)
	if r.code == 350 {
		x.made = append(x.made, to)
		command = "RNTO " + to
		r = s.send(command)
	}
	x.add(x.refused(command, r))
}

// store uploads a file.
func (x *examination) store(ctx context.Context, s *session, name string, body []byte) reply {
	x.Progress("STOR " + name)
	x.made = append(x.made, name)
	_, r := s.transfer(ctx, x.way, "STOR "+name, body)
	return r
}

// fetch downloads the file from an offset on, and returns whether it is what was sent.
func (x *examination) fetch(ctx context.Context, s *session, name string, body []byte, offset int) (same bool) {
	x.Progress(fmt.Sprintf("RETR %s %d", name, offset))
	if offset > 0 {
		if r := s.send("REST " + strconv.Itoa(offset)); r.code != 350 {
			x.missing(s, "REST", "REST", r.String())
			return false
		}
	}
	data, r := s.transfer(ctx, x.way, "RETR "+name, nil)
	switch want := body[offset:]; {
	case offset > 0 && r.code >= 500 && r.code != 550:
		x.missing(s, "REST", "REST", r.String())
	case !r.ok():
		x.add(x.refused("RETR "+name, r))
	case offset > 0 && bytes.Equal(data, body):
		x.note(commandBroken, []string{"REST"}, fmt.Sprintf("REST %d: 350, RETR: %d bytes", offset, len(data)))
	case !bytes.Equal(data, want):
		at := 0
		for at < min(len(data), len(want)) && data[at] == want[at] {
			at++
		}
		x.note(fileDiffers, []string{name}, fmt.Sprintf("REST %d, RETR: %d ≠ %d bytes; %x ≠ %x at %d", offset,
			len(data), len(want), data[at:min(at+8, len(data))], want[at:min(at+8, len(want))], offset+at))
	default:
		return true
	}
	return false
}

// missing notes that a command is not there. It is wrong if FEAT has it, because clients believe that.
func (x *examination) missing(s *session, command, feature, evidence string) {
	id := featureMissing
	if slices.Contains(strings.Fields(strings.ToUpper(s.features.text)), feature) {
		id = commandBroken
	}
	x.note(id, []string{command}, evidence, "FEAT", s.features.String())
}

// names stores files with names in six scripts, and looks for them in the listing.
func (x *examination) names(ctx context.Context, s *session) {
	var kept []string
	for _, script := range scripts() {
		name := x.prefix + "-" + script + ".txt"
		if ctx.Err() != nil {
			return
		}
		switch f := x.refused("STOR "+name, x.store(ctx, s, name, []byte(script))); {
		case f == nil:
			kept = append(kept, name)
		case f.ID == commandRefused:
			x.note(namesChanged, []string{name}, f.Evidence...)
		default:
			x.add(f)
		}
	}
	if s.features.code != 0 && !strings.Contains(strings.ToUpper(s.features.text), "UTF8") {
		x.note(featureMissing, []string{"UTF8"}, "FEAT", s.features.String())
	}
	x.Progress("MLSD")
	data, r := s.transfer(ctx, x.way, "MLSD", nil)
	if r.code == 550 {
		x.add(x.refused("MLSD", r))
	} else if r.code >= 500 {
		x.missing(s, "MLSD", "MLST", r.String())
		data, r = s.transfer(ctx, x.way, "NLST", nil)
	}
	if !r.ok() {
		return
	}
	listed := strings.Split(norm.NFC.String(strings.ReplaceAll(string(data), "\r", "")), "\n")
	isListed := func(name string) bool {
		return slices.ContainsFunc(listed, func(l string) bool { return strings.HasSuffix(l, name) })
	}
	if !isListed(x.prefix + ".bin") {
		return // the user may not see files, whatever their names
	}
	for _, name := range kept {
		if !isListed(name) {
			x.note(namesChanged, []string{name}, append([]string{name + " ≠"}, listed...)...)
			return
		}
	}
}

// remove deletes what the examination has made, in a new session, because the last may have ended or may hang. Of a
// file that was not stored the reply says nothing.
func (x *examination) remove(ctx context.Context) {
	if x.dir == "" && len(x.made) == 0 {
		return
	}
	x.Progress("DELE")
	const timeout = 30 * time.Second // in all, also after Ctrl-C
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	dir := x.dir
	x.dir = "" // it may not be there
	s, f := x.login(ctx, x.address)
	if f != nil {
		x.note(leftover, []string{cmp.Or(dir, x.prefix+"*")}, f.Evidence...)
		return
	}
	defer s.close()
	for attempt := 1; dir != "" && s.send("CWD "+dir).code >= 500; attempt++ {
		if attempt == attempts {
			return
		}
		time.Sleep(pause) // a MKD that has no reply may be on its way
	}
	for _, name := range x.made {
		_ = s.send("DELE " + name)
	}
	if dir != "" {
		_ = s.send("CDUP")
		if r := s.send("RMD " + dir); !r.ok() {
			x.note(leftover, []string{dir}, r.String())
		}
		return
	}
	for _, name := range x.made {
		if r := s.send("SIZE " + name); r.code == 0 || r.ok() {
			x.note(leftover, []string{name}, r.String())
		}
	}
}

// idle leaves a control connection idle, and looks whether it is there afterwards. A server that says goodbye itself
// has its own limit, with which nothing is wrong.
func (x *examination) idle(_ context.Context, s *session) {
	began := time.Now()
	r := s.wait(x.Idle)
	idle := time.Since(began)
	if r.code == 0 && idle >= x.Idle { // as it should
		r = s.send("NOOP")
	}
	switch r.code {
	case 0:
		x.note(idleCut, []string{wholeSeconds(idle)}, "NOOP: "+r.String())
	case 421:
		x.Progress(r.String())
	}
}

// wholeSeconds returns a time as the argument of a text with plural forms.
func wholeSeconds(d time.Duration) string { return strconv.Itoa(int(math.Round(d.Seconds()))) }
