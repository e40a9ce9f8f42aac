package acceptance_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestLargeFiles transfers several files at once that are together much larger than the server's memory limit.
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	const (
		size     = 64 << 20
		sessions = 4
		// bound allows twice the memory of the parts, because garbage is collected late, and the same amount for
		// everything else.
		bound = 256 << 20
	)
	s := newSite(t, s3test.Start(t, "minio"), "memory: 64MiB")
	local := newFolder(t)
	all := content(size)
	file := local.write("file", all)
	c := newCurl(t, s, usual)
	var running []*process
	for i := range sessions {
		running = append(running, c.start("--upload-file", file, c.url(fmt.Sprintf("/large %d", i))))
	}
	for _, p := range running {
		p.succeed()
	}
	running = nil
	for i := range sessions {
		s.mustStore(t, fmt.Sprintf("large %d", i), all)
		running = append(running, c.start("--output", local.file(strconv.Itoa(i)), c.url(fmt.Sprintf("/large %d", i))))
	}
	for i, p := range running {
		p.succeed()
		local.mustHave(strconv.Itoa(i), all)
	}
	// All memory taken by the Go runtime, without the race detector's own data.
	if taken := s.metric(t, "go_memstats_sys_bytes"); taken > bound {
		t.Errorf("the server used %.0f MiB of memory, want at most %d", taken/(1<<20), bound>>20)
	}
}

// put stores an object of acme directly in S3.
func (s *site) put(ctx context.Context, name, text string) error {
	bucket, key := s.buckets[acme], prefix+name
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(text)})
	return err
}
