package server

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// An uploadsTest runs two servers with one bucket, which keep interrupted uploads.
type uploadsTest struct {
	*testing.T
	servers [2]*Server
	s3      *s3.Client
	bucket  string
}

func newUploadsTest(t *testing.T, s *s3test.Server) *uploadsTest {
	t.Helper()
	cfg := servicetest.NewConfig(t, s)
	cfg.Tenants["acme"].Resume = config.KeepInterrupted
	cfg.Tenants["acme"].Users["bob"] = &config.User{PasswordHash: servicetest.PasswordHash(), Home: "/alice"}
	return &uploadsTest{t, [2]*Server{start(t, cfg, Options{AWS: s.AWSConfig()}),
		start(t, cfg, Options{AWS: s.AWSConfig()})}, s.Client(), cfg.Tenants["acme"].Bucket}
}

// as logs in a user on a server.
func (x *uploadsTest) as(user string, server int) *ftptest.Client {
	x.Helper()
	c := session(x.T, x.servers[server], user)
	c.Command(200, "TYPE I")
	return c
}

// begin sends the first bytes of a file, and leaves the transfer open.
func begin(t *testing.T, c *ftptest.Client, command, content string) io.WriteCloser {
	t.Helper()
	data := c.Data()
	c.Command(150, command)
	must.Write(t, data, content)
	return data
}

// received waits until the server has received size bytes of the client's upload. STAT shows such sizes rounded.
func received(t *testing.T, srv *Server, c *ftptest.Client, size int) {
	t.Helper()
	isReceived := func(s report.SessionInfo) bool {
		return s.Remote == c.LocalAddr().String() && s.Transfer != nil && s.Transfer.Bytes == int64(size)
	}
	for !slices.ContainsFunc(srv.control.Sessions(), isReceived) {
		c.Command(211, "STAT") // fails the test if the upload has ended
	}
}

// send sends the rest of a file.
func send(t *testing.T, c *ftptest.Client, data io.WriteCloser, content string) {
	t.Helper()
	must.Write(t, data, content)
	_ = data.Close()
	c.Reply(226)
}

// interrupt sends the first bytes of alice's file, and aborts the transfer.
func (x *uploadsTest) interrupt(content string) {
	x.Helper()
	c := x.as("alice", 0)
	data := begin(x.T, c, "STOR f", content)
	received(x.T, x.servers[0], c, len(content))
	c.Command(426, "ABOR")
	c.Reply(226)
	_ = data.Close()
	c.Command(221, "QUIT")
}

func (x *uploadsTest) wantFile(content string) {
	x.Helper()
	if got := x.as("bob", 0).Transfer("RETR f"); got != content {
		x.Errorf("the file has %d bytes, want %d, or the content differs", len(got), len(content))
	}
}

// TestInterruptedUploads checks how an interrupted upload looks to its user and to others, and where it can be
// resumed, as far as commands show it. Package drivertest tests the records of uploads.
func TestInterruptedUploads(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 700_000) // more than one part
	for _, tt := range []struct {
		label string
		run   func(x *uploadsTest)
	}{
		{"append-unasked", func(x *uploadsTest) {
			x.interrupt(content[:6_291_456])
			metric(x.T, x.servers[0], `babelftp_uploads_interrupted_total{tenant="acme"} 1`)
			c := x.as("alice", 1)
			for range 2 {
				_ = c.Data()
				c.Command(554, "APPE f") // as curl --continue-at 6291456 does
			}
			c.Command(213, "SIZE f")
			send(x.T, c, begin(x.T, c, "APPE f", ""), content[6_291_455:])
			x.wantFile(content)
		}},
		{"append-after-another-session", func(x *uploadsTest) {
			x.interrupt(content[:1000])
			c := x.as("alice", 1)
			c.WantReply(213, "999", "SIZE f")
			x.as("bob", 0).Store("f", "the finished object")
			_ = c.Data()
			if text := c.Command(554, "APPE f"); !strings.Contains(
				text, "The file was changed in the meantime; to replace it, send STOR without REST.") {
				x.Error(text)
			}
			x.wantFile("the finished object")
		}},
		{"dated", func(x *uploadsTest) {
			bob := x.as("bob", 0)
			bob.Store("f", "bob's")
			x.interrupt(content[:6_000_001])
			bob.Command(213, "MFMT 20200102030405 f")
			for server := range x.servers {
				c := x.as("alice", server)
				c.WantReply(213, "5", "SIZE f")
				c.Command(350, "REST 6000000")
				_ = c.Data()
				if text := c.Command(554, "STOR f"); !strings.Contains(
					text, "The file was changed in the meantime; to replace it, send STOR without REST.") {
					x.Error(text)
				}
			}
			x.wantFile("bob's")
		}},
		{"restart", func(x *uploadsTest) {
			x.as("bob", 0).Store("f", "bob's")
			x.interrupt(content[:6_000_001])
			c := x.as("alice", 1)
			for _, offset := range []string{"3", "5", "5242880", "5999999", "6000001"} {
				c.Command(350, "REST "+offset)
				_ = c.Data()
				if text := c.Command(554, "STOR f"); !strings.Contains(text, "REST 6000000") {
					x.Errorf("after REST %s: %s", offset, text)
				}
			}
			x.wantFile("bob's")
			c.Command(350, "REST 6000000")
			send(x.T, c, begin(x.T, c, "STOR f", ""), content[6_000_000:])
			x.wantFile(content)
		}},
	} {
		t.Run(tt.label, func(t *testing.T) {
			for _, storage := range []string{"sim-aws", "minio"} {
				t.Run(storage, func(t *testing.T) { tt.run(newUploadsTest(t, s3test.Start(t, storage))) })
			}
		})
	}
}
