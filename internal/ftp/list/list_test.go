package list

import (
	"io/fs"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// TestListColumns compares the columns of LIST with ls -l.
func TestListColumns(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		modified time.Time
		want     string
	}{
		{now.Add(-time.Minute), "Mar  1 11:59 "},
		{now.Add(-yearAfter), "Sep  2 12:00 "},
		{now.Add(-yearAfter - time.Minute), "Sep  2  2025 "},
		{now.Add(time.Hour), "Mar  1 13:00 "},
		{now.Add(25 * time.Hour), "Mar  2  2026 "},
		{time.Date(2026, 2, 28, 23, 30, 0, 0, time.FixedZone("", -3600)), "Mar  1 00:30 "},
	} {
		got := string(appendColumns(nil, modified{view.Directory(""), test.modified}, now))
		if want := "drwxr-xr-x 1 ftp ftp             0 " + test.want; got != want {
			t.Errorf("%v: got %q, want %q", test.modified, got, want)
		}
	}
}

// TestUniqueOfTwins: a file and a directory with the same name have different values of "unique". Few S3 servers
// can store both.
func TestUniqueOfTwins(t *testing.T) {
	c := &Client{View: viewOf("s3://bucket")}
	file, _ := appendUnique(nil, c, Entry{file("a"), "/"})
	dir, _ := appendUnique(nil, c, Entry{view.Directory("a"), "/"})
	if string(file) == string(dir) {
		t.Errorf("both tokens are %s", dir)
	}
	if this, _ := appendUnique(nil, c, Entry{view.Directory(thisDirectory), "/a"}); string(this) != string(dir) {
		t.Errorf("unique of %s: got %s in itself", dir, this)
	}
	if root, _ := appendUnique(nil, c, Entry{view.Directory("/"), "/"}); len(root) == 0 {
		t.Error("missing unique fact of the root")
	}
	c.View = viewOf("")
	if b, ok := appendUnique(nil, c, Entry{view.Directory("a"), "/"}); ok {
		t.Errorf("got %s for an entry without a URI", b)
	}
}

// viewOf returns a view of a bucket that only knows its URI. If the URI is empty, no name has one.
func viewOf(uri string) *view.View {
	return &view.View{Mounts: view.NewMounts(view.Mount{Dir: "/", Store: store{uri: uri}})}
}

type store struct {
	view.Store
	uri string
}

func (s store) URI(name string) string {
	if s.uri == "" {
		return ""
	}
	return s.uri + name
}

// A file is a file that only has a name.
type file string

func (f file) Name() string     { return string(f) }
func (file) Size() int64        { return 0 }
func (file) Mode() fs.FileMode  { return 0 }
func (file) ModTime() time.Time { return time.Time{} }
func (file) IsDir() bool        { return false }
func (file) Sys() any           { return nil }

// modified is a directory with a modification time.
type modified struct {
	fs.FileInfo
	time time.Time
}

func (m modified) ModTime() time.Time { return m.time }

// TestTimesOfDirectories: a directory shows the time of its marker, or the newest time before it in the listing,
// or the time at which the server started.
func TestTimesOfDirectories(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 3, n, 12, 0, 0, 0, time.UTC) }
	client := &Client{View: viewOf("s3://bucket"), Started: day(1)}
	entries := []fs.FileInfo{
		view.Directory("a"), modified{file("b"), day(20)}, view.Directory("c"), modified{view.Directory("d"), day(2)},
		modified{file("e"), day(10)}, view.Directory("f"), modified{view.Directory("g"), day(30)}, view.Directory("h"),
	}
	for name, l := range map[string]*Listing{
		"LIST": NewLong("", "/", client), "MLSD": NewFacts(DefaultFacts(), "/x", "/x", client),
	} {
		l.dir, l.entries = "/", func(yield func(fs.FileInfo, error) bool) {
			for _, info := range entries {
				if !yield(info, nil) {
					return
				}
			}
		}
		got := map[string]int{}
		for info, err := range l.all() {
			must.OK(t, err)
			got[info.Name()] = info.ModTime().Day()
		}
		want := map[string]int{"a": 1, "b": 20, "c": 20, "d": 2, "e": 10, "f": 20, "g": 30, "h": 30}
		if name == "MLSD" {
			want["."], want[".."] = 1, 1
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: days %v, want %v", name, got, want)
		}
	}
	line := DefaultFacts().Append(nil, client, Entry{client.Dated(view.Directory("a"), time.Time{}), "/"})
	if !strings.Contains(string(line), "modify=20260301120000;") {
		t.Errorf("facts: %s", line)
	}
}
