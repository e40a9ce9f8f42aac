package acceptance_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestReverseProxy puts nginx with its default limits in front of S3. A file beyond the limit is refused
// permanently, and the log and check --probe say what to change.
//
// Reported for nginx in front of MinIO: minio/minio#7893
func TestReverseProxy(t *testing.T) {
	t.Parallel()
	storage := s3test.Start(t, "minio")
	through := *storage
	through.Endpoint = "http://" + startNginx(t, strings.TrimPrefix(storage.Endpoint, "http://"))
	s := new(site).open(t, &through)
	s.client = storage.Client()
	c := newCurl(t, s, way{})
	const advice = "HTTP 413 from nginx/[0-9.]+, not from S3: allow request bodies of part_size"
	for name, size := range map[string]int{"one-request": 2 << 20, "parts": 6 << 20} {
		file := newFolder(t).write(name, content(size))
		upload := c.start("--upload-file", file, c.url("/"+name))
		if code := upload.wait(); code == 0 || strings.Contains(upload.stderr.String(), "451") {
			t.Errorf("%s: exit code %d, %s", name, code, upload.stderr)
		}
		s.server.expect(s.server.stderr, "path=/"+name+" .*code=552 .*"+advice)
	}
	small := content(smallSize)
	c.upload(move{newFolder(t).write("small", small), "/small"})
	s.mustStore(t, "small", small)

	check := launch(t, binary(t), "check", "--probe", "--config", filepath.Join(filepath.Dir(s.ca), "babelftp.yaml"))
	if code := check.wait(); code == 0 {
		t.Error("check --probe found nothing")
	}
	check.expect(check.stderr, `tenant acme: .*: UploadPart: `+advice)
}

// startNginx starts nginx in front of an HTTP server and returns its address. nginx cannot choose a free port, so
// this process forwards a port to nginx's socket.
func startNginx(t *testing.T, to string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nginx") // a socket has a short name
	must.OK(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "http")
	conf := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log stderr; events {}
http {
	access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
	server { listen unix:%[2]s; location / { proxy_set_header Host $http_host; proxy_pass http://%[3]s; } }
}`, dir, socket, to)
	must.WriteFile(t, filepath.Join(dir, "conf"), conf)
	launch(t, "/usr/sbin/nginx", "-p", dir, "-e", "stderr", "-c", filepath.Join(dir, "conf"))
	waitUntil(t, func() bool {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, func() { t.Fatal("nginx does not listen") })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(conn, socket)
		}
	}()
	return listener.Addr().String()
}

// forward copies data between a connection and a socket.
func forward(from net.Conn, socket string) {
	defer from.Close()
	to, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.(*net.UnixConn).CloseWrite()
	}()
	_, _ = io.Copy(from, to)
}
