package acceptance_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// An attack sends random commands from many clients at the same time.
type attack struct {
	site     *site
	syntaxes []string // syntaxes of commands
	until    time.Time

	sessions, commands atomic.Int64

	mu   sync.Mutex
	left []net.Conn // connections left open by clients, the newest last
}

// Number of concurrent clients, and of connections left open per client.
const (
	talkers = 48
	maxLeft = 12
)

// leave keeps a connection open for a while.
func (a *attack) leave(conn net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left = append(a.left, conn); len(a.left) > talkers*maxLeft {
		_ = a.left[0].Close()
		a.left = a.left[1:]
	}
}

// release closes all connections that were left open.
func (a *attack) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, conn := range a.left {
		_ = conn.Close()
	}
	a.left = nil
}

// A speaker is the client of one session. It ignores errors, because the server may close the connection at any
// time.
type speaker struct {
	*ftptest.Conn
	*rand.Rand
	attack *attack
}

// chance returns true once in the given number of times, on average.
func (sp *speaker) chance(times int) bool { return sp.IntN(times) == 0 }

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// session runs one session from a random address.
func (a *attack) session(r *rand.Rand) {
	a.sessions.Add(1)
	address := a.site.address
	implicit := r.IntN(8) == 0
	if implicit {
		address = a.site.implicit
	}
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 2, byte(1+r.IntN(250)))}}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		return
	}
	sp := &speaker{ftptest.NewConn(conn), r, a}
	defer func() { sp.end(sp.Conn.Conn) }()
	sp.Timeout = 2 * time.Second
	if sp.chance(10) {
		_, _ = io.WriteString(conn, sp.junk())
	}
	if implicit && (sp.chance(5) || !sp.encrypt()) {
		return
	}
	if _, err := sp.Reply(); err != nil {
		return
	}
	if !implicit && sp.chance(3) && !sp.startTLS() {
		return
	}
	if !sp.chance(4) && !sp.all("USER mallory@acme", "PASS "+servicetest.Password) {
		return
	}
	if !sp.chance(3) && sp.all("TYPE I", "CWD /") && sp.TLS != nil {
		sp.all("PBSZ 0", "PROT P")
	}
	for range sp.IntN(30) {
		if time.Now().After(a.until) || !sp.step() {
			return
		}
	}
	if sp.chance(2) {
		sp.say("QUIT")
	}
}

// end closes a connection in a random way.
func (sp *speaker) end(conn net.Conn) {
	tcp, _ := conn.(*net.TCPConn)
	if under, ok := conn.(*tls.Conn); ok && sp.chance(2) {
		tcp, _ = under.NetConn().(*net.TCPConn) // without close_notify
	}
	switch {
	case sp.chance(4):
		sp.attack.leave(conn)
	case tcp != nil && sp.chance(3):
		_ = tcp.SetLinger(0) // a reset
		_ = tcp.Close()
	case tcp != nil && sp.chance(3):
		_ = tcp.CloseWrite()
		sp.attack.leave(conn)
	default:
		_ = conn.Close()
	}
}

// say sends a command and reads the reply.
func (sp *speaker) say(line string) (reply string, ok bool) {
	sp.attack.commands.Add(1)
	reply, err := sp.Send(line)
	return reply, err == nil
}

// all sends commands and reports whether all succeeded.
func (sp *speaker) all(lines ...string) bool {
	for _, line := range lines {
		if reply, ok := sp.say(line); !ok || reply[0] > '3' {
			return false
		}
	}
	return true
}

func (sp *speaker) startTLS() bool { return sp.all("AUTH TLS") && sp.encrypt() }

