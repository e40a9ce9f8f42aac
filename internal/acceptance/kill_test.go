package acceptance_test

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// rounds is the number of times that each test kills its clients.
var rounds = flag.Int("kill.rounds", 3, "how many rounds of kills each test runs that kills clients")

// A victim is a client in the middle of an upload that cannot have finished yet.
type victim func(t *testing.T, s *site, remote string, size int) *process

// killedCurl starts an upload that takes about the given duration and then waits for more data. The client is
// killed within 750 ms.
func killedCurl(w way, duration time.Duration) victim {
	return func(t *testing.T, s *site, remote string, size int) *process {
		const moments = 750 * time.Millisecond
		t.Helper()
		c := newCurl(t, s, w)
		p := c.start(
			"--verbose", "--limit-rate", strconv.Itoa(size*int(time.Second)/int(duration)), "--upload-file", "-",
			c.url(remote))
		p.expect(p.stderr, `(?m)^< 150 `)
		go func() { _, _ = p.stdin.Write(content(size)) }() // until it is killed
		select {
		case <-time.After(rand.N(moments)): // the test varies this time; it waits for nothing
		case <-p.done:
		}
		return p
	}
}

// TestKilledClients repeatedly kills clients during uploads. No file may appear, and no multipart upload may stay
// open.
func TestKilledClients(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		victim victim
		size   int
	}{
		{"passive-small", killedCurl(usual, 3*time.Second), smallSize},
		{"passive-large", killedCurl(usual, 4*time.Second), 2 * largeSize},
		{"active-small", killedCurl(way{"active", "plain"}, 3*time.Second), smallSize},
		{"explicit-large", killedCurl(way{"passive", "explicit"}, 4*time.Second), 2 * largeSize},
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
