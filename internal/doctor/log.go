package doctor

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A rule says which lines of a log show a finding: the message, an attribute and a pattern in it. An empty part fits
// all.
type rule struct {
	id      ID
	msg     string // how the message begins
	attr    string // one of these, separated by spaces
	pattern *regexp.Regexp
}

// causes are the attributes that say why something failed.
const causes = "err connection storage"

// slowRequest is how many milliseconds of a request to S3 are too many.
const slowRequest = 5000

// rules returns the rules. Each line is held against all of them.
func rules() []rule {
	re := regexp.MustCompile
	return []rule{
		{protocolMismatch, "client began with another protocol", "", nil},
		{protocolMismatch, "TLS handshake failed", "hint", re(`explicit TLS`)},
		{limitReached, "refused by a limit", "", nil},
		{limitReached, "banned", "", nil},
		{tlsRequired, "", "err", re(`TLS is required`)},
		{tlsOld, "", "err", re(`unsupported versions`)},
		{tlsReuse, "", causes, re(`did not resume the TLS session`)},
		{certificateUntrusted, "", "hint", re(`may not trust the certificate`)},
		{certificateUntrusted, "TLS handshake failed", "err",
			re(`remote error: tls: (bad certificate|unknown certificate|unsupported certificate|unknown certificate authority)`)},
		{certificateExpired, "TLS handshake failed", "err", re(`remote error: tls: expired certificate`)},
		{certificateExpired, "certificate has expired", "", nil},
		{protection, "", "code", re(`^521$`)},
		{protection, "", causes, re(`no TLS on the data connection`)},
		{dataElsewhere, "", causes, re(`which is not the address of the control connection`)},
		{dataElsewhere, "connection without a PROXY header refused", "", nil},
		{activeFailed, "transfer", "connection", re(`^(open the data connection: )?dial tcp`)},
		{activeFailed, "data connection to another address", "", nil},
		{commandRefused, "", causes, re(`permission denied by the permissions`)},
		{charset, "", "err", re(`the name is not in the encoding`)},
		{storageFull, "", causes, re(`disk quota exceeded|no space left`)},
		{storageSlow, "", causes + " status", re(`SlowDown|HTTP (429|503)|^(429|503)$|i/o timeout|deadline exceeded|Client\.Timeout`)},
		{storageRefuses, "", causes, re(`AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|RequestTimeTooSkewed|` +
			`NoSuchBucket|IAM policy must allow|HTTP (401|403|5(00|02))|connection refused$|no such host|no route to host`)},
		{storageRefuses, "bucket cannot be used", "", nil},
		{shuttingDown, "stopping", "", nil},
		{shuttingDown, "sessions that still transferred were ended", "", nil},
	}
}

// fits tells whether a line shows the finding.
func (r *rule) fits(l *line) bool {
	if !strings.HasPrefix(l.attrs["msg"], r.msg) {
		return false
	}
	return r.pattern == nil || slices.ContainsFunc(strings.Fields(r.attr), func(key string) bool {
		return r.pattern.MatchString(l.attrs[key]) && (r.id != storageRefuses || !isActive(l, key))
	})
}

// isActive tells whether a connection that failed was one to a client.
func isActive(l *line, key string) bool { return key == "connection" && l.attrs["msg"] == "transfer" }

// binaryNames are ends of the names of files that a transfer as text damages.
const binaryNames = " .jpg .jpeg .png .gif .tif .tiff .pdf .zip .gz .tgz .bz2 .xz .7z .rar .mp3 .mp4 .avi .mov .h264 " +
	".xls .xlsx .doc .docx .exe .bin .iso .dcm "

// A logged is a session as its debug lines show it.
type logged struct {
	client, user, command string // the last command
	ascii                 bool
	code                  int // the last reply
	reply                 string
}

// A logReader groups the lines of a log.
type logReader struct {
	found    Findings
	rules    []rule
	sessions map[string]*logged
	lines    int
}

var missedPort = regexp.MustCompile(`did not connect to port (\d+) within ([0-9a-zµ.]+)`)

// patience is how long a client must have had to connect to a port before the port counts as unreachable. A client that
// asks for another port sooner, as doctor itself does, has not tried the first one.
const patience = time.Second

// ErrNoLog says that a log has no line of a server.
var ErrNoLog = errors.New("the input has no line of a babelftp log: give it the lines as the server writes them, in text or JSON")

// maxLine is as long as a line of a log may be, in bytes.
const maxLine = 1 << 20

