package acceptance_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// rounds is how often each test kills its clients.
var rounds = flag.Int("kill.rounds", 3, "how many rounds of kills each test runs that kills clients")

// A victim is a client in the middle of an upload that it cannot have finished yet.
type victim func(t *testing.T, s *site, remote string, size int) *process

// killedCurl uploads at a rate at which the bytes last about so long, and then waits for more. It is killed before
// three quarters of a second are over.
func killedCurl(duration time.Duration) victim {
	return func(t *testing.T, s *site, remote string, size int) *process {
		const moments = 750 * time.Millisecond
		t.Helper()
		c := newCurl(t, s, usual)
		p := c.start(
			"--verbose", "--limit-rate", strconv.Itoa(size*int(time.Second)/int(duration)), "--upload-file", "-",
			c.url(remote))
		p.expect(p.stderr, `(?m)^< 150 `)
		go func() { _, _ = p.stdin.Write(content(size)) }() // until it is killed
		select {
		case <-time.After(rand.N(moments)): // the moment is what the test varies, not what it waits for
		case <-p.done:
		}
		return p
	}
}

// killedFtplib has sent some bytes, and never says that they are all.
func killedFtplib(w way) victim {
	return func(t *testing.T, s *site, remote string, size int) *process {
		t.Helper()
		f := newFtplib(t, s, w)
		f.must("begin", "STOR "+remote)
		f.must("write", size/2+rand.N(size/2))
		// The server waits an eighth of the upload's time for the end of the control connection, which the kernel of a
		// killed client closes behind the data connection. That of a busy machine may need more than the usual
		// milliseconds.
		const lasts = 800 * time.Millisecond
		<-time.After(lasts)
		return f.process
	}
}

// TestKilledClients kills clients in the middle of uploads, again and again: no file may appear, and no multipart
// upload stay open.
func TestKilledClients(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		victim victim
		size   int
	}{
		{"curl-small", killedCurl(3 * time.Second), smallSize},
		{"curl-large", killedCurl(4 * time.Second), 2 * largeSize},
		{"ftplib-large", killedFtplib(usual), largeSize},
		{"ftplib-active-small", killedFtplib(way{"active", "plain"}), smallSize},
		{"ftplib-explicit-large", killedFtplib(way{"passive", "explicit"}), largeSize},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			// The victim's kernel may need more than usual when two cores run all tests.
			s := newSite(t, s3test.Start(t, "minio"), "    resume: discard", "commit_delay: 1s")
			for round := range *rounds {
				p := tt.victim(t, s, "/upload "+strconv.Itoa(round), tt.size)
				if round == 0 && tt.size > smallSize {
					s.awaitMetric(
						t, `babelftp_s3_requests_total{operation="CreateMultipartUpload",status="200",tenant="acme"}`,
						1)
				}
				p.kill()
				if p.cmd.ProcessState.Exited() {
					t.Fatalf("%v ended before it was killed: %v", p, p.cmd.ProcessState)
				}
			}
			s.awaitMetric(t, "babelftp_sessions", 0)
			s.awaitMetric(
				t, `babelftp_transfers_total{direction="upload",result="failed",tenant="acme"}`, float64(*rounds))
			if objects := s.objects(t, ""); len(objects) > 0 {
				t.Errorf("the bucket has %q", objects)
			}
			if uploads := s.uploads(t, ""); len(uploads) > 0 {
				t.Errorf("the bucket has open multipart uploads of %q", uploads)
			}
		})
	}
}

// A server that is killed in the middle of an upload leaves no file. Its multipart upload has a record, by which
// another server finds it (TestAbandonedUploads).
func TestKilledServer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		size int
	}{{"small", smallSize}, {"large", largeSize}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, s3test.Start(t, "minio"))
			f := newFtplib(t, s, usual)
			f.must("begin", "STOR /never")
			f.must("write", tt.size)
			if tt.size == largeSize {
				waitUntil(t, func() bool {
					return len(s.uploads(t, "")) > 0
				}, func() { t.Fatal("no multipart upload has begun") })
			}
			s.server.kill()
			if a := f.try("finish"); a.Error == "" {
				t.Errorf("the client got the reply %s", a.Value)
			}
			// the record of the upload, for the sweep
			files := slices.DeleteFunc(s.objects(t, ""), func(key string) bool {
				return strings.HasPrefix(key, ".babelftp/")
			})
			if len(files) > 0 {
				t.Errorf("the bucket has %q", files)
			}
		})
	}
}
