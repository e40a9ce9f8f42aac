package doctor

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// binaryNames are extensions of files that a transfer as text damages.
const binaryNames = " .jpg .jpeg .png .gif .tif .tiff .pdf .zip .gz .tgz .bz2 .xz .7z .rar .mp3 .mp4 .avi .mov .h264 " +
	".xls .xlsx .doc .docx .exe .bin .iso .dcm "

// A logged is a session reconstructed from debug lines.
type logged struct {
	client, user, command string // command is the last command
	ascii                 bool
	code                  int // the last reply
	reply                 string
}

// A sign is a pattern that shows a finding in a line.
type sign struct {
	id      ID
	keys    []string // one of these values must match
	pattern *regexp.Regexp
}

func (s *sign) in(l *line) bool {
	return slices.ContainsFunc(s.keys, func(key string) bool { return s.pattern.MatchString(l.attrs[key]) })
}

// A logReader collects findings from the lines of a log.
type logReader struct {
	found    Findings
	signs    []sign
	sessions map[string]*logged
	proxied  map[uint16]bool       // ports at which a PROXY header was missing
	early    map[string][]*Finding // by session: ports that the client gave up early, until a transfer follows
}

var missed = regexp.MustCompile(`did not connect to port (\d+) within ([0-9a-zµ.]+)`)

// patience is how long a client must have waited for a port before the port counts as unreachable. A client that
// gives up earlier may have requested another port without trying the first one. If no transfer follows in its
// session, the port counts anyway, because a firewall that rejects connections responds at once.
const patience = time.Second

// wrongPatience replaces patience for a wrong address, because the network often rejects such a connection at
// once.
const wrongPatience = 50 * time.Millisecond

// ErrNoLog reports that the input has no log line that matches the filter.
var ErrNoLog = errors.New("no line of a babelftp log found: pass the lines as the server writes them, in text or JSON")

// Limits on what is kept from a log.
const (
	maxLine     = 1 << 20 // bytes; longer lines are skipped
	maxSessions = 10000   // sessions that have not ended
	slowRequest = 5000    // duration of an S3 request in milliseconds that is a finding
)

// A Filter selects lines of a log. The zero value selects all lines.
type Filter struct {
	Network netip.Prefix // network of the client
	Since   time.Time
}

func (f *Filter) wants(l *line) bool {
	if f.Network.IsValid() {
		from, err := netip.ParseAddrPort(l.attrs["remote"])
		if err != nil || !f.Network.Contains(from.Addr().Unmap().WithZone("")) {
			return false
		}
	}
	at, err := time.Parse(time.RFC3339, l.attrs["time"])
	return f.Since.IsZero() || err == nil && !at.Before(f.Since)
}

