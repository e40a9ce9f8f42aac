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

// anonymous is a user without a password.
const anonymous = "anonymous"

// A Target is a server and a user.
type Target struct {
	Host           string
	Port           uint16
	Implicit       bool // TLS starts with the connection
	User, Password string
}

// ParseTarget parses a URL such as ftp://alice@ftp.example.com or ftps://ftp.example.com:990. The default user is
// anonymous. A password in the URL is an error, because other users of the machine can see the command line.
func ParseTarget(text string) (Target, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "ftp" && u.Scheme != "ftps" {
		return Target{}, fmt.Errorf(
			"invalid URL %q: want ftp://alice@ftp.example.com or ftps://alice@ftp.example.com", text)
	}
	t := Target{Host: u.Hostname(), Port: 21, Implicit: u.Scheme == "ftps", User: anonymous, Password: "anonymous@"}
	if t.Implicit {
		t.Port = 990
	}
	if u.User != nil {
		if _, has := u.User.Password(); has {
			return Target{}, errors.New("the URL contains a password, which other users can see: leave it out")
		}
		t.User, t.Password = u.User.Username(), ""
	}
	if u.Port() != "" {
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil || port == 0 {
			return Target{}, fmt.Errorf("invalid port in %q: want 1 to 65535", text)
		}
		t.Port = uint16(port)
	}
	if strings.ContainsAny(t.User, "\r\n") {
		return Target{}, fmt.Errorf("invalid user in %q: it contains a line break", text)
	}
	return t, nil
}

// Options configure an examination. The zero value is not useful: see the command line for good values.
type Options struct {
	Authorities *x509.CertPool // nil for the system's
	Insecure    bool           // send the password without TLS too
	Samples     int            // passive ports to try
	Logins      int            // sessions to compare
	Idle        time.Duration  // how long to leave a control connection idle
	Limit       time.Duration  // maximum duration of the whole examination; 0 for a few minutes
	Progress    func(step string)
}

// limit returns the maximum duration of an examination, in case a server omits or delays many replies. It leaves
// time for ports that do not respond and for the idle connection.
func (o *Options) limit() time.Duration {
	const replies = 3 * time.Minute
	return cmp.Or(o.Limit, replies+o.Idle+time.Duration(o.Samples+o.Logins)*dialTimeout)
}

// An examination tests one server.
type examination struct {
	Options
	target        Target
	ended         func() error // returns the error of the context
	found         Findings
	tlsChecked    bool           // TLS was checked
	endless       bool           // the reply to FEAT does not end
	lists         bool           // a listing has worked
	serversDiffer bool           // the servers at the addresses are different
	address       netip.AddrPort // last address that worked
	mode          string         // EPSV, PASV or PORT; empty if none works
	dir           string         // directory created by the examination
	prefix        string         // prefix of file names
	made          []string       // files that may exist

	meanings  map[string]ID // findings by texts of babelftp
	templates []template
}

// Examine tests a server as a client does. It creates a directory and files on the server and removes them, even
// after ctx has ended. If ctx ends or Limit is reached, it returns the findings so far and the error.
func Examine(ctx context.Context, target Target, o Options) (*Findings, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit(), fmt.Errorf(
		"the server took too long to respond; the examination stopped after %s and is incomplete", o.limit()))
	defer cancel()
	x := &examination{Options: o, target: target, ended: ctx.Err,
		prefix: "babelftp-doctor-" + strings.ToLower(rand.Text()[:8])}
	if s := x.logins(ctx); s != nil {
		x.data(ctx, s)
		x.remove(ctx)
		if x.Idle > 0 {
			x.inNewSession(ctx, "NOOP "+x.Idle.String(), x.idle)
		}
	}
	return &x.found, context.Cause(ctx)
}

// add adds findings. Failures after the context has ended say nothing about the server, so only leftover files are
// added then.
func (x *examination) add(findings ...*Finding) {
	for _, f := range findings {
		if f != nil && f.ID != alreadyNoted && (x.ended() == nil || f.ID == leftover) {
			x.hidePassword(f.Args)
			x.hidePassword(f.Evidence)
			x.found.add(f)
		}
	}
}

// hidePassword masks the password in texts of the server, which may repeat it.
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

// logins resolves the host name and logs in at each address, at least Logins times. It returns the last session,
// or nil.
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
		last.close() // a user may be limited to one session
		s, f := x.login(ctx, address)
		if last = s; f != nil {
			if !f.harmless || len(addresses) == 1 { // otherwise clients use another address at once
				x.add(f)
			}
			if f.ID != addressUnreachable {
				break // repeating a wrong password could cause a ban
			}
			continue
		}
		servers[s.signature()]++
		x.address = address
	}
	if last == nil && x.address.IsValid() { // another address has worked
		last, _ = x.login(ctx, x.address)
	}
	if x.serversDiffer = len(servers) > 1; x.serversDiffer {
		for _, signature := range slices.Sorted(maps.Keys(servers)) {
			x.note(replicasDiffer, nil, fmt.Sprintf("%d × %s", servers[signature], signature))
		}
	}
	// With implicit TLS, a server could not tell from its log that doctor caused the failed handshakes.
	if last != nil && last.tls != nil && !x.target.Implicit {
		x.versions(ctx)
	}
	return last
}

