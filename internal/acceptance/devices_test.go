package acceptance_test

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// A device is a device or program that the tests only imitate. Its script is a dialog taken from published logs,
// source code or manuals.
type device struct {
	name     string // In the table of docs/conformance.md.
	settings string // Settings of its tenant in YAML, which are also in the table. "" for none.
	lineEnd  string // Line end of its commands. "" for CRLF.

	has map[string]string // Objects before the dialog, by name.
	// script is a dialog with one step per line. DEVICE and SECRET are replaced with the device's user and
	// password, and EMPTY with nothing.
	//
	//   250 CWD /in                     send a command and expect a reply that begins with 250
	//   226 STOR a.txt <<< a\r\n        send text on the data connection after 150
	//   226 LIST >>> a.txt              expect data that contains a text
	//   150 STOR a.txt <<< a            begin an upload
	//   200 PORT                        send PORT with an address
	//   + NOOP                          send a command together with the next one, without reading a reply
	//   200                             expect a reply
	//   close                           close the data connection
	//   abort                           send Telnet IP and Synch, and ABOR
	//   connect                         begin the next session
	script string
	want   map[string]string // Objects afterwards. A * in a name matches any characters.
}

// devices returns all devices in the order of the table.
func devices() []device { return slices.Concat(desktopPrograms, cameras, officeDevices, hosts) }

// TestClientsByScript plays the dialogs of all devices, each with its own tenant.
func TestClientsByScript(t *testing.T) {
	t.Parallel()
	var tenants strings.Builder
	for i, d := range devices() {
		fmt.Fprintf(
			&tenants,
			"  device-%d:\n    bucket: BUCKET\n    prefix: inbox/device/%d/\n    resume: discard\n    users: {device-%d: "+
				"{password_hash: %q}}\n", i, i, i, passwordHash(t, oldPassword))
		if d.settings != "" {
			fmt.Fprintf(&tenants, "    %s\n", d.settings)
		}
	}
	s := newSite(t, s3test.Start(t, "minio"), tenants.String())
	for i, d := range devices() {
		t.Run(strings.ReplaceAll(d.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			dir := fmt.Sprintf("device/%d/", i)
			for name, content := range d.has {
				must.OK(t, s.put(t.Context(), dir+name, content))
			}
			p := &player{t: t, site: s, lineEnd: cmp.Or(d.lineEnd, "\r\n"), lines: strings.NewReplacer(
				"DEVICE", fmt.Sprintf("device-%d", i), "SECRET", oldPassword, "EMPTY", "")}
			p.play("connect")
			for line := range strings.Lines(d.script) {
				if line = strings.TrimSpace(line); line != "" {
					p.play(line)
				}
			}
			p.hangUp()
			got := s.objects(t, dir)
			if want := slices.Sorted(maps.Keys(d.want)); !slices.EqualFunc(got, want, matches) {
				t.Errorf("the bucket has %q, want %q", got, want)
				return
			}
			for i, name := range slices.Sorted(maps.Keys(d.want)) {
				s.mustStore(t, dir+got[i], []byte(d.want[name]))
			}
			if open := s.uploads(t, dir); len(open) > 0 {
				t.Errorf("the bucket has open multipart uploads of %q", open)
			}
		})
	}
}

