package acceptance_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// names are file names in six scripts, and names that have broken clients and servers.
var names = []string{
	"Été à Zürich.txt", "Ελληνικά.txt", "Привет, мир.txt", "مرحبا بالعالم.txt", "日本語のファイル.txt", "中文文件.txt", "🦊 fox.txt",
	"two  spaces", "100% #1 [a]{b} & 'c' \"d\".txt",
}

// A move is a pair of a source and a target name, local or remote.
type move struct{ from, to string }

// A way is a kind of connection.
type way struct {
	data string // passive or active
	tls  string // plain, explicit or implicit
}

func (w way) String() string { return w.data + "-" + w.tls }

// usual is the way for tests that do not depend on the connection.
var usual = way{"passive", "plain"}

// A folder is a directory for the files of a test.
type folder struct {
	t    *testing.T
	path string
}

func newFolder(t *testing.T) folder {
	t.Helper()
	return folder{t, t.TempDir()}
}

// file returns the path of a file.
func (f folder) file(name string) string { return filepath.Join(f.path, name) }

// write creates a file and returns its path.
func (f folder) write(name string, content []byte) string {
	f.t.Helper()
	must.WriteFile(f.t, f.file(name), string(content))
	return f.file(name)
}

// mustHave checks the content of a file.
func (f folder) mustHave(name string, content []byte) {
	f.t.Helper()
	if got, err := os.ReadFile(f.file(name)); err != nil || !bytes.Equal(got, content) {
		f.t.Errorf("%s has %d bytes %.40q, want %d %.40q; %v", name, len(got), got, len(content), content, err)
	}
}

// Sizes of a file sent with one PutObject, and of a multipart upload with the site's part size of 5 MiB.
const (
	smallSize = 100_000
	largeSize = 12<<20 + 345
)

// content returns size random bytes.
func content(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.Read(b) // it never fails
	return b
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