// versionRefused is the text of crypto/tls for the alert of a server that requires a newer TLS version.
const versionRefused = "protocol version not supported"

// versions checks whether the server accepts or refuses older TLS versions.
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

// data creates the directory and runs all checks that need data connections. It closes the session.
func (x *examination) data(ctx context.Context, s *session) {
	x.Progress("MKD " + x.prefix)
	if r := s.send("MKD " + x.prefix); r.code == 0 || r.ok() { // without a reply it may exist
		x.dir, x.prefix = x.prefix, "doctor"
		_ = s.send("CWD " + x.dir)
	}
	private := s.private
	x.passivePorts(ctx, s)
	x.inNewSession(ctx, "PORT", x.active)
	if x.mode == "EPSV" {
		x.inNewSession(ctx, "EPSV ALL", x.epsvAll)
	}
	if x.lists && x.mode != "" && private {
		x.inNewSession(ctx, "TLS", x.sessionReuse)
	}
	if x.mode != "" {
		x.inNewSession(ctx, "STOR", x.files)
	}
}

// inNewSession runs a check in a new session, because it may leave the session unusable.
func (x *examination) inNewSession(ctx context.Context, step string, check func(context.Context, *session)) {
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

// A trial is the result for the passive ports of EPSV or PASV.
type trial struct {
	verb     string
	good     int
	evidence []string          // evidence of the failures
	missed   map[uint16]string // ports that could not be reached, and why
	wrong    bool              // a wrong address was shown
	refused  string            // reply of a server that does not support the command
}

// passivePorts requests passive ports, connects to each, and lists the directory through it. It closes the
// session.
func (x *examination) passivePorts(ctx context.Context, s *session) {
	const enough = 4 // failures after which a command counts as broken
	all := []*trial{{verb: "EPSV"}, {verb: "PASV"}}
	if s.remote.Addr().Is6() {
		all = all[:1] // PASV cannot return an IPv6 address
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
	if at := slices.IndexFunc(all, func(t *trial) bool { return t.good > 0 }); at >= 0 {
		x.mode = all[at].verb
	}
	broken := func(t *trial) bool { // no port works, but all ports of another command do
		return t.good == 0 && len(t.evidence) > 0 && !x.serversDiffer &&
			slices.ContainsFunc(all, func(o *trial) bool { return o.good > 0 && len(o.missed) == 0 })
	}
	for _, t := range all {
		switch {
		case broken(t) && !t.wrong:
			x.note(inspected, []string{t.verb}, t.evidence...)
		case slices.ContainsFunc(all, broken): // the ports work
		default:
			for port, why := range t.missed {
				x.addMissed(local, port, why)
			}
		}
		switch {
		// the server supports no passive command
		case !slices.ContainsFunc(all, func(t *trial) bool { return t.refused == "" }):
			x.note(commandBroken, []string{t.verb}, t.refused)
		case t.refused != "" && x.mode != "":
			x.note(featureMissing, []string{t.verb}, t.refused)
		}
	}
}

// addMissed adds a port that could not be reached. If servers differ, it may belong to another server.
func (x *examination) addMissed(local netip.Addr, port uint16, why string) {
	if x.serversDiffer {
		x.note(dataElsewhere, nil, why)
		return
	}
	x.add(missedPort(local.String(), port, why))
}

// sample tries one port. It returns false if the session cannot be used after it.
func (x *examination) sample(ctx context.Context, s *session, t *trial) (usable bool) {
	address, r := s.passive(t.verb)
	switch {
	case r.code >= 500:
		t.refused = r.String()
		return true
	case r.code/100 == 4: // the server reports the failure itself
		r.command = t.verb
		x.add(x.classifyReply(t.verb, r))
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
	f := x.classifyReply("LIST", last)
	switch {
	case f == nil, last.code == 450: // some servers reply 450 for an empty directory
		t.good++
		x.lists = true
	case f.ID == transferCut, f.ID == dataElsewhere:
		x.note(dataElsewhere, nil, r.String(), "LIST", last.String())
	default:
		x.add(f)
		if f.ID != protection { // the port works
			t.good++
		}
	}
	return last.code != 0
}

// open connects to a passive port, and adds a finding if clients cannot use its address. If the server was reached
// at a private address, a public address is correct if it leads to the same server.
func (x *examination) open(
	ctx context.Context, s *session, t *trial, address netip.AddrPort, r reply,
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

// active lists the directory in active mode. A failure that also occurs in passive mode says nothing about the
// mode.
func (x *examination) active(_ context.Context, s *session) {
	_, r := s.activeTransfer("LIST", nil)
	f := x.classifyReply("LIST", r)
	switch {
	case f == nil, r.code == 450:
		if x.mode == "" {
			x.mode = "PORT"
		}
	case x.lists, r.command != "", f.ID == transferCut, f.ID == dataElsewhere:
		x.note(activeFailed, nil, cmp.Or(r.command, "LIST"), r.String())
	case x.mode == "":
		x.add(f)
	}
}

// epsvAll tries EPSV ALL, after which a server accepts EPSV only (RFC 2428, 4).
func (x *examination) epsvAll(_ context.Context, s *session) {
	first := s.send("EPSV ALL")
	if first.code != 0 && !first.ok() {
		return // the server says that it does not support the command
	}
	if _, r := s.passive("EPSV"); !r.ok() {
		x.note(inspected, []string{"EPSV ALL"}, "EPSV ALL", first.String(), "EPSV", r.String())
	}
}

// sessionReuse checks whether data connections work that do not resume the TLS session.
func (x *examination) sessionReuse(ctx context.Context, s *session) {
	s.tls = s.tls.Clone()
	s.tls.ClientSessionCache = nil
	if _, r := s.transfer(ctx, x.mode, "LIST", nil); !r.ok() && !r.missed && r.code != 450 {
		x.note(tlsReuse, nil, "LIST", r.String())
	}
}

// content returns a file of about 256 KiB, which is more than one TCP window. It contains every byte, the line
// ends of all systems and Telnet IAC, so that any conversion is visible.
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

// files uploads a file and names, and checks whether they come back unchanged.
func (x *examination) files(ctx context.Context, s *session) {
	name, body := x.prefix+".bin", content()
	if f := x.classifyReply("STOR "+name, x.store(ctx, s, name, body)); f != nil {
		if f.ID == transferCut {
			x.inNewSession(ctx, "MTU", func(ctx context.Context, s *session) {
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
	x.add(x.classifyReply(command, r))
}

// store uploads a file.
func (x *examination) store(ctx context.Context, s *session, name string, body []byte) reply {
	x.Progress("STOR " + name)
	x.made = append(x.made, name)
	_, r := s.transfer(ctx, x.mode, "STOR "+name, body)
	return r
}

// fetch downloads the file from an offset, and reports whether its content is correct.
func (x *examination) fetch(ctx context.Context, s *session, name string, body []byte, offset int) (same bool) {
	x.Progress(fmt.Sprintf("RETR %s %d", name, offset))
	if offset > 0 {
		if r := s.send("REST " + strconv.Itoa(offset)); r.code != 350 {
			x.addMissing(s, "REST", "REST", r.String())
			return false
		}
	}
	data, r := s.transfer(ctx, x.mode, "RETR "+name, nil)
	switch want := body[offset:]; {
	case offset > 0 && r.code >= 500 && r.code != 550:
		x.addMissing(s, "REST", "REST", r.String())
	case !r.ok():
		x.add(x.classifyReply("RETR "+name, r))
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

// addMissing adds a finding for an unsupported command. If FEAT lists the command, it is broken, because clients rely
// on FEAT.
func (x *examination) addMissing(s *session, command, feature, evidence string) {
	id := featureMissing
	if slices.Contains(strings.Fields(strings.ToUpper(s.features.text)), feature) {
		id = commandBroken
	}
	x.note(id, []string{command}, evidence, "FEAT", s.features.String())
}

// names stores files with names in six scripts, and searches for them in a listing.
func (x *examination) names(ctx context.Context, s *session) {
	var kept []string
	for _, script := range scripts() {
		name := x.prefix + "-" + script + ".txt"
		if ctx.Err() != nil {
			return
		}
		switch f := x.classifyReply("STOR "+name, x.store(ctx, s, name, []byte(script))); {
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
	data, r := s.transfer(ctx, x.mode, "MLSD", nil)
	if r.code == 550 {
		x.add(x.classifyReply("MLSD", r))
	} else if r.code >= 500 {
		x.addMissing(s, "MLSD", "MLST", r.String())
		data, r = s.transfer(ctx, x.mode, "NLST", nil)
	}
	if !r.ok() {
		return
	}
	listed := strings.Split(norm.NFC.String(strings.ReplaceAll(string(data), "\r", "")), "\n")
	isListed := func(name string) bool {
		return slices.ContainsFunc(listed, func(l string) bool { return strings.HasSuffix(l, name) })
	}
	if !isListed(x.prefix + ".bin") {
		return // the user cannot list files
	}
	for _, name := range kept {
		if !isListed(name) {
			x.note(namesChanged, []string{name}, append([]string{name + " ≠"}, listed...)...)
			return
		}
	}
}

// remove deletes everything that the examination has created, in a new session, because the last session may have
// ended or hang. The reply to deleting a file that was never stored is ignored.
func (x *examination) remove(ctx context.Context) {
	if x.dir == "" && len(x.made) == 0 {
		return
	}
	x.Progress("DELE")
	const timeout = 30 * time.Second // in total, even after Ctrl-C
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	dir := x.dir
	x.dir = "" // it may not exist
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
		time.Sleep(pause) // a MKD without a reply may still be executed
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

// idle leaves a control connection idle, and checks whether it still works. A server that sends 421 has its own
// limit, which is not a problem.
func (x *examination) idle(_ context.Context, s *session) {
	began := time.Now()
	r := s.wait(x.Idle)
	idle := time.Since(began)
	if r.code == 0 && idle >= x.Idle { // as expected
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