// ReadLog reads the log of a server, in text or JSON, and returns the findings.
func ReadLog(ctx context.Context, in io.Reader, filter Filter) (*Findings, error) {
	r := &logReader{sessions: map[string]*logged{}, early: map[string][]*Finding{}, proxied: map[uint16]bool{}}
	for _, k := range Kinds() {
		for _, text := range k.Log {
			if keys, pattern, ok := strings.Cut(text, "="); ok {
				r.signs = append(r.signs, sign{k.ID, strings.Fields(keys), regexp.MustCompile(pattern)})
			}
		}
	}
	lines, long := 0, false
	for buffered := bufio.NewReaderSize(in, maxLine); ; {
		text, err := buffered.ReadSlice('\n')
		switch l := parseLine(string(text)); {
		case errors.Is(err, bufio.ErrBufferFull):
			long = true
			continue
		case long:
			r.found.Skipped++
			long = false
		case l != nil && filter.wants(l):
			lines++
			r.read(l)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
	}
	if lines == 0 {
		return nil, ErrNoLog
	}
	for _, s := range r.sessions {
		r.checkEnd(s)
	}
	r.conclude()
	return &r.found, nil
}

// read adds the findings in a line. Sessions of doctor itself are ignored, because they try unusual things.
func (r *logReader) read(l *line) {
	if l.attrs["software"] == software {
		return
	}
	client, user := cmp.Or(l.attrs["remote"], l.attrs["from"]), l.attrs["user"]
	if host, _, err := net.SplitHostPort(client); err == nil {
		client = host
	}
	note := func(f *Finding) {
		if client == "" { // the line is about the server itself
			user = ""
		}
		r.found.add(f.seenBy(client, user))
	}
	if _, name, ok := strings.Cut(l.attrs["err"], `user "`); ok && user == "" {
		user, _, _ = strings.Cut(name, `"`)
	}
	for _, id := range r.shownBy(l) {
		f := newFinding(id, nil, l.text)
		switch f.Times += l.number("more"); id {
		case commandRefused:
			f.Args = []string{l.attrs["command"]}
		case limitReached, addressRefused:
			f.Keys = keysOfLimit(l.attrs["limit"], l.attrs["limit_tenant"])
			if l.attrs["msg"] == "banned" {
				f.Keys = []string{"limits.bans"}
			}
		}
		note(f)
	}
	if l.attrs["msg"] == "S3 request" && l.number("duration_ms") >= slowRequest {
		note(newFinding(storageSlow, nil, l.text))
	}
	if strings.HasPrefix(l.attrs["msg"], "connection without a PROXY header refused") {
		r.proxied[uint16(l.number("port"))] = true
	}
	if f, soon := l.missedPort(client); soon {
		r.giveUp(l.attrs["session"], f.seenBy(client, user))
	} else if f != nil {
		note(f)
	}
	if l.attrs["msg"] == "transfer" && l.number("code")/100 == 2 {
		delete(r.early, l.attrs["session"])
	}
	r.follow(l, client, user)
}

// shownBy returns the kinds of findings in a line, without general kinds if there is a more exact one.
func (r *logReader) shownBy(l *line) []ID {
	var ids []ID
	for i := range r.signs {
		id := r.signs[i].id
		early := id == transferCut && l.number("code") != 426 // a client may leave before the transfer
		if !early && !slices.Contains(ids, id) && r.signs[i].in(l) {
			ids = append(ids, id)
		}
	}
	exact := len(ids) > 1
	return slices.DeleteFunc(ids, func(id ID) bool {
		return exact && (id == loginRefused || id == limitReached || id == unavailable)
	})
}

// keysOfLimit returns the configuration keys of a limit. tenant is empty for server-wide limits. It returns nil if
// the log does not name the limit.
func keysOfLimit(limit, tenant string) []string {
	scope, what, _ := strings.Cut(limit, ".")
	of := "tenants." + cmp.Or(tenant, "TENANT")
	switch {
	case scope == "tenant":
		return []string{of + ".limits." + limit}
	case scope == "user":
		return []string{of + ".limits." + limit, of + ".users.USER.limits." + what}
	case limit == "deny" && tenant == "":
		return []string{"limits.server.deny"}
	case limit == "deny":
		return []string{of + ".limits.tenant.deny", of + ".limits.user.deny", of + ".users.USER.limits.deny"}
	case slices.Contains([]string{"server", "address", "bans", "login_timeout"}, scope):
		return []string{"limits." + limit}
	}
	return nil
}

// missedPort returns a finding if the line is about a client that did not connect to its passive port, and whether
// the client gave up early.
func (l *line) missedPort(client string) (f *Finding, soon bool) {
	why := cmp.Or(l.attrs["connection"], l.attrs["err"])
	m := missed.FindStringSubmatch(why)
	if m == nil || strings.Contains(why, "not the address of the control") {
		return nil, false
	}
	minWait := patience
	port, _ := strconv.ParseUint(m[1], 10, 16) // the pattern only allows digits; 0 if out of range
	shown, id := l.shownAddress(client)
	switch id {
	case passiveAddress:
		f, minWait = newFinding(id, []string{shown.String()}, l.text), wrongPatience
	case passiveUnreached:
		f = newFinding(id, []string{client, shown.String()}, l.text)
		f.ports = map[uint16]bool{uint16(port): true}
	default:
		f = missedPort(client, uint16(port), l.text)
	}
	waited, err := time.ParseDuration(m[2])
	return f, err == nil && waited < minWait
}

// shownAddress returns the address in the reply to PASV for a client that did not connect, and the kind of
// finding: the address is wrong for this client; the address may be wrong, because a NAT or a load balancer hides
// the address that the client uses; or the ports are unreachable.
func (l *line) shownAddress(client string) (shown netip.Addr, id ID) {
	target, err := netip.ParseAddrPort(l.attrs["data_address"]) // EPSV shows no address
	if err != nil {
		return shown, portsUnreachable
	}
	shown = target.Addr().Unmap()
	from, unknown := netip.ParseAddr(client)
	if unknown == nil && isPrivate(shown) && !isPrivate(from.Unmap()) {
		return shown, passiveAddress
	}
	reached, err := netip.ParseAddr(l.attrs["reached_address"])
	switch {
	case err != nil || reached.Unmap() == shown:
		return shown, portsUnreachable
	case !isPrivate(reached.Unmap()):
		return shown, passiveAddress
	}
	return shown, passiveUnreached
}

// giveUp keeps the finding for a client that gave up early, until a transfer in its session disproves it.
func (r *logReader) giveUp(session string, f *Finding) {
	if len(r.early) < maxSessions || r.early[session] != nil {
		r.early[session] = append(r.early[session], f)
	}
}

// conclude adds findings that no later line has disproved, and removes findings that another finding of the same
// client explains: a client that reaches no port with EPSV either does not have a wrong address, a port is not
// closed if a PROXY header is missing there, and a client that fails TLS because of a PROXY header does not reject
// the certificate.
func (r *logReader) conclude() {
	for _, session := range slices.Sorted(maps.Keys(r.early)) {
		for _, f := range r.early[session] {
			r.found.add(f)
		}
	}
	all := r.found.all
	has := func(client string, ids ...ID) bool {
		return slices.ContainsFunc(all, func(o *Finding) bool {
			return o.Client == client && slices.Contains(ids, o.ID)
		})
	}
	r.found.all = slices.DeleteFunc(slices.Clone(all), func(f *Finding) bool {
		if f.ID == portsUnreachable || f.ID == passiveUnreached {
			for port := range f.ports {
				if r.proxied[port] {
					return true
				}
			}
		}
		return f.ID == passiveUnreached && has(f.Client, portsUnreachable) ||
			f.ID == certificateUntrusted && has(f.Client, proxyHeader, protocolMismatch)
	})
}

// follow tracks the commands of a session from debug lines.
func (r *logReader) follow(l *line, client, user string) {
	msg, id := l.attrs["msg"], l.attrs["session"]
	if msg != "command" && msg != "reply" || id == "" {
		return
	}
	s := r.sessions[id]
	if s == nil {
		for other := range r.sessions {
			if len(r.sessions) < maxSessions {
				break
			}
			delete(r.sessions, other)
		}
		s = &logged{client: client}
		r.sessions[id] = s
	}
	s.user = cmp.Or(user, s.user)
	if msg == "reply" {
		s.code, s.reply = l.number("code"), l.text
		if s.code == 200 && strings.HasPrefix(s.command, "TYPE ") {
			s.ascii = strings.HasPrefix(s.command, "TYPE A")
		}
		return
	}
	s.command, s.code = l.attrs["line"], 0
	verb, name, _ := strings.Cut(s.command, " ")
	binary := strings.Contains(binaryNames, " "+strings.ToLower(path.Ext(name))+" ")
	if s.ascii && binary && slices.Contains([]string{"STOR", "RETR", "APPE"}, verb) {
		r.found.add(newFinding(typeASCII, nil, "TYPE A", l.text).seenBy(client, s.user))
	}
	if verb == "QUIT" {
		delete(r.sessions, id)
	}
}

// checkEnd adds a finding if the last reply of a session made the client stop.
func (r *logReader) checkEnd(s *logged) {
	verb, _, _ := strings.Cut(s.command, " ")
	if slices.Contains([]int{500, 501, 502, 504}, s.code) {
		r.found.add(newFinding(clientStops, []string{verb}, s.command, s.reply).seenBy(s.client, s.user))
	}
}

// A line is a line of the log, with its attributes by key.
type line struct {
	attrs map[string]string
	text  string
}

// parseLine parses a line in either format of the log, without any prefix from journald, kubectl or a collector.
// It returns nil for lines of other programs.
func parseLine(text string) *line {
	text = strings.TrimSpace(text)
	if at := strings.Index(text, `{"`); at >= 0 {
		var values map[string]any
		if json.Unmarshal([]byte(text[at:]), &values) == nil && values["msg"] != nil {
			l := &line{attrs: make(map[string]string, len(values)), text: text[at:]}
			for key, value := range values {
				if number, ok := value.(float64); ok {
					value = strconv.FormatFloat(number, 'f', -1, 64)
				}
				l.attrs[key] = fmt.Sprint(value)
			}
			return l
		}
	}
	for _, first := range []string{"time=", "level="} {
		at := strings.Index(text, first)
		if at < 0 {
			continue
		}
		l := &line{attrs: map[string]string{}, text: text[at:]}
		for rest := l.text; rest != ""; rest = strings.TrimLeft(rest, " ") {
			key, value, found := strings.Cut(rest, "=")
			if !found {
				break
			}
			if quoted, err := strconv.QuotedPrefix(value); err == nil {
				rest = value[len(quoted):]
				value, _ = strconv.Unquote(quoted) // QuotedPrefix has checked it
			} else {
				value, rest, _ = strings.Cut(value, " ")
			}
			l.attrs[key] = value
		}
		if l.attrs["msg"] != "" {
			return l
		}
	}
	return nil
}

// number returns a numeric attribute, or 0.
func (l *line) number(key string) int {
	n, _ := strconv.Atoi(l.attrs[key])
	return n
}