// matches reports whether name matches a pattern, in which * matches any characters.
func matches(name, pattern string) bool {
	if !strings.Contains(pattern, "*") {
		return name == pattern
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// A player imitates a device. Every error ends the test.
type player struct {
	t        *testing.T
	site     *site
	lineEnd  string
	lines    *strings.Replacer
	conn     *ftptest.Conn
	together string       // Commands to send together with the next one.
	data     net.Conn     // Data connection in passive mode, or of an upload in progress.
	listener net.Listener // In active mode.
}

// play performs a line of a script.
func (p *player) play(line string) {
	p.t.Helper()
	line = p.lines.Replace(line)
	switch command, ok := strings.CutPrefix(line, "+ "); {
	case ok:
		p.together += command + p.lineEnd
		return
	case line == "connect":
		p.connect()
		return
	case line == "close":
		p.closeData()
		return
	case line == "abort":
		p.abort()
		return
	}
	code, command, _ := strings.Cut(line, " ")
	command, content, sends := strings.Cut(command, " <<< ")
	command, part, receives := strings.Cut(command, " >>> ")
	switch {
	case sends:
		p.upload(code, command, p.unquote(content))
	case receives:
		p.download(code, command, p.unquote(part))
	default:
		p.command(code, command)
	}
}

// unquote interprets \r and \n in file contents as in Go.
func (p *player) unquote(text string) string {
	p.t.Helper()
	text, err := strconv.Unquote(`"` + text + `"`)
	if err != nil {
		p.t.Fatalf("%q: %v", text, err)
	}
	return text
}

// connect begins a session.
func (p *player) connect() {
	p.t.Helper()
	p.hangUp()
	var err error
	if p.conn, err = ftptest.Open(p.site.address); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(p.hangUp)
	p.expect("220", "the connection")
}

// hangUp ends the session.
func (p *player) hangUp() {
	p.closeData()
	if p.conn != nil {
		_ = p.conn.Close()
	}
}

func (p *player) closeData() {
	if p.data != nil {
		_ = p.data.Close()
	}
	if p.listener != nil {
		_ = p.listener.Close()
	}
	p.data, p.listener = nil, nil
}

// send sends a command together with the pending ones.
func (p *player) send(command string) {
	p.t.Helper()
	if command != "" {
		command += p.lineEnd
	}
	if _, err := io.WriteString(p.conn, p.together+command); err != nil {
		p.t.Fatalf("%s: %v", command, err)
	}
	p.together = ""
}

// expect reads a reply and checks its first characters.
func (p *player) expect(code, command string) string {
	p.t.Helper()
	reply, err := p.conn.Reply()
	if err != nil || !strings.HasPrefix(reply, code) {
		p.t.Fatalf("%s: reply %q, %v; want %s", command, reply, err, code)
	}
	return reply
}

// command sends a command and handles its reply.
func (p *player) command(code, command string) {
	p.t.Helper()
	if command == "PORT" {
		command += " " + p.listen()
	}
	p.send(command)
	reply := p.expect(code, command)
	switch {
	case strings.HasPrefix(reply, "227 "), strings.HasPrefix(reply, "229 "):
		p.closeData()
		data, err := p.conn.DialData(passiveAddress(p.site.address, reply))
		must.OK(p.t, err)
		p.data = data
	case strings.HasPrefix(reply, "234 "):
		certificate := must.ReadFile(p.t, p.site.ca)
		p.conn.TLS = &tls.Config{
			RootCAs: must.CertPool(certificate), ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12,
		}
		must.OK(p.t, p.conn.StartTLS(p.conn.TLS))
	}
}

// passiveAddress returns the address of the data connection in a reply to PASV or EPSV.
func passiveAddress(server, reply string) string {
	host, _, _ := net.SplitHostPort(server)
	if m := regexp.MustCompile(`\(\|\|\|(\d+)\|\)`).FindStringSubmatch(reply); m != nil {
		return net.JoinHostPort(host, m[1])
	}
	m := regexp.MustCompile(`\d+,\d+,\d+,\d+,(\d+),(\d+)`).FindStringSubmatch(reply)
	if m == nil {
		return reply // not an address
	}
	high, _ := strconv.Atoi(m[1])
	low, _ := strconv.Atoi(m[2])
	return net.JoinHostPort(host, strconv.Itoa(high<<8|low))
}

// listen opens a port for a data connection and returns its address in PORT syntax.
func (p *player) listen() string {
	p.t.Helper()
	p.closeData()
	var err error
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		p.t.Fatal(err)
	}
	port := p.listener.Addr().(*net.TCPAddr).Port
	return fmt.Sprintf("127,0,0,1,%d,%d", port>>8, port&0xff)
}

// begin starts a transfer. If the server does not open the data connection, the reply shows the reason.
func (p *player) begin(command string) {
	p.t.Helper()
	p.send(command)
	p.expect("150", command)
	if p.listener != nil {
		_ = p.listener.(*net.TCPListener).SetDeadline(time.Now().Add(waitTimeout))
		data, err := p.listener.Accept()
		if err != nil {
			p.t.Fatalf("%s: %v", command, err)
		}
		p.data = data
	}
	_ = p.data.SetDeadline(time.Now().Add(waitTimeout))
}

func (p *player) upload(code, command, content string) {
	p.t.Helper()
	p.begin(command)
	if _, err := io.WriteString(p.data, content); err != nil {
		p.t.Fatalf("%s: %v", command, err)
	}
	if code != "150" {
		p.closeData()
		p.expect(code, command)
	}
}

func (p *player) download(code, command, part string) {
	p.t.Helper()
	p.begin(command)
	content, err := io.ReadAll(p.data)
	if err != nil || !strings.Contains(string(content), part) {
		p.t.Fatalf("%s: got %q, %v; want %q in it", command, content, err, part)
	}
	p.closeData()
	p.expect(code, command)
}

// abort sends ABOR as defined in RFC 959, section 4.1.3, preceded by Telnet IP and Synch, whose last byte is
// urgent.
func (p *player) abort() {
	p.t.Helper()
	raw, err := p.conn.Conn.(*net.TCPConn).SyscallConn()
	must.OK(p.t, err)
	var sent error
	err = raw.Write(func(fd uintptr) bool {
		_, sent = syscall.SendmsgN(int(fd), []byte{0xff, 0xf4, 0xff}, nil, nil, syscall.MSG_OOB)
		return true
	})
	if err = cmp.Or(err, sent); err != nil {
		p.t.Fatal(err)
	}
	p.send("\xf2ABOR")
}