// ReadLog reads lines of the log of a server, in text or JSON, and returns what they show.
func ReadLog(ctx context.Context, in io.Reader) (*Findings, error) {
	r := &logReader{rules: rules(), sessions: map[string]*logged{}}
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() && ctx.Err() == nil {
		if l := parseLine(scanner.Text()); l != nil {
			r.lines++
			r.read(l)
		}
	}
	if err := cmp.Or(scanner.Err(), ctx.Err()); err != nil {
		return nil, err
	}
	if r.lines == 0 {
		return nil, ErrNoLog
	}
	for _, s := range r.sessions {
		r.ended(s)
	}
	return &r.found, nil
}

// read notes what a line shows.
func (r *logReader) read(l *line) {
	client, user := l.attrs["remote"], l.attrs["user"]
	if host, _, err := net.SplitHostPort(client); err == nil {
		client = host
	}
	times := 1 + l.number("more")
	for i := range r.rules {
		if !r.rules[i].fits(l) {
			continue
		}
		switch id := r.rules[i].id; id {
		case commandRefused:
			r.found.about(id, client, user, l.attrs["command"]).see(times, l.text)
		default:
			r.found.about(id, client, user).see(times, l.text)
		}
	}
	r.readLogin(l, client, user, times)
	r.readData(l, client, user)
	r.readDebug(l, client, user)
}

// readLogin notes a login that was refused for the name or the password.
func (r *logReader) readLogin(l *line, client, user string, times int) {
	err := l.attrs["err"]
	if strings.HasPrefix(l.attrs["msg"], "login refused") && !strings.Contains(err, "TLS is required") {
		if _, name, ok := strings.Cut(err, `user "`); ok && user == "" {
			user, _, _ = strings.Cut(name, `"`)
		}
		r.found.about(loginRefused, client, user).see(times, l.text)
	}
}

// readData notes why a data connection did not come, or did not last.
func (r *logReader) readData(l *line, client, user string) {
	why := cmp.Or(l.attrs["connection"], l.attrs["err"])
	address := l.attrs["data_address"]
	if m := missedPort.FindStringSubmatch(why); m != nil && !strings.Contains(why, "not the address of the control") {
		if waited, err := time.ParseDuration(m[2]); err == nil && waited < patience {
			return
		}
		port, _ := strconv.ParseUint(m[1], 10, 16) // the pattern has digits only; 0 for more
		r.found.missed(client, user, client, 1, uint16(port), l.text)
		shown, err := netip.ParseAddrPort(address)
		from, wrong := netip.ParseAddr(client)
		if err == nil && wrong == nil && isPrivate(shown.Addr()) && !isPrivate(from) {
			r.found.about(passiveAddress, client, user, shown.Addr().String()).see(1, l.text)
		}
		return
	}
	if l.attrs["msg"] == "transfer" && l.number("code") == 426 && l.attrs["connection"] != "" &&
		!strings.Contains(why, "aborted by the client") && !strings.Contains(why, "TLS") {
		r.found.about(transferCut, client, user).see(1, l.text)
	}
}

// readDebug follows the commands of a session and the requests to S3, which are debug lines.
func (r *logReader) readDebug(l *line, client, user string) {
	msg, id := l.attrs["msg"], l.attrs["session"]
	if msg == "S3 request" && l.number("duration_ms") >= slowRequest {
		r.found.about(storageSlow, client, user).see(1, l.text)
	}
	if msg != "command" && msg != "reply" || id == "" {
		return
	}
	s := r.sessions[id]
	if s == nil {
		s = &logged{}
		r.sessions[id] = s
	}
	s.client, s.user = client, cmp.Or(user, s.user)
	if msg == "reply" {
		s.code, s.reply = l.number("code"), l.text
		if s.code == 200 && strings.HasPrefix(s.command, "TYPE ") {
			s.ascii = strings.HasPrefix(s.command, "TYPE A")
		}
		return
	}
	s.command, s.code = l.attrs["line"], 0
	verb, name, _ := strings.Cut(s.command, " ")
	binary := strings.Contains(binaryNames, " "+strings.ToLower(path.Ext(name))+" ") && path.Ext(name) != ""
	if s.ascii && binary && (verb == "STOR" || verb == "RETR" || verb == "APPE") {
		r.found.about(typeASCII, client, s.user).see(1, "TYPE A", l.text)
	}
	if verb == "QUIT" {
		delete(r.sessions, id)
	}
}

// ended notes a device that has given up at a reply.
func (r *logReader) ended(s *logged) {
	verb, _, _ := strings.Cut(s.command, " ")
	if slices.Contains([]int{500, 501, 502, 504}, s.code) {
		r.found.about(clientStops, s.client, s.user, verb).see(1, s.command, s.reply)
	}
}
