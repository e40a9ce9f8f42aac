package acceptance_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// A breakableLink is a TCP connection to a server that can be cut. While it is, connections are closed as soon as
// they are accepted.
type breakableLink struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]struct{}
}

func newBreakableLink(t *testing.T, target string) *breakableLink {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &breakableLink{listener: listener, target: target, conns: map[net.Conn]struct{}{}}
	go w.serve()
	t.Cleanup(func() {
		_ = listener.Close()
		w.cut()
	})
	return w
}

func (w *breakableLink) serve() {
	for {
		conn, err := w.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.target)
		if err != nil {
			_ = conn.Close()
			continue
		}
		if !w.enter(conn, server) {
			continue
		}
		go w.carry(conn, server)
		go w.carry(server, conn)
	}
}

// enter notes both sides of a connection, and closes them while the wire is cut.
func (w *breakableLink) enter(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range conns {
		if w.down {
			_ = conn.Close()
		} else {
			w.conns[conn] = struct{}{}
		}
	}
	return !w.down
}

func (w *breakableLink) carry(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range []net.Conn{to, from} {
		_ = conn.Close()
		delete(w.conns, conn)
	}
}

func (w *breakableLink) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = true
	for conn := range w.conns {
		_ = conn.Close()
	}
}

func (w *breakableLink) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = false
}

// newSiteBehindLink is a site whose S3 server is at the other end of a wire, and which sends each request three times
// at most. The test itself looks past the wire.
func newSiteBehindLink(t *testing.T, storage *s3test.Server) (*site, *breakableLink) {
	t.Helper()
	endpoint, err := url.Parse(storage.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	w := newBreakableLink(t, endpoint.Host)
	distant := *storage
	distant.Endpoint = "http://" + w.listener.Addr().String()
	s := (&site{env: []string{fewAttempts}}).open(t, &distant)
	s.client = storage.Client()
	return s, w
}

// TestOutage cuts the S3 server off: each command gets a temporary reply, the session lives on, and works again when
// S3 is back.
func TestOutage(t *testing.T) {
	t.Parallel()
	const temporary = "4"
	s, w := newSiteBehindLink(t, s3test.Start(t, "minio"))
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
	w.cut()
	for i, call := range calls {
		sessions[i].send(call[0].(string), call[1:]...)
	}
	for i, call := range calls {
		if a := sessions[i].receive(); !strings.HasPrefix(a.Error, temporary) {
			t.Errorf("%q: %s %s, want a temporary reply", call, a.Error, a.Value)
		}
	}
	w.mend()
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
		w.cut()
		f.try("write", largeSize/2) // the server may have closed the data connection already
		f.refused(temporary, "finish")
		w.mend()
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
		w.cut()
		f.try("read", largeSize) // the rest is more than what is on the way
		f.refused(temporary, "finish")
		w.mend()
		f.must("download", "/large", local.file("back"))
		local.mustHave("back", all)
	})
}

// TestStartWithoutS3 starts the server while S3 cannot be reached: it is ready, refuses users for the time, and
// serves them when S3 is there.
func TestStartWithoutS3(t *testing.T) {
	t.Parallel()
	storage := s3test.Start(t, "minio")
	endpoint, err := url.Parse(storage.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	w := newBreakableLink(t, endpoint.Host)
	w.cut()
	distant := *storage
	distant.Endpoint = "http://" + w.listener.Addr().String()
	s := &site{
		storage: &distant, client: storage.Client(),
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
	w.mend()
	s.awaitMetric(t, up, 1)
	small := content(smallSize)
	newFtplib(t, s, usual).must("upload", newFolder(t).write("file", small), "/new")
	s.mustStore(t, "new", small)
}
