package server

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// Guesses do not flood the log: it has one line for each address and user, and one for all unknown users of an address.
// People type a password where the user name belongs, so it names users that exist, and no others.
func TestLogOfGuesses(t *testing.T) {
	s, cfg := simulated(t)
	cfg.Limits.FailedLoginDelay = 0
	log := &servicetest.Log{}
	srv := start(t, cfg, Options{AWS: s.AWSConfig(), Logger: log.Logger()})
	for range 3 {
		for _, name := range []string{"alice", "root", "correct-horse"} {
			for _, from := range []string{"127.0.0.2", "127.0.0.3"} {
				c, _ := dialFrom(t, srv, from, 220)
				c.Command(331, "USER "+name)
				c.Command(530, "PASS guess")
			}
		}
	}
	known, unknown := 0, 0
	for _, line := range log.Take() {
		switch {
		case !strings.Contains(line, "login refused"):
		case strings.Contains(line, `user \"alice\" of tenant \"acme\"`):
			known++
		case strings.Contains(line, "unknown user") && !strings.Contains(line, "correct-horse"):
			unknown++
		default:
			t.Errorf("the log has %s", line)
		}
	}
	if known != 2 || unknown != 2 {
		t.Errorf("the log has %d and %d lines of 18 refused logins, want 2 of each", known, unknown)
	}
	wantMetrics(
		t, srv, `babelftp_logins_total{result="refused",tenant=""} 12`,
		`babelftp_logins_total{result="refused",tenant="acme"} 6`)
}

// The log has a line for each transfer, with what one needs to find it at the client and in S3.
func TestLogOfTransfers(t *testing.T) {
	s := s3test.Start(t, "minio")
	log := &servicetest.Log{}
	cfg := servicetest.NewConfig(t, s)
	srv := start(t, cfg, Options{AWS: s.AWSConfig(), Logger: slog.New(slog.NewJSONHandler(log, nil))})
	c := session(t, srv, "alice")
	c.Store("f", "content")
	c.Transfer("RETR f")
	c.Transfer("LIST")
	c.Command(229, "EPSV")
	c.Command(550, "RETR missing")
	c.Command(221, "QUIT")
	type line struct {
		Msg, Session, Remote, Tenant, User string

		Direction, Command, Path string
		URI                      string `json:"s3_uri"`
		Bytes, Code              int
		TLS                      *bool
		Duration                 *int `json:"duration_ms"`
		ETag, Checksum           string
		RequestID                string `json:"s3_request_id"`
		Storage                  string
	}
	var lines []line
	for _, text := range log.Take() {
		var l line
		must.OK(t, json.Unmarshal([]byte(text), &l))
		if l.Msg == "transfer" {
			lines = append(lines, l)
		}
	}
	uri := "s3://" + cfg.Tenants["acme"].Bucket + "/"
	want := []line{
		{Direction: "upload", Command: "STOR", Path: "/alice/f", URI: uri + "inbox/alice/f", Bytes: len("content"),
			Code: 226},
		{Direction: "download", Command: "RETR", Path: "/alice/f", URI: uri + "inbox/alice/f", Bytes: len("content"),
			Code: 226},
		{Direction: "listing", Command: "LIST", Path: "/alice", Code: 226},
		{Direction: "download", Command: "RETR", Path: "/alice/missing", URI: uri + "inbox/alice/missing", Code: 550,
			Storage: "open /alice/missing: file does not exist"},
	}
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d: %+v", len(lines), len(want), lines)
	}
	for i, l := range lines {
		if l.Session == "" || l.Session != lines[0].Session || l.Remote == "" || l.TLS == nil || *l.TLS ||
			l.Duration == nil || l.Tenant != "acme" || l.User != "alice" {
			t.Errorf("%+v lacks what each line has", l)
		}
		if i < 2 && (l.ETag == "" || l.RequestID == "" || i == 0 && l.Checksum == "") {
			t.Errorf("%+v lacks what S3 has told", l)
		}
		if i == 2 {
			want[i].Bytes = l.Bytes
		}
		if got := (line{
			Direction: l.Direction, Command: l.Command, Path: l.Path, URI: l.URI, Bytes: l.Bytes, Code: l.Code,
			Storage: l.Storage,
		}); got != want[i] {
			t.Errorf("%+v, want %+v", got, want[i])
		}
	}
}

// Handshakes that fail do not flood the log either.
func TestLogOfHandshakes(t *testing.T) {
	c := newCertified(t, nil)
	c.start()
	for range 20 {
		conn, err := net.Dial("tcp", c.srv.ImplicitAddr().String())
		must.OK(t, err)
		_, _ = io.WriteString(conn, "USER alice\r\n")
		_, _ = io.Copy(io.Discard, conn) // until the server closes it
		_ = conn.Close()
	}
	if n := c.log.Count("TLS handshake failed"); n != 1 {
		t.Errorf("the log has %d lines of 20 handshakes that failed, want one", n)
	}
}
