package acceptance_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// resumeConfig keeps the uploads of killed clients.
var resumeConfig = []string{"    resume: keep", "commit_delay: 1s"}

// A resumer starts or resumes an upload with a rate in bytes per second. 0 means no limit.
type resumer func(t *testing.T, s *site, file, remote string, rate int) *process

func resumingCurl(t *testing.T, s *site, file, remote string, rate int) *process {
	t.Helper()
	c := newCurl(t, s, usual)
	return c.start(
		"--ftp-create-dirs", "--limit-rate", strconv.Itoa(rate), "--continue-at", "-", "--upload-file", file,
		c.url(remote))
}

func resumingLftp(t *testing.T, s *site, file, remote string, rate int) *process {
	t.Helper()
	l := newLftp(t, s, way{"passive", "explicit"})
	return l.start("set net:limit-rate "+strconv.Itoa(rate), "put -c "+lftpQuote(file)+" -o "+lftpQuote(remote))
}

// mirroringLftp mirrors the directory of the file.
func mirroringLftp(t *testing.T, s *site, file, remote string, rate int) *process {
	t.Helper()
	l := newLftp(t, s, usual)
	return l.start("set net:limit-rate "+strconv.Itoa(rate),
		"mirror --reverse --continue "+lftpQuote(filepath.Dir(file))+" "+lftpQuote("/"+strings.Split(remote, "/")[1]))
}

// TestResumedUploads kills clients at several points of an upload and lets them resume. Clients do not send again
// what S3 already has, the object appears when it is complete, and nothing is left behind.
func TestResumedUploads(t *testing.T) {
	t.Parallel()
	const (
		kills    = 3
		size     = 4 * largeSize
		duration = 1500 * time.Millisecond
	)
	for _, tt := range []struct {
		name   string
		resume resumer
		wait   bool // wait until the server knows that the client has gone
		asks   bool // the client asks for the size of the upload
	}{
		{"curl", resumingCurl, true, true},
		{"curl-at-once", resumingCurl, false, true},
		{"lftp-explicit", resumingLftp, true, true},
		// it relies on the listing, which does not show the file
		{"lftp-mirror", mirroringLftp, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, s3test.Start(t, "minio"), resumeConfig...)
			all := content(size)
			file := newFolder(t).write("file", all)
			remote := "/dir é/file"
			rate := size * int(time.Second) / int(kills*duration)
			var had int64
			finished := false
			for range kills {
				before := s.uploadsBegun(t)
				p := tt.resume(t, s, file, remote, rate)
				waitUntil(t, func() bool {
					return s.uploadsBegun(t) > before || p.ended()
				}, func() { t.Fatal("no upload began") })
				select {
				case <-time.After(duration/10 + rand.N(duration*2/3)): // the test varies this time
				case <-p.done:
				}
				p.kill()
				if tt.wait {
					s.awaitMetric(t, "babelftp_sessions", 0)
				}
				has := s.size(t, remote)
				if has < had && tt.asks && tt.wait {
					t.Errorf("got %d bytes, %d before", has, had)
				}
				had = has
				// clients send more than the rate at first
				if finished = slices.Contains(s.files(t), remote[1:]); finished {
					break
				}
			}
			if had == 0 && tt.wait {
				t.Error("the upload was not kept")
			}
			tt.resume(t, s, file, remote, 0).succeed()
			s.mustStore(t, remote[1:], all)
			s.awaitMetric(t, "babelftp_sessions", 0)
			waitUntil(t, func() bool { // uploads that the file replaces are removed a moment later
				return len(s.uploads(t, "")) == 0 && slices.Equal(s.files(t), []string{remote[1:]})
			}, func() { t.Errorf("the bucket has %q, and open multipart uploads of %q", s.files(t), s.uploads(t, "")) })
			if tt.asks && tt.wait && !finished {
				s.server.expect(s.server.stderr, fmt.Sprintf(` bytes=%d code=226`, size-had)) // the missing part
			}
		})
	}
}

// uploadsBegun returns how many uploads have begun.
func (s *site) uploadsBegun(t *testing.T) float64 {
	t.Helper()
	sum := s.metric(t, `babelftp_transfers_active{direction="upload",tenant="acme"}`)
	for _, result := range []string{"complete", "failed"} {
		sum += s.metric(t, `babelftp_transfers_total{direction="upload",result="`+result+`",tenant="acme"}`)
	}
	return sum
}

// files returns the names of acme's objects except for directories.
func (s *site) files(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(s.objects(t, ""), func(name string) bool { return strings.HasSuffix(name, "/") })
}

