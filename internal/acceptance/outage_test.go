package acceptance_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestOutage cuts the S3 server off: each command gets a temporary reply, the session lives on, and works again when
// S3 is back.
func TestOutage(t *testing.T) {
	t.Parallel()
	const temporary = "4"
	storage := s3test.Start(t, "minio")
	s, proxy := newSiteBehindProxy(t, storage)
	f := newFtplib(t, s, usual)
	local := newFolder(t)
	file := local.write("file", content(smallSize))
	f.must("upload", file, "/there")

	calls := [][]any{
		{"upload", file, "/new"}, {"append", file, "/there", 0}, {"download", "/there", local.file("back")},
		{"list", "/"}, {"size", "/there"},
		{"rename", "/there", "/elsewhere"}, {"remove", "/there"}, {"mkdir", "/dir"}, {"command", "CWD /dir"},
		{"command", "MDTM /there"},
	}
	var sessions []*ftplib
	for range calls {
		sessions = append(sessions, newFtplib(t, s, usual))
	}
	cut := proxy.Cut()
	for i, call := range calls {
		sessions[i].send(call[0].(string), call[1:]...)
	}
	for i, call := range calls {
		if a := sessions[i].receive(); !strings.HasPrefix(a.Error, temporary) {
			t.Errorf("%q: %s %s, want a temporary reply", call, a.Error, a.Value)
		}
	}
	cut.End()
	for _, f := range sessions {
		f.must("list", "/")
	}
	f.must("upload", file, "/new")
	if got := strings.Join(s.objects(t, ""), " "); got != "new there" {
		t.Errorf("the bucket has %s", got)
	}

	t.Run("during-an-upload", func(t *testing.T) {
		f := newFtplib(t, s, usual)
		f.must("begin", "STOR /never")
		f.must("write", largeSize/2)
		waitUntil(t, func() bool {
			return len(s.uploads(t, "")) > 0
		}, func() { t.Fatal("no multipart upload has begun") })
		cut := proxy.Cut()
		f.try("write", largeSize/2) // the server may have closed the data connection already
		f.refused(temporary, "finish")
		cut.End()
		f.must("upload", file, "/after")
		// for the sweep
		files := slices.DeleteFunc(s.objects(t, ""), func(key string) bool {
			return strings.HasPrefix(key, ".babelftp/")
		})
		if got := strings.Join(files, " "); got != "after new there" {
			t.Errorf("the bucket has %s", got)
		}
	})
	t.Run("during-a-download", func(t *testing.T) {
		f, local := newFtplib(t, s, usual), newFolder(t)
		all := content(largeSize)
		f.must("upload", local.write("large", all), "/large")
		f.must("begin", "RETR /large")
		f.must("read", largeSize/10)
		cut := proxy.Cut()
		f.try("read", largeSize) // the rest is more than what is on the way
		f.refused(temporary, "finish")
		cut.End()
		f.must("download", "/large", local.file("back"))
		local.mustHave("back", all)
	})
}

// TestStartWithoutS3 starts the server while S3 cannot be reached: it is ready, refuses users for the time, and
// serves them when S3 is there.
func TestStartWithoutS3(t *testing.T) {
	t.Parallel()
	storage := s3test.Start(t, "minio")
	proxy := proxied(t, storage)
	cut := proxy.Cut()
	s := &site{
		storage: proxy.Server(), client: storage.Client(),
		buckets: map[string]string{acme: storage.Bucket(t), umbrella: storage.Bucket(t)},
	}
	s.start(t, s.configure(t))
	const up = `babelftp_bucket_up{folder="",tenant="acme"}`
	s.server.expect(s.server.stderr, `level=ERROR msg="bucket cannot be used`)
	f := s.connect(t, "", true)
	f.refused("421 ", "login", "alice@acme", password)
	response, err := http.Get("http://" + s.metrics + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK || s.metric(t, up) != 0 {
		t.Errorf("/readyz answers %s, and %s is %v", response.Status, up, s.metric(t, up))
	}
	cut.End()
	s.awaitMetric(t, up, 1)
	small := content(smallSize)
	newFtplib(t, s, usual).must("upload", newFolder(t).write("file", small), "/new")
	s.mustStore(t, "new", small)
}
