package acceptance_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// breakable is a link to an S3 server that a test can cut, and the server at its end.
func breakable(t *testing.T, storage *s3test.Server) (*s3test.LinkProxy, *s3test.Server) {
	t.Helper()
	link, err := s3test.NewLinkProxy(storage, "127.0.0.1:0", s3test.Link{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	distant := *storage
	distant.Endpoint = link.Endpoint()
	return link, &distant
}

// TestOutage cuts the S3 server off: each command gets a temporary reply, the session lives on, and works again when
// S3 is back.
func TestOutage(t *testing.T) {
	t.Parallel()
	const temporary = "4"
	storage := s3test.Start(t, "minio")
	link, distant := breakable(t, storage)
	s := (&site{env: []string{fewAttempts}}).open(t, distant)
	s.client = storage.Client() // the test looks past the link
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
	link.Cut()
	for i, call := range calls {
		sessions[i].send(call[0].(string), call[1:]...)
	}
	for i, call := range calls {
		if a := sessions[i].receive(); !strings.HasPrefix(a.Error, temporary) {
			t.Errorf("%q: %s %s, want a temporary reply", call, a.Error, a.Value)
		}
	}
	link.Mend()
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
		link.Cut()
		f.try("write", largeSize/2) // the server may have closed the data connection already
		f.refused(temporary, "finish")
		link.Mend()
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
		link.Cut()
		f.try("read", largeSize) // the rest is more than what is on the way
		f.refused(temporary, "finish")
		link.Mend()
		f.must("download", "/large", local.file("back"))
		local.mustHave("back", all)
	})
}

// TestStartWithoutS3 starts the server while S3 cannot be reached: it is ready, refuses users for the time, and
// serves them when S3 is there.
func TestStartWithoutS3(t *testing.T) {
	t.Parallel()
	storage := s3test.Start(t, "minio")
	link, distant := breakable(t, storage)
	link.Cut()
	s := &site{
		storage: distant, client: storage.Client(),
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
	link.Mend()
	s.awaitMetric(t, up, 1)
	small := content(smallSize)
	newFtplib(t, s, usual).must("upload", newFolder(t).write("file", small), "/new")
	s.mustStore(t, "new", small)
}