// size returns the SIZE of a file for alice, or 0 if it does not exist.
func (s *site) size(t *testing.T, name string) int64 {
	t.Helper()
	c := s.alice(t)
	defer c.Close()
	reply, err := c.Send("SIZE " + name)
	must.OK(t, err)
	if strings.HasPrefix(reply, "550 ") {
		return 0
	}
	var n int64
	if _, err := fmt.Sscanf(reply, "213 %d", &n); err != nil {
		t.Fatalf("size of %q: %q", name, reply)
	}
	return n
}

// TestKilledServerResumed resumes the upload on another server.
func TestKilledServerResumed(t *testing.T) {
	t.Parallel()
	s, proxy := newSiteBehindProxy(t, s3test.Start(t, "minio"), resumeConfig...)
	all := content(4 * largeSize)
	file := newFolder(t).write("file", all)
	p := resumingCurl(t, s, file, "/file", 4<<20)
	waitUntil(t, func() bool { return s.parts(t, "file") >= 2 }, func() { t.Fatal("no parts arrived") })
	if n := s.size(t, "/file"); n != 0 {
		t.Errorf("SIZE of an upload in progress: got %d", n)
	}
	s.killed(t, resumeConfig...)
	p.kill()
	if n := s.size(t, "/file"); n != 0 {
		t.Errorf("SIZE of an upload whose server may be alive: got %d", n)
	}
	proxy.Inject(serverDead)
	var had int64
	waitUntil(t, func() bool { had = s.size(t, "/file"); return had > 0 },
		func() { t.Error("the upload of the dead server is not visible") })
	if had < 2*(5<<20) || had >= int64(len(all)) {
		t.Errorf("got %d bytes", had)
	}
	if facts := s.alice(t).Command(250, "MLST /file"); !strings.Contains(facts, fmt.Sprintf("size=%d;", had)) {
		t.Errorf("MLST: got %s, want %d bytes", facts, had)
	}
	resumingCurl(t, s, file, "/file", 0).succeed()
	s.mustStore(t, "file", all)
	s.server.expect(s.server.stderr, fmt.Sprintf(" bytes=%d code=226", int64(len(all))-had)) // the missing part
	if objects := s.objects(t, ""); !slices.Equal(objects, []string{"file"}) {
		t.Errorf("the bucket has %q", objects)
	}
}

// serverDead moves the clock of S3 ahead by two minutes. Heartbeats in upload records are compared to this clock,
// so a killed server counts as dead.
var serverDead = s3test.Fault{Operation: "HeadObject", KeyPrefix: prefix + ".babelftp/",
	Effect: s3test.Advance(2 * time.Minute)}

// parts returns the number of uploaded parts of a file of acme, or 0 if no upload is open.
func (s *site) parts(t *testing.T, name string) int {
	t.Helper()
	bucket, key := s.buckets[acme], prefix+name
	uploads, err := s.client.ListMultipartUploads(
		t.Context(), &s3.ListMultipartUploadsInput{Bucket: &bucket, Prefix: &key})
	must.OK(t, err)
	if len(uploads.Uploads) == 0 {
		return 0
	}
	parts, err := s.client.ListParts(
		t.Context(), &s3.ListPartsInput{Bucket: &bucket, Key: &key, UploadId: uploads.Uploads[0].UploadId})
	if api, ok := errors.AsType[smithy.APIError](err); ok && api.ErrorCode() == "NoSuchUpload" {
		return 0 // the upload just ended
	}
	must.OK(t, err)
	return len(parts.Parts)
}

// TestAbandonedUploads checks that another server removes the uploads of a killed server and nothing else.
func TestAbandonedUploads(t *testing.T) {
	t.Parallel()
	s, proxy := newSiteBehindProxy(t, s3test.Start(t, "minio"), "abandoned_uploads: 10s")
	bucket := s.buckets[acme]
	for _, name := range []string{"file", "other"} {
		_, err := s.client.CreateMultipartUpload(
			t.Context(), &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: aws.String(prefix + name)})
		must.OK(t, err)
	}
	s.uploading(t, "/file", largeSize)
	waitUntil(t, func() bool {
		return len(s.objects(t, ".babelftp/")) > 0
	}, func() { t.Fatal("missing upload in the journal") })
	s.killed(t, "abandoned_uploads: 10s")
	if uploads := s.uploads(t, ""); !slices.Equal(uploads, []string{"file", "file", "other"}) {
		t.Errorf("unexpected open uploads %q", uploads)
	}
	proxy.Inject(serverDead)
	waitUntil(t, func() bool {
		return len(s.objects(t, "")) == 0
	}, func() { t.Fatalf("the bucket has %q", s.objects(t, "")) })
	if uploads := s.uploads(t, ""); !slices.Equal(uploads, []string{"file", "other"}) {
		t.Errorf("unexpected open uploads %q", uploads)
	}
}
