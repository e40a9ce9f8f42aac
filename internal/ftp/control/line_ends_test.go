package control_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// TestLineEnds plays sessions whose commands do not all end with CRLF. Each text is sent as one TCP segment.
//
// Reported for htsjdk: samtools/htsjdk#470, whose FTPClient ends commands with the line separator of Java's system.
func TestLineEnds(t *testing.T) {
	for _, test := range []struct {
		name     string
		segments []string
		codes    string // codes of the replies
		objects  []string
	}{
		{"lf", []string{"USER demo\n", "PASS demo\n", "MKD a b\n", "CWD a b\n", "PWD\n", "TYPE I\n", "QUIT\n"},
			"331 230 257 250 257 200 221", []string{"a b/"}},
		{"lf-in-one-segment", []string{"USER demo\nPASS demo\nMKD a\nMKD b\nQUIT\n"}, "331 230 257 257 221", []string{"a/", "b/"}},
		{"lf-in-segments", []string{"USER de", "mo", "\n", "PASS demo", "\n", "MKD a", "\n", "QUIT", "\n"},
			"331 230 257 221", []string{"a/"}},
		{"lf-from-feat-on", []string{"FEAT\n", "OPTS UTF8 ON\n", "USER demo\n", "PASS demo\n", "MKD a\n"},
			"211 200 331 230 257", []string{"a/"}},
		{"lf-after-a-wrong-password", []string{"USER demo\n", "PASS x\n", "USER demo\n", "PASS demo\n", "MKD a\n"},
			"331 530 331 230 257", []string{"a/"}},
		{"lf-for-the-password", []string{"USER demo\r\n", "PASS demo\n", "MKD a\n"}, "331 230 257", []string{"a/"}},
		{"lf-after-rein", []string{"USER demo\n", "PASS demo\n", "REIN\n", "USER demo\n", "PASS demo\n", "MKD a\n"},
			"331 230 220 331 230 257", []string{"a/"}},
		{"lf-and-crlf", []string{"USER demo\n", "PASS demo\r\n", "MKD a\r\n", "MKD b\n"}, "331 230 257 257", []string{"a/", "b/"}},
		{"lf-before-a-login", []string{"CWD a\n", "SIZE a\n", "USER demo\n"}, "530 530 331", nil},
		{"lf-behind-telnet", []string{"\xff\xf1USER demo\n", "PASS demo\n", "MKD \xff\xf1a\xff\xfe\n"}, "331 230 257", []string{"a/"}},
		{"cr-lf-in-segments", []string{"USER demo\r", "\n", "PASS demo\r", "\n", "MKD a\r", "\n"}, "331 230 257", []string{"a/"}},
		{"cr-cr-lf", []string{"USER demo\r\r\n", "PASS demo\r\r\n", "MKD a\r\r\n", "PWD\r\r\n"}, "331 230 257 257", []string{"a/"}},
		{"cr-cr-lf-in-segments", []string{"USER demo\r", "\r", "\n", "PASS demo\r", "\r\n", "MKD a\r\r", "\n"},
			"331 230 257", []string{"a/"}},
		{"cr-in-a-name", []string{"USER demo\r\n", "PASS demo\r\n", "MKD a\r\x00\r\n", "MKD b\rc\r\n"}, "331 230 257 257",
			[]string{"a\r/", "b\rc/"}},
		{"lf-in-a-name", []string{"USER demo\r\n", "PASS demo\r\n", "TYPE I\n", "PWD\n", "MKD a\nb\r\n", "MKD c\n", "d\r\n"},
			"331 230 200 257 257 257", []string{"a\nb/", "c\nd/"}},
		{"lf-in-a-name-in-one-segment", []string{"USER demo\r\nPASS demo\r\nMKD a\nMKD b\r\nPWD\r\n"}, "331 230 257 257",
			[]string{"a\nMKD b/"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t, nil)
			c := s.connect()
			for _, segment := range test.segments {
				c.write(segment)
			}
			for code := range strings.SplitSeq(test.codes, " ") {
				c.expect(code)
			}
			if got := s.objects(); !slices.Equal(got, test.objects) {
				t.Errorf("objects %q, want %q", got, test.objects)
			}
		})
	}
}

// After AUTH the line ends are detected again, so a client may switch to LF.
func TestLineEndsUnderTLS(t *testing.T) {
	s := newSite(t, nil)
	c := s.connect()
	c.write("AUTH TLS\n")
	c.expect("234 ")
	must.OK(t, c.StartTLS(s.tls))
	c.write("USER demo\nPASS demo\nMKD a\nQUIT\n")
	for _, code := range []string{"331 ", "230 ", "257 ", "221 "} {
		c.expect(code)
	}
	c = s.connect()
	c.write("NOOP\nAUTH TLS\r\n")
	c.expect("200 ")
	c.expect("234 ")
	must.OK(t, c.StartTLS(s.tls))
	c.write("USER demo\r\nPASS demo\r\nMKD b\nMKD c\r\n") // the line ends used before TLS do not count
	for _, code := range []string{"331 ", "230 ", "257 "} {
		c.expect(code)
	}
	if got, want := s.objects(), []string{"a/", "b\nMKD c/"}; !slices.Equal(got, want) {
		t.Errorf("objects %q, want %q", got, want)
	}
}

// If a session ends in the middle of a command, the log says why the client got no reply.
func TestUnfinishedCommands(t *testing.T) {
	const lf, cr, text = "ended the command with LF", "ended the command with CR", "the end of the command is missing"
	for _, test := range []struct {
		name, sent string
		codes      string
		hint       string // substring of the hint in the log
	}{
		{"complete", "USER demo\r\n", "331 421", ""},
		{"lf", "USER demo\r\nPASS demo\r\nSTOR a\n", "331 230 421", lf},
		{"cr", "USER demo\r", "421", cr},
		{"text", "USER demo", "421", text},
		{"text-behind-lf", "USER demo\nPASS", "331 421", text},
	} {
		for _, leaves := range []bool{false, true} {
			if leaves {
				test.name, test.codes = test.name+"-and-leaves", strings.TrimSuffix(strings.TrimSuffix(test.codes, "421"), " ")
			}
			t.Run(test.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var log bytes.Buffer
					near, end := inBubble(t, control.Config{
						LoginTimeout: 30 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil)),
					})
					c := ftptest.NewConn(near)
					c.Timeout = time.Hour
					_, err := c.Reply()
					must.OK(t, err)
					go func() { _, _ = near.Write([]byte(test.sent)) }()
					for code := range strings.FieldsSeq(test.codes) {
						if reply, err := c.Reply(); err != nil || !strings.HasPrefix(reply, code) {
							t.Fatalf("reply %q, %v; want %s", reply, err, code)
						}
					}
					synctest.Wait()
					must.OK(t, near.Close())
					synctest.Wait()
					end()
					if logged := strings.Contains(log.String(), "session ended in the middle of a command"); logged != (test.hint != "") ||
						!strings.Contains(log.String(), test.hint) {
						t.Errorf("got log %s, want %q", &log, test.hint)
					}
				})
			})
		}
	}
}
