package acceptance_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// promise returns the command that promises the hash of a file.
func promise(content []byte) string {
	return fmt.Sprintf("SITE HASH SHA-256 %x", sha256.Sum256(content))
}

// pythonUpload uploads a file with ftplib after a command. Its arguments are host, port, password, command, file, name.
const pythonUpload = `
import ftplib, sys
host, port, password, command, file, name = sys.argv[1:]
ftp = ftplib.FTP()
ftp.encoding = "utf-8"
ftp.connect(host, int(port))
ftp.login("alice@acme", password)
ftp.voidcmd(command)
with open(file, "rb") as f:
    ftp.storbinary("STOR " + name, f)
ftp.quit()
`

// TestPromisedHash: clients promise the hash of a file before they upload it. A file with another hash is not stored,
// and replaces none. The audit log says how the hash was verified.
func TestPromisedHash(t *testing.T) {
	t.Parallel()
	s3test.Run(t, func(t *testing.T, storage *s3test.Server) {
		t.Parallel()
		dir := t.TempDir()
		audit := filepath.Join(dir, "audit.log")
		s := newSite(t, storage, "audit: {file: "+audit+"}")
		files := map[string][]byte{"empty": {}, "small": content(smallSize), "large": content(11 << 20)}
		for name, bytes := range files {
			must.OK(t, os.WriteFile(filepath.Join(dir, name), bytes, 0o600))
		}
		host, port, _ := strings.Cut(s.address, ":")
		clients := map[string]func(command, file, name string) *process{
			"curl": func(command, file, name string) *process {
				c := newCurl(t, s, way{"passive", "explicit"})
				return c.start("--quote", command, "--upload-file", file, c.url("/"+name))
			},
			"lftp": func(command, file, name string) *process {
				return newLftp(t, s, way{"passive", "explicit"}).start("quote "+command, "put "+lftpQuote(file)+" -o "+name)
			},
			"ftplib": func(command, file, name string) *process {
				return launch(t, "python3", "-c", pythonUpload, host, port, password, command, file, name)
			},
		}
		want := map[string]string{}
		for client, upload := range clients {
			for name, bytes := range files {
				file, name := filepath.Join(dir, name), client+"-"+name
				want["/"+name] = "s3"
				if len(bytes) > 5<<20 {
					want["/"+name] = "parts"
				}
				other := promise(append([]byte("x"), bytes...))
				if code := upload(other, file, name).wait(); code == 0 {
					t.Errorf("%s was stored with another hash", name)
				}
				if got := s.objects(t, name); len(got) > 0 {
					t.Errorf("%s exists after an upload with another hash", name)
				}
				upload(promise(bytes), file, name).succeed()
				s.mustStore(t, name, bytes)
				if code := upload(other, file, name).wait(); code == 0 {
					t.Errorf("%s was replaced with another hash", name)
				}
				s.mustStore(t, name, bytes)
			}
		}
		if open := s.uploads(t, ""); len(open) > 0 {
			t.Errorf("uploads are still open: %q", open)
		}
		s.stop(t)
		checkVerified(t, must.ReadFile(t, audit), want)
	})
}

// checkVerified checks the lines of uploads in an audit log: the ones that succeeded say how the hash was verified, and
// all others that it differs.
func checkVerified(t *testing.T, log string, want map[string]string) {
	t.Helper()
	verified := map[string]string{}
	for line := range strings.Lines(log) {
		var of struct{ Event, Outcome, Path, Verified, Error string }
		must.OK(t, json.Unmarshal([]byte(line), &of))
		switch {
		case of.Event != "upload":
		case of.Outcome == "ok":
			verified[of.Path] = of.Verified
		case of.Verified != "" || !strings.Contains(of.Error, "the file does not have the promised SHA-256"):
			t.Errorf("unexpected line %s", line)
		}
	}
	if fmt.Sprint(verified) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", verified, want)
	}
}

// TestPromisedHashBehindCorruptingProxy: a proxy in front of S3 changes a byte of each request. S3 notices it, with
// every kind of checksum, and the old file stays. If the proxy changes only one request, the server repeats it.
func TestPromisedHashBehindCorruptingProxy(t *testing.T) {
	t.Parallel()
	s3test.Run(t, func(t *testing.T, storage *s3test.Server) {
		t.Parallel()
		for _, profile := range []string{"auto", "strict"} {
			t.Run(profile, func(t *testing.T) {
				t.Parallel()
				s, proxy := newSiteBehindProxy(t, storage, "    s3: {profile: "+profile+"}")
				c := s.alice(t)
				for operation, size := range map[string]int{"PutObject": smallSize, "UploadPart": 11 << 20} {
					c.Store(operation, "old")
					bytes := content(size)
					upload := func() string {
						t.Helper()
						c.Command(200, promise(bytes))
						reply, err := c.Upload("STOR "+operation, string(bytes))
						must.OK(t, err)
						return reply
					}
					fault := proxy.Inject(s3test.Fault{Operation: operation, KeyPrefix: prefix + operation,
						Effect: s3test.CorruptRequest()})
					if reply := upload(); !strings.HasPrefix(reply, "451 ") {
						t.Errorf("%s: got %q, want 451", operation, reply)
					}
					fault.End()
					s.mustStore(t, operation, []byte("old"))
					if open := s.uploads(t, operation); len(open) > 0 {
						t.Errorf("%s: uploads are still open", operation)
					}
					once := proxy.Inject(s3test.Fault{Operation: operation, KeyPrefix: prefix + operation, Times: 1,
						Effect: s3test.CorruptRequest()})
					if reply := upload(); !strings.HasPrefix(reply, "226 ") || once.Applied() != 1 {
						t.Errorf("%s: got %q after %d faults", operation, reply, once.Applied())
					}
					once.End()
					s.mustStore(t, operation, bytes)
				}
			})
		}
	})
}

// TestPromisedHashWithoutResponse: S3 stores a file whose response is lost. The object proves what S3 has stored.
func TestPromisedHashWithoutResponse(t *testing.T) {
	t.Parallel()
	s3test.Run(t, func(t *testing.T, storage *s3test.Server) {
		t.Parallel()
		audit := filepath.Join(t.TempDir(), "audit.log")
		s, proxy := newSiteBehindProxy(t, storage, "audit: {file: "+audit+"}")
		c := s.alice(t)
		want := map[string]string{"/small": "s3", "/large": "parts"}
		for name, file := range map[string][]byte{"small": content(smallSize), "large": bytes.Repeat([]byte("x"), 11<<20)} {
			for _, operation := range []string{"PutObject", "CompleteMultipartUpload"} {
				lost := proxy.Inject(s3test.Fault{Operation: operation, KeyPrefix: prefix + name, Times: 1,
					Effect: s3test.LoseResponse()})
				defer lost.End()
			}
			c.Command(200, promise(file))
			if reply, err := c.Upload("STOR "+name, string(file)); err != nil || !strings.HasPrefix(reply, "226 ") {
				t.Errorf("%s: %q, %v", name, reply, err)
			}
			s.mustStore(t, name, file)
		}
		c.Command(221, "QUIT") // a session delays the end of the server
		s.stop(t)
		checkVerified(t, must.ReadFile(t, audit), want)
	})
}
