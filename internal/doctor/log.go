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

// A sign is what shows a finding in a line.
type sign struct {
	id      ID
	keys    []string // one of these has the pattern
	pattern *regexp.Regexp
}

func (s *sign) in(l *line) bool {
	return slices.ContainsFunc(s.keys, func(key string) bool { return s.pattern.MatchString(l.attrs[key]) })
}

// A logReader groups the lines of a log.
type logReader struct {
	found    Findings
	signs    []sign
	sessions map[string]*logged
	proxied  map[uint16]bool       // ports at which a PROXY header was missing
	early    map[string][]*Finding // by session: ports that the client gave up soon, while no transfer has followed
}

var missed = regexp.MustCompile(`did not connect to port (\d+) within ([0-9a-zµ.]+)`)

// patience is how long a client must have had to connect to a port before the port counts as unreachable. A client that
// gives up sooner may have asked for another port without trying the first one, unless no transfer follows in its
// session: a firewall that rejects connections answers at once.
const patience = time.Second

// wrongPatience is patience for a wrong address, because the network often rejects such a connection at once.
const wrongPatience = 50 * time.Millisecond

// ErrNoLog says that a log has no line of a server that the filter wants.
var ErrNoLog = errors.New("the input has no line of a babelftp log: give it the lines as the server writes them, in text or JSON")

// Bounds of what is kept of a log.
const (
	maxLine     = 1 << 20 // bytes; longer lines are skipped
	maxSessions = 10000   // that have not ended
	slowRequest = 5000    // milliseconds of a request to S3 that are too many
)

// A Filter says which lines of a log to read. The zero value has all.
type Filter struct {
	Network netip.Prefix // of clients
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

// ReadLog reads lines of the log of a server, in text or JSON, and returns what they show.
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
		r.ended(s)
	}
	r.conclude()
	return &r.found, nil
}

// read notes what a line shows. Sessions of doctor itself try what no client does.
func (r *logReader) read(l *line) {
	if l.attrs["software"] == software {
		return
	}
	client, user := cmp.Or(l.attrs["remote"], l.attrs["from"]), l.attrs["user"]
	if host, _, err := net.SplitHostPort(client); err == nil {
		client = host
	}
	note := func(f *Finding) {
		if client == "" { // the server says it of itself
			user = ""
		}
		r.found.add(f.of(client, user))
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
		r.giveUp(l.attrs["session"], f.of(client, user))
	} else if f != nil {
		note(f)
	}
	if l.attrs["msg"] == "transfer" && l.number("code")/100 == 2 {
		delete(r.early, l.attrs["session"])
	}
	r.follow(l, client, user)
}

// shownBy returns the kinds of findings that a line shows. What a more exact kind explains is left out.
func (r *logReader) shownBy(l *line) []ID {
	var ids []ID
	for i := range r.signs {
		id := r.signs[i].id
		early := id == transferCut && l.number("code") != 426 // a client may leave before
		if !early && !slices.Contains(ids, id) && r.signs[i].in(l) {
			ids = append(ids, id)
		}
	}
	exact := len(ids) > 1
	return slices.DeleteFunc(ids, func(id ID) bool {
		return exact && (id == loginRefused || id == limitReached || id == unavailable)
	})
}

// keysOfLimit returns the keys of a limit of a tenant, empty for the limits of all. It returns nil if the log does not
// name the limit.
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

// missedPort returns what a client that did not connect to its passive port shows, and whether it gave up soon. It
// returns nil for other lines.
func (l *line) missedPort(client string) (f *Finding, soon bool) {
	why := cmp.Or(l.attrs["connection"], l.attrs["err"])
	m := missed.FindStringSubmatch(why)
	if m == nil || strings.Contains(why, "not the address of the control") {
		return nil, false
	}
	least := patience
	port, _ := strconv.ParseUint(m[1], 10, 16) // the pattern has digits only; 0 for more
	shown, id := l.shownAddress(client)
	switch id {
	case passiveAddress:
		f, least = newFinding(id, []string{shown.String()}, l.text), wrongPatience
	case passiveUnreached:
		f = newFinding(id, []string{client, shown.String()}, l.text)
		f.ports = map[uint16]bool{uint16(port): true}
	default:
		f = missedPort(client, uint16(port), l.text)
	}
	waited, err := time.ParseDuration(m[2])
	return f, err == nil && waited < least
}

// shownAddress returns the address that PASV has shown to a client that did not connect to it, and what the address
// shows: that it cannot be the address of the server for this client, that it may be another one because a NAT or a
// load balancer may be in between, whose address the server does not know, or that the ports are unreachable.
func (l *line) shownAddress(client string) (shown netip.Addr, id ID) {
	told, err := netip.ParseAddrPort(l.attrs["data_address"]) // EPSV shows no address
	if err != nil {
		return shown, portsUnreachable
	}
	shown = told.Addr().Unmap()
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

// giveUp keeps what a client that gave up soon shows, until a transfer in its session proves it wrong.
func (r *logReader) giveUp(session string, f *Finding) {
	if len(r.early) < maxSessions || r.early[session] != nil {
		r.early[session] = append(r.early[session], f)
	}
}

// conclude adds what no later line has proved wrong, and removes what another finding of the same client explains: a
// client that reaches no port by EPSV either has no wrong address, a port is not closed if a PROXY header is missing
// there, and a client that a PROXY header keeps from TLS does not object to the certificate.
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

// follow follows the commands of a session, which are debug lines.
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
		r.found.add(newFinding(typeASCII, nil, "TYPE A", l.text).of(client, s.user))
	}
	if verb == "QUIT" {
		delete(r.sessions, id)
	}
}

// ended notes a device that has given up at a reply.
func (r *logReader) ended(s *logged) {
	verb, _, _ := strings.Cut(s.command, " ")
	if slices.Contains([]int{500, 501, 502, 504}, s.code) {
		r.found.add(newFinding(clientStops, []string{verb}, s.command, s.reply).of(s.client, s.user))
	}
}

// A line is one of the log: its attributes by their keys, and its text.
type line struct {
	attrs map[string]string
	text  string
}

// parseLine reads a line in either format of the log. What journald, kubectl or a collector has put in front is left
// out. It returns nil for a line of another program.
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

// number is an attribute that is a number, else 0.
func (l *line) number(key string) int {
	n, _ := strconv.Atoi(l.attrs[key])
	return n
}