// encrypt starts TLS, or breaks off during the handshake.
func (sp *speaker) encrypt() bool {
	cfg := &tls.Config{InsecureSkipVerify: true,
		ServerName: pick(sp.Rand, "", "ftp.acme.example", "ftp.unknown.example")}
	_ = sp.SetDeadline(time.Now().Add(10 * time.Second))
	switch {
	case sp.chance(12):
		_, _ = io.WriteString(sp, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"+sp.junk())
		return false
	case sp.chance(12):
		return false
	}
	sp.TLS = cfg
	if sp.StartTLS(cfg) != nil {
		return false
	}
	_ = sp.SetDeadline(time.Time{})
	return true
}

// step performs a random step. It returns false after the last one.
func (sp *speaker) step() bool {
	switch sp.IntN(10) {
	case 0, 1:
		return sp.transfer()
	case 2: // without waiting for replies
		var lines strings.Builder
		for range 1 + sp.IntN(30) {
			lines.WriteString(sp.broken(sp.command()) + "\r\n")
		}
		_ = sp.SetWriteDeadline(time.Now().Add(time.Second))
		_, err := io.WriteString(sp, lines.String())
		_ = sp.SetWriteDeadline(time.Time{})
		for err == nil && !sp.chance(3) {
			sp.Timeout = 200 * time.Millisecond
			_, err = sp.Reply()
		}
		sp.Timeout = 2 * time.Second
		return sp.chance(2)
	case 3: // starts TLS on an unencrypted connection
		if sp.TLS == nil && sp.chance(3) {
			return sp.startTLS()
		}
		return !sp.chance(6)
	default:
		_, ok := sp.say(sp.broken(sp.command()))
		return ok
	}
}

// transfer optionally opens a data connection, sends a command, and uses the data connection in a random way.
func (sp *speaker) transfer() bool {
	sp.attack.commands.Add(2)
	address, err := sp.Passive()
	if err != nil {
		var broken net.Error
		return !errors.As(err, &broken) && !errors.Is(err, io.EOF) // false if the connection broke
	}
	var conn net.Conn
	if !sp.chance(6) {
		if conn, err = sp.DialData(address); err != nil {
			return true
		}
		defer func() { sp.end(conn) }()
		_ = conn.SetDeadline(time.Now().Add(time.Second))
	}
	line := sp.command()
	for range 20 { // prefer a command that transfers
		if regexp.MustCompile(`^(?i:RETR|STOR|APPE|STOU|LIST|NLST|MLSD)`).MatchString(line) {
			break
		}
		line = sp.command()
	}
	reply, ok := sp.say(sp.broken(line))
	if !ok || reply[0] != '1' {
		return ok
	}
	if conn != nil {
		switch sp.IntN(5) {
		case 0:
			_, _ = io.Copy(io.Discard, conn)
		case 1:
			_, _ = io.WriteString(conn, sp.junk())
		case 2:
			_, _ = conn.Write(make([]byte, sp.IntN(8<<20)))
		case 3:
			_, _ = io.ReadAtLeast(conn, make([]byte, 1<<10), 100)
		}
		if !sp.chance(3) {
			_ = conn.Close()
		}
	}
	for sp.chance(3) {
		if _, ok := sp.say(pick(sp.Rand, "ABOR", "STAT", "\xff\xf4\xff\xf2ABOR", "NOOP", "QUIT", "REIN")); !ok {
			return false
		}
	}
	_, err = sp.Reply()
	return err == nil
}

var (
	innermost = regexp.MustCompile(`\s?\[([^\[\]]*)\]`)
	word      = regexp.MustCompile(`YYYYMMDDhhmmss|h1,h2,h3,h4,p1,p2|\b[a-z][a-z-]+\b`)
)

// command returns a command with a random syntax.
func (sp *speaker) command() string {
	line := pick(sp.Rand, sp.attack.syntaxes...)
	for innermost.MatchString(line) { // the innermost optional part comes first
		keep := sp.chance(2)
		line = replaceOnce(innermost, line, func(part string) string {
			if !keep {
				return ""
			}
			return " " + innermost.FindStringSubmatch(part)[1]
		})
	}
	if verb, choices, found := strings.Cut(line, " <SP> "); found {
		line = verb + " <SP> " + pick(sp.Rand, strings.Split(choices, " | ")...)
	}
	line = strings.ReplaceAll(line, " <SP> ", " ")
	return word.ReplaceAllStringFunc(line, sp.value)
}

func replaceOnce(re *regexp.Regexp, text string, replace func(string) string) string {
	at := re.FindStringIndex(text)
	return text[:at[0]] + replace(text[at[0]:at[1]]) + text[at[1]:]
}

// value returns a value for a word in a syntax.
func (sp *speaker) value(word string) string {
	if sp.chance(20) {
		return sp.junk()
	}
	switch word {
	case "pathname":
		return pick(
			sp.Rand, "a", "b", "a", "dir", "dir/b", "dir/deep/er/c", "/", "..", "/../a", " a ", "-la", "-la *", "*",
			"d*/?", "[a-", "é", "e\u0301", "\xe9", "\xff\xff",
			"x\r\x00\ny", "a\x00b", "\x10", ".babelftp/x", "dir/", "\u202e", strings.Repeat("d/", sp.IntN(600)),
			strings.Repeat("*a", 240),
			strings.Repeat("n", sp.IntN(1100)), `"a"`, fmt.Sprint("f", sp.IntN(20)))
	case "bytes", "offset", "start", "end", "duration", "port":
		return pick(
			sp.Rand, "0", "1", "4096", "20000000", "2600000000000", "-1", "9223372036854775807", "99999999999999999999",
			"1h", "1e9", "")
	case "YYYYMMDDhhmmss":
		return pick(
			sp.Rand, "20240102030405", "20240102030405.678", "00000000000000", "99991231235959", "20240230000000")
	case "h1,h2,h3,h4,p1,p2":
		return fmt.Sprintf("127,0,2,%d,%d,%d", sp.IntN(256), sp.IntN(300), sp.IntN(256))
	case "address":
		return pick(sp.Rand, "127.0.2.1", "::1", "10.0.0.1", "fe80::1%lo")
	case "name":
		return pick(
			sp.Rand, "mallory@acme", "alice@acme", "nobody", "a@b@c", "\xff", strings.Repeat("u", sp.IntN(4090)))
	case "password":
		return pick(sp.Rand, servicetest.Password, servicetest.Password, "wrong", "")
	case "hostname":
		return pick(
			sp.Rand, "ftp.acme.example", "ftp.umbrella.example", "127.0.0.1", "[::1]", "a..b",
			strings.Repeat("a.", 200))
	case "language-tag":
		return pick(sp.Rand, "fr", "ja", "ar", "en-US-x-"+strings.Repeat("a-", sp.IntN(50)), "*", "und", "x")
	case "command":
		return pick(sp.Rand, "UTF8", "MLST", "HASH", "SITE", "RETR", "NONE")
	case "options":
		return pick(sp.Rand, "ON", "OFF", "MD5", "SHA-512", "type;size;", strings.Repeat("type;", sp.IntN(700)))
	}
	return word
}

// junk returns meaningless bytes.
func (sp *speaker) junk() string {
	piece := pick(
		sp.Rand, "\xff\xfb\x01", "\xff\xf4\xff\xf2", "\xff\xfa", "\x00", "\r\x00", "\xff\xff", " ", "a", "é", "\x10",
		"../", "%s", "PROXY ")
	return strings.Repeat(piece, 1+sp.IntN(pick(sp.Rand, 3, 500, 5000)))
}

// broken returns a command line, sometimes with a fault.
func (sp *speaker) broken(line string) string {
	at := sp.IntN(len(line) + 1)
	switch sp.IntN(30) {
	case 0:
		return line[:at] + sp.junk() + line[at:]
	case 1:
		return line[:at]
	case 2:
		return strings.ToLower(line)
	case 3:
		return line + " "
	case 4:
		return strings.Replace(line, " ", "  ", 1)
	case 5:
		return sp.junk() + line
	}
	return line
}
