package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/certtest"
	"github.com/babelftp/babelftp/internal/testkit/configtest"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// How FuzzSession begins a session, by bits of its mode.
const (
	loggedIn    = 1 << iota
	underTLS    // the bytes of the control connection go under TLS
	authOnly    // AUTH TLS is accepted, and the bytes are the client's TLS records
	privateData // the bytes of the data connection are TLS records
)

// FuzzSession sends any bytes to a server through TCP: before and after the login, in the clear, under TLS and in the
// place of TLS, and on a data connection. All replies are well-formed, no goroutine panics, the next session works,
// and the server releases all that it has used.
func FuzzSession(f *testing.F) {
	for _, seed := range []struct {
		mode          uint8
		control, data string
	}{
		{loggedIn, "STOR a\r\nSIZE a\r\nRETR a\r\n", "content"},
		{loggedIn, "MKD a\r\x00\nb\r\nMKD x\r\x00\n227 ok (1,2,3,4,5,6)\r\nLIST\r\nMLST x\r\x00\n\r\n", ""},
		{loggedIn,
			"RNFR a\r\nRNTO b\r\nREST 18446744073709551616\r\nREST -1\r\nRANG 1 0\r\nALLO 99999999999999999999\r\n",
			""},
		{loggedIn, "PORT 1,2,3,4,5,6\r\nEPRT |1|127.0.0.1|22|\r\nEPRT |2|::1|99999|\r\nPORT 256,0,0,0,1,1\r\nLIST\r\n",
			""},
		{loggedIn,
			"SITE COPY a b\r\nSITE PRESIGN a 9999999h\r\nSITE URL --8bit \xff\xff\r\nSITE\r\nSITE HELP\r\nHELP SITE\r\n", ""},
		{loggedIn,
			"MLSD\r\nOPTS MLST type;;;size\r\nMFF Modify=20240102030405;Create=1; a\r\nMFMT 99999999999999 " +
				"a\r\nMDTM \xe9\r\n", ""},
		{loggedIn, "TYPE A\r\nTYPE L 8\r\nTYPE L 9\r\nSTRU F\r\nMODE B\r\nSTOR t\r\nHASH t\r\nXCRC \"t\" 0 99\r\n",
			"a\r\nb\nc\r"},
		{loggedIn, "STAT -la *\r\nNLST [a-\r\nNLST \\\r\nLIST -R /../..\r\nCWD ////\r\nCWD " +
			strings.Repeat("a/", 600) + "\r\n", ""},
		{loggedIn,
			"\xff\xf4\xff\xf2ABOR\r\nNO\xff\xfb\x01OP\r\n\xff\xfd\x06NOOP\r\n\xff\xff\r\n\xff\xfa\x01\xff\xf0NOOP\r\n",
			""},
		{loggedIn, "STOR b\r\nABOR\r\nSTAT\r\nQUIT\r\n", strings.Repeat("x", 100_000)},
		{loggedIn | privateData, "PBSZ 0\r\nPROT P\r\nSTOR c\r\n", "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"},
		{loggedIn | privateData, "PBSZ 0\r\nPROT P\r\nRETR a\r\nMLSD\r\n", "GET / HTTP/1.1\r\n\r\n"},
		{loggedIn | underTLS, "PBSZ 0\r\nPROT C\r\nSTOR d\r\nCCC\r\nAUTH TLS\r\nREIN\r\nUSER alice\r\n",
			"in the clear"},
		{0, "USER alice\r\nPASS \xff\xff\r\nHOST [::1%25eth0]\r\nHOST a..b\r\nLANG de-\r\nLANG x-" +
			strings.Repeat("y", 300) + "\r\nFEAT\r\n", ""},
		{0, "USER " + strings.Repeat("a", 9000) + "\r\nUSER a\r\n", ""},
		{0, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", ""},
		{0, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", ""},
		{0, "\x00\r\n\r\n\r\x00\n \r\nNOOP \r\nnoop\nNOOP\r\r\n\xef\xbb\xbfNOOP\r\n", ""},
		{0, "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n\r\n\r\n\x00\r\nQUIT\r\n!\x11\x00\x0c", ""},
		{0, "AUTH TLS\r\nUSER injected\r\nPASS x\r\n", ""},
		{authOnly, "\x16\x03\x01\x00\xff\x01\x00\x00\xfb\x03\x03" + strings.Repeat("\x00", 200), ""},
		{authOnly, "NOOP\r\nUSER a\r\n", ""},
		{underTLS, "OPTS UTF8 ON\r\nCLNT \x07\x1b[2J\r\nHELP \xe2\x80\xae\r\nAUTH SSL\r\nPASS\r\nXYZZY \x85\r\n", ""},
	} {
		f.Add(seed.mode, []byte(seed.control), []byte(seed.data))
	}
	var a *attacked
	if !coordinatesFuzzing() {
		a = newAttacked(f, func(cfg *config.Config) {
			cfg.DataTimeout, cfg.StallTimeout = time.Second, time.Second // which the bytes may meet
		})
	}
	f.Fuzz(func(t *testing.T, mode uint8, control, data []byte) {
		sent, err := a.send(mode, control, data)
		if err != nil {
			t.Fatal(err)
		}
		if err := wellFormed(sent); err != nil {
			t.Fatalf("%v in %q", err, sent)
		}
		if bugs := a.log.taken(); bugs != "" {
			t.Fatalf("the log has %s", bugs)
		}
		c := ftptest.Dial(t, a.srv.Addr().String())
		c.Login("bob", configtest.Password)
		if got := c.Transfer("RETR proof"); got != "intact" {
			t.Fatalf("another user's file holds %q", got)
		}
		c.Command(221, "QUIT")
		_ = c.Close()
		a.released(t)
	})
}

// coordinatesFuzzing says whether this process starts others that fuzz, and fuzzes nothing itself. It starts them in
// its working directory, which the embedded S3 server would move.
func coordinatesFuzzing() bool {
	return flag.Lookup("test.fuzz").Value.String() != "" && flag.Lookup("test.fuzzworker").Value.String() == "false"
}

// attacked is a server to which any bytes are sent.
type attacked struct {
	srv    *Server
	client *s3.Client
	bucket string
	log    bugLog
	tls    *tls.Config
	most   resources // that the server may use between sessions
}

// newAttacked starts a server; change may alter its configuration.
func newAttacked(tb testing.TB, change func(*config.Config)) *attacked {
	tb.Helper()
	s := s3test.Start(tb, "embedded")
	cfg := configtest.New(tb, s)
	dir := tb.TempDir()
	cfg.TLS = config.TLS{CertFile: dir + "/server.crt", KeyFile: dir + "/server.key"}
	certtest.Write(tb, cfg.TLS.CertFile, cfg.TLS.KeyFile, &x509.Certificate{})
	cfg.Limits.SessionsPerAddress, cfg.Limits.FailedLoginDelay = 0, 0
	cfg.CommitDelay = time.Millisecond
	if change != nil {
		change(cfg)
	}
	acme := cfg.Tenants["acme"]
	acme.Presign, acme.Quota = time.Hour, 1<<30
	acme.Users["alice"].Root = "/alice"
	acme.Users["bob"] = &config.User{PasswordHash: configtest.PasswordHash(), Root: "/bob"}
	acme.Users["carol"] = &config.User{PasswordHash: configtest.PasswordHash()}
	// the test knows its server
	a := &attacked{client: s.Client(), bucket: acme.Bucket, tls: &tls.Config{InsecureSkipVerify: true}}
	if err := cfg.Validate(); err != nil {
		tb.Fatal(err)
	}
	srv, err := New(tb.Context(), cfg, Options{AWS: s.AWSConfig(), Logger: slog.New(&a.log)})
	if err != nil {
		tb.Fatal(err)
	}
	ftptest.Serve(tb, srv)
	a.srv = srv
	c := ftptest.Dial(tb, srv.Addr().String())
	c.Login("bob", configtest.Password)
	c.Store("proof", "intact")
	c.Command(221, "QUIT")
	_ = c.Close()
	const slack = 40 // idle connections to S3, with two goroutines each at both ends
	a.most = used()
	a.most.goroutines += 4 * slack
	a.most.descriptors += 2 * slack
	return a
}

// send sends bytes on a control connection and on a data connection, and returns what the server has sent on the first.
func (a *attacked) send(mode uint8, control, data []byte) (sent string, err error) {
	c, err := ftptest.Open(a.srv.Addr().String())
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.Timeout = time.Minute
	if _, err := c.Reply(); err != nil {
		return "", err
	}
	var lines []string
	if mode&(underTLS|authOnly) != 0 {
		lines = append(lines, "AUTH TLS")
	}
	if mode&loggedIn != 0 && mode&authOnly == 0 {
		lines = append(lines, "USER alice", "PASS "+configtest.Password)
	}
	for _, line := range lines {
		if reply, err := c.Send(line); err != nil || reply[0] > '3' {
			return "", fmt.Errorf("%s: %q %w", line, reply, err)
		}
		if line == "AUTH TLS" && mode&underTLS != 0 && mode&authOnly == 0 {
			if err := c.StartTLS(a.tls); err != nil {
				return "", err
			}
		}
	}
	var moved sync.WaitGroup
	if mode&loggedIn != 0 && mode&authOnly == 0 {
		conn, err := c.Data()
		if err != nil {
			return "", err
		}
		_ = conn.SetDeadline(time.Now().Add(c.Timeout))
		moved.Go(func() {
			_, _ = conn.Write(data)
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		})
	}
	_, _ = c.Write(append(control, "\r\nQUIT\r\n"...)) // the server may have hung up
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = c.SetReadDeadline(time.Now().Add(c.Timeout))
	all, err := io.ReadAll(c.In)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return "", fmt.Errorf("the session does not end: %w", err)
	}
	_ = c.Close()
	moved.Wait()
	if mode&authOnly != 0 {
		return "", nil // TLS alerts
	}
	return string(all), nil
}

// withoutTelnet leaves out the answers to Telnet options, IAC WONT and IAC DONT (RFC 854).
func withoutTelnet(sent string) string {
	for i := 0; i+2 < len(sent); i++ {
		for i+2 < len(sent) && sent[i] == 0xff && (sent[i+1] == 0xfc || sent[i+1] == 0xfe) {
			sent = sent[:i] + sent[i+3:]
		}
	}
	return sent
}

// wellFormed says what is wrong with replies. Each is a code and text, or lines of which the first and the last have
// the code (RFC 959, section 4.2). All are UTF-8, and end with CRLF. They have no other CR or LF.
func wellFormed(sent string) error {
	if sent = withoutTelnet(sent); !utf8.ValidString(sent) {
		return errors.New("bytes that are no UTF-8")
	}
	code := ""
	for sent != "" {
		line, rest, ended := strings.Cut(sent, "\r\n")
		sent = rest
		switch {
		case !ended:
			return fmt.Errorf("line %q without its end", line)
		case strings.ContainsAny(strings.ReplaceAll(line, "\r\x00", ""), "\r\n"):
			return fmt.Errorf("line %q with CR or LF", line)
		case code != "" && strings.HasPrefix(line, code+" "):
			code = ""
		case code != "":
		case !reply.MatchString(line):
			return fmt.Errorf("line %q is no reply", line)
		case line[3] == '-':
			code = line[:3]
		}
	}
	if code != "" {
		return fmt.Errorf("a reply %s without its last line", code)
	}
	return nil
}

var reply = regexp.MustCompile(`^[1-5][0-5]\d[ -]`)

// A bugLog is a log that remembers the lines about bugs of the server.
type bugLog struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (l *bugLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

func (l *bugLog) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(&l.lines, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintln(&l.lines, a)
		return true
	})
	return nil
}

func (l *bugLog) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *bugLog) WithGroup(string) slog.Handler      { return l }

// taken are the lines since the last call.
func (l *bugLog) taken() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.lines.Reset()
	return l.lines.String()
}

// resources are what a process uses.
type resources struct{ goroutines, descriptors int }

func used() resources {
	open, _ := os.ReadDir("/proc/self/fd") // none where there is no /proc
	return resources{runtime.NumGoroutine(), len(open)}
}

// released waits until the server has released what ended sessions used.
func (a *attacked) released(tb testing.TB) {
	tb.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		now := used()
		if now.goroutines <= a.most.goroutines && now.descriptors <= a.most.descriptors {
			return
		}
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			tb.Fatalf("in use: %+v, want %+v at most\n%s", now, a.most, stacks[:runtime.Stack(stacks, true)])
		}
		runtime.Gosched()
	}
}
