package acceptance_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/s3test"
)

// names are in six scripts, and what clients and servers trip over.
var names = []string{
	"Été à Zürich.txt", "Ελληνικά.txt", "Привет, мир.txt", "مرحبا بالعالم.txt", "日本語のファイル.txt", "中文文件.txt", "🦊 fox.txt",
	"two  spaces", "100% #1 [a]{b} & 'c' \"d\".txt",
}

// A client is an FTP client at work for acme's user alice. Remote names are absolute pathnames, local ones paths of files. What
// fails, fails the test.
type client interface {
	upload(files ...move)
	download(files ...move)
	resumeUpload(file move)   // the remote file has the beginning of the local one
	resumeDownload(file move) // the other way round
	rename(names ...move)
	remove(names ...string)
	mkdir(names ...string)
	rmdir(names ...string)
	list(dir string) map[string][]string // the names in dir, by the command that asked for them
}

// A move is a name, local or remote, and the name that follows it.
type move struct{ from, to string }

// A way is how a client connects.
type way struct {
	data string // passive or active
	tls  string // plain, explicit or implicit
}

func (w way) String() string { return w.data + "-" + w.tls }

// usual is the way that tests of other things take.
var usual = way{"passive", "plain"}

// clients are the clients, and the ways that each can connect.
var clients = []struct {
	name string
	make func(t *testing.T, s *site, w way) client
	ways []way
}{
	// Active and encrypted is what curl 7.87 and 7.88 cannot do: they forget to encrypt the data connection
	// (https://github.com/curl/curl/issues/10666).
	{
		"curl", func(t *testing.T, s *site, w way) client { return newCurl(t, s, w) },
		[]way{usual, {"passive", "explicit"}, {"passive", "implicit"}, {"active", "plain"}},
	},
	{
		"curl-with-pasv-and-port", func(t *testing.T, s *site, w way) client {
			c := newCurl(t, s, w)
			c.args = append(c.args, "--disable-epsv", "--disable-eprt")
			return c
		},
		[]way{usual, {"active", "plain"}},
	},
	{
		"lftp", func(t *testing.T, s *site, w way) client { return newLftp(t, s, w) },
		[]way{usual, {"passive", "explicit"}, {"passive", "implicit"}, {"active", "plain"}, {"active", "explicit"}},
	},
	{
		"lftp-pipelining", func(t *testing.T, s *site, w way) client {
			l := newLftp(t, s, w)
			l.setup = script("set ftp:sync-mode off") + l.setup
			return l
		},
		[]way{usual, {"passive", "explicit"}},
	},
	{
		"ftplib", func(t *testing.T, s *site, w way) client { return newFtplib(t, s, w) },
		[]way{usual, {"passive", "explicit"}, {"active", "plain"}, {"active", "explicit"}},
	},
}

// TestClients lets each client do what people do with files, in each way on MinIO and in the usual one on versitygw. All work on
// one server at once, each in a directory of its own.
func TestClients(t *testing.T) {
	t.Parallel()
	for _, storage := range []string{"minio", "versitygw"} {
		t.Run(storage, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, s3test.Start(t, storage))
			for _, c := range clients {
				for _, w := range c.ways {
					if storage != "minio" && w != usual {
						continue
					}
					t.Run(c.name+"-"+w.String(), func(t *testing.T) {
						t.Parallel()
						workday(&worker{folder: newFolder(t), site: s, client: c.make(t, s, w), dir: "/" + c.name + " " + w.String()})
					})
				}
			}
		})
	}
}

// A folder is where the files of a test are.
type folder struct {
	t    *testing.T
	path string
}

func newFolder(t *testing.T) folder {
	t.Helper()
	return folder{t, t.TempDir()}
}

// file is the path of a file.
func (f folder) file(name string) string { return filepath.Join(f.path, name) }

// write makes a file with some content and returns its path.
func (f folder) write(name string, content []byte) string {
	f.t.Helper()
	if err := os.WriteFile(f.file(name), content, 0o600); err != nil {
		f.t.Fatal(err)
	}
	return f.file(name)
}

// mustHave wants a file with some content.
func (f folder) mustHave(name string, content []byte) {
	f.t.Helper()
	if got, err := os.ReadFile(f.file(name)); err != nil || !bytes.Equal(got, content) {
		f.t.Errorf("%s has %d bytes %.40q, want %d %.40q; %v", name, len(got), got, len(content), content, err)
	}
}

// A worker works with a client in a directory of its own, and looks at the bucket.
type worker struct {
	folder
	site   *site
	client client
	dir    string // pathname
}

// key is what the bucket calls a name in the worker's directory, without the tenant's prefix.
func (w *worker) key(name string) string { return strings.TrimPrefix(path.Join(w.dir, name), "/") }

