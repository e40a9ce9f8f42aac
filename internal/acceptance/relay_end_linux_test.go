package acceptance_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// freeze stops a process, and returns when each of its threads has stopped. Until then some of them still work.
func freeze(t *testing.T, p *process) {
	t.Helper()
	p.signal(syscall.SIGSTOP)
	threads := fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid)
	waitUntil(t, func() bool {
		files, err := filepath.Glob(threads)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			stat, err := os.ReadFile(file)
			if err != nil { // the thread has ended
				continue
			}
			if _, state, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(state, "T") {
				return false
			}
		}
		return true
	}, func() { t.Fatal("the process does not stop") })
}

// The replica that relays a download or a listing is killed when the replica of the session has written all of it.
// The client sees the end of the data connection, as after a whole file. The reply, the log, the audit log and the
// metrics must say that the transfer has failed.
func TestRelayKilledAtTheEnd(t *testing.T) {
	t.Parallel()
	storage := s3test.Start(t, "minio")
	proxy := proxied(t, storage)
	c := newClusterSite(t, proxy.Server(), 2)
	c.relay()
	session, relay := c.replicas[0], c.replicas[1]
	restart := func() { relay.start(t, relay.server.cmd.Args[3]) } // for the tests that follow too
	bucket := session.buckets[acme]
	put := func(key, content string) error {
		_, err := storage.Client().PutObject(
			t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(content)})
		return err
	}
	const files, atOnce = 1010, 20 // more than a page
	var stored errgroup.Group
	stored.SetLimit(atOnce)
	for n := range files {
		stored.Go(func() error { return put(fmt.Sprintf("inbox/many/%04d", n), "") })
	}
	if err := errors.Join(put("inbox/file", strings.Repeat("x", 60_000)), stored.Wait()); err != nil {
		t.Fatal(err)
	}

	for _, tc := range []struct {
		line, direction string
		request         s3test.Fault
	}{
		{"RETR file", "download", s3test.Fault{Operation: "GetObject", Times: 1}},
		{"NLST many", "listing", s3test.Fault{Operation: "ListObjectsV2", After: 1, Times: 1}},
	} {
		t.Run(tc.direction, func(t *testing.T) {
			client, err := c.connect(0)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			whole, err := client.transfer(0, tc.line, nil)
			if err != nil {
				t.Fatal(err)
			}
			moved := fmt.Sprintf(`babelftp_transfer_bytes_total{direction=%q,tenant="acme"}`, tc.direction)
			failed := fmt.Sprintf(`babelftp_transfers_total{direction=%q,result="failed",tenant="acme"}`, tc.direction)
			before := session.metric(t, moved)

			rest := make(chan struct{})
			tc.request.Effect = s3test.Hold(rest)
			injection := proxy.Inject(tc.request)
			defer injection.End()
			data, err := client.data(0)
			if err != nil {
				t.Fatal(err)
			}
			defer data.Close()
			if reply, err := client.Send(tc.line); err != nil || !strings.HasPrefix(reply, "150") {
				t.Fatalf("%s: %q, %v", tc.line, reply, err)
			}
			waitUntil(t, func() bool { return injection.Applied() == 1 }, func() { t.Fatal("no such request") })
			freeze(t, relay.server)
			close(rest)
			session.awaitMetric(t, moved, before+float64(len(whole)))
			relay.server.kill()

			if reply, err := client.Reply(); err != nil || !strings.HasPrefix(reply, "426 ") {
				t.Errorf("the reply is %q, %v, want 426", reply, err)
			}
			if got, _ := io.ReadAll(data); len(got) >= len(whole) {
				t.Fatalf("the client has %d bytes of %d, so the test shows nothing", len(got), len(whole))
			}
			session.server.expect(
				session.server.stderr, `msg=transfer .*direction=`+tc.direction+` .* code=426 .*connection=`)
			session.awaitMetric(t, failed, 1)
			restart()
			if again, err := client.transfer(0, tc.line, nil); err != nil || len(again) != len(whole) {
				t.Errorf("afterwards: %d bytes, %v", len(again), err)
			}
		})
	}
}
