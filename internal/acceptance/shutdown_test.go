package acceptance_test

import (
	"net"
	"syscall"
	"testing"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/s3test"
)

// texts are the messages in a language.
func texts(t *testing.T, tag string) *i18n.Localizer {
	t.Helper()
	bundle, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	return bundle.Localizer(language.MustParse(tag))
}

// On SIGTERM an idle client reads the reason in its language, a running upload completes, and no new client can connect.
func TestShutdown(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"))
	idle := newFtplib(t, s, usual)
	idle.must("command", "LANG es")
	c := newCurl(t, s, usual)
	busy := c.start("--verbose", "--upload-file", "-", c.url("/late"))
	busy.send("before ")
	busy.expect(busy.stderr, `(?m)^< 150 `)

	s.server.signal(syscall.SIGTERM)
	idle.refused("421 "+texts(t, "es").Text(i18n.ShuttingDown), "response")
	if conn, err := net.Dial("tcp", s.address); err == nil {
		conn.Close()
		t.Error("a new connection is accepted")
	}
	busy.send("and after")
	_ = busy.stdin.Close()
	busy.succeed()
	busy.expect(busy.stderr, `(?m)^< 226 `)
	if code := s.server.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.mustStore(t, "late", []byte("before and after"))
}