// bucketHas wants these names below the worker's directory, whose marker is "", and nothing unfinished.
func (w *worker) bucketHas(names ...string) {
	w.t.Helper()
	want := slices.Sorted(slices.Values(names))
	dir := w.key("") + "/"
	if got := w.site.objects(w.t, dir); !slices.Equal(got, want) {
		w.t.Fatalf("the bucket has %q, want %q", got, want)
	}
	if uploads := w.site.uploads(w.t, dir); len(uploads) > 0 {
		w.t.Fatalf("the bucket has open multipart uploads of %q", uploads)
	}
}

// sizes are of one PutObject and of a multipart upload, with the site's parts of 5 MiB.
const (
	smallSize = 100_000
	largeSize = 12<<20 + 345
)

// content is so many random bytes.
func content(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.Read(b) // it never fails
	return b
}

// workday is what people do with files, in a directory of their own.
func workday(w *worker) {
	w.client.mkdir(w.dir)
	w.bucketHas("")
	w.transfer()
	w.resume()
	w.organise()
	w.client.rmdir(w.dir)
	w.bucketHas()
}

// transfer uploads, lists and downloads files of all names.
func (w *worker) transfer() {
	var files, back []move
	contents := map[string][]byte{}
	for i, name := range names {
		size := smallSize
		switch i {
		case 0:
			size = largeSize
		case 1:
			size = 0
		}
		contents[name] = content(size)
		remote := path.Join(w.dir, name)
		files = append(files, move{w.write(name, contents[name]), remote})
		back = append(back, move{remote, w.file("back " + name)})
	}
	w.client.upload(files...)
	w.bucketHas(append([]string{""}, names...)...)
	for _, name := range names {
		w.site.mustStore(w.t, w.key(name), contents[name])
	}
	want := slices.Sorted(slices.Values(names))
	for command, got := range w.client.list(w.dir) {
		if slices.Sort(got); !slices.Equal(got, want) {
			w.t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	w.client.download(back...)
	for _, name := range names {
		w.mustHave("back "+name, contents[name])
	}
}

// resume resumes a download and uploads, a small and a large one.
func (w *worker) resume() {
	for i, size := range []int{smallSize, largeSize} {
		remote := path.Join(w.dir, names[i])
		all := content(size)
		half := all[:size/2]
		w.client.upload(move{w.write("half", half), remote})
		w.client.resumeUpload(move{w.write("whole", all), remote})
		w.site.mustStore(w.t, w.key(names[i]), all)
		w.client.resumeDownload(move{remote, w.write("part", half)})
		w.mustHave("part", all)
	}
}

// organise renames and deletes the files, and does the same with directories.
func (w *worker) organise() {
	var away []move
	var renamed, remotes, dirs, markers []string
	for _, name := range names {
		away = append(away, move{path.Join(w.dir, name), path.Join(w.dir, "new "+name)})
		renamed = append(renamed, "new "+name)
		remotes = append(remotes, path.Join(w.dir, "new "+name))
		dirs = append(dirs, path.Join(w.dir, name))
		markers = append(markers, name+"/")
	}
	w.client.rename(away...)
	w.bucketHas(append([]string{""}, renamed...)...)
	w.client.remove(remotes...)
	w.bucketHas("")

	w.client.mkdir(dirs...)
	w.bucketHas(append([]string{""}, markers...)...)
	w.client.upload(move{w.write("inside", []byte("inside")), path.Join(dirs[0], "inside")})
	w.client.rename(move{dirs[0], dirs[0] + "2"})
	w.site.mustStore(w.t, w.key(names[0]+"2/inside"), []byte("inside"))
	w.client.remove(dirs[0] + "2/inside")
	w.client.rename(move{dirs[0] + "2", dirs[0]})
	w.client.rmdir(dirs...)
	w.bucketHas("")
}

// longName is a line of LIST with its name.
var longName = regexp.MustCompile(`^[-d][-rwx]{9} +1 ftp +ftp +\d+ [A-Z][a-z]{2} [ \d]\d [ \d:]{5} (.*)$`)

// namesIn takes the names out of the lines that a listing command has sent.
func namesIn(t *testing.T, command, lines string) []string {
	t.Helper()
	var names []string
	for line := range strings.Lines(lines) {
		line = strings.TrimRight(line, "\r\n")
		switch command {
		case "LIST":
			m := longName.FindStringSubmatch(line)
			if m == nil {
				t.Fatalf("line of LIST: %q", line)
			}
			line = m[1]
		case "MLSD":
			facts, name, ok := strings.Cut(line, "; ")
			if !ok || !strings.HasPrefix(facts, "type=") {
				t.Fatalf("line of MLSD: %q", line)
			}
			if name == "." || name == ".." {
				continue
			}
			line = name
		}
		names = append(names, line)
	}
	return names
}

// command returns the path of a client's program.
func command(t *testing.T, name string) string {
	t.Helper()
	file, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(fmt.Errorf("%w; run: make test", err))
	}
	return file
}
