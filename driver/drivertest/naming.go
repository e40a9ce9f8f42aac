package drivertest

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
)

// An outcome describes what a server does with a name.
type outcome int

const (
	stored  outcome = iota // and listed
	hidden                 // stored, but not listed
	refused                // nothing is stored
)

func (l Limits) outcome(n Name) outcome {
	worst := stored
	for _, need := range n.Needs {
		if _, limited := l[need]; !limited {
			continue
		}
		switch need {
		case FileBesideDirectory, LongSegments, LongDirectories, FullKeys:
			worst = refused
		case ListFileBesideDirectory, ListControlCharacters:
			worst = max(worst, hidden)
		}
	}
	return worst
}

// listing returns the expected listing of the directory with the names, in its order.
func (l Limits) listing(names []Name) []string {
	entries := []string{}
	for _, n := range names {
		if l.outcome(n) != stored {
			continue
		}
		first, _, nested := strings.Cut(n.Path, "/")
		if nested {
			first += "/"
		}
		entries = append(entries, first)
	}
	slices.Sort(entries)
	return slices.Compact(entries)
}

// longest returns a name whose key, after a prefix, has 1,024 bytes and consists of segments of this length.
func longest(prefix string, segment int) string {
	name := strings.Repeat(strings.Repeat("k", segment)+"/", 1024/segment+1)
	return name[:1024-len(prefix)]
}

// testNames runs all operations with every name in the table. Either the name is the same in the bucket, in listings
// and in file information, or the driver refuses it and stores nothing.
func testNames(t *testing.T, h Harness) {
	const prefix = "names/"
	x := h.open(t, &driver.Options{Prefix: prefix})
	names := append(Names(),
		Name{Label: "key-1024", Path: longest(prefix, 204), Needs: []Limit{FullKeys}},
		Name{Label: "key-1024-few-segments", Path: longest(prefix, 600), Needs: []Limit{FullKeys, LongSegments}},
	)
	for _, n := range names {
		x.run("write-"+n.Label, func(x *fixture) {
			err := x.tryWrite(n.Path, []byte(n.Label))
			if h.Limits.outcome(n) == refused {
				x.wantRefused(err, prefix+n.Path)
				return
			}
			x.must(err)
			x.wantContent(prefix+n.Path, []byte(n.Label))
			equal(x, "file", x.read(n.Path), []byte(n.Label))
			x.wantInfo(x.StatFile, n.Path, prefix+n.Path, int64(len(n.Label)))
			x.wantInfo(x.Stat, n.Path, prefix+n.Path, int64(len(n.Label)))
		})
	}
	x.run("list", func(x *fixture) { x.wantList("/", h.Limits.listing(names)...) })
	for i, n := range names {
		if h.Limits.outcome(n) == refused {
			continue
		}
		x.run("rename-"+n.Label, func(x *fixture) {
			x.rename(n.Path, "renamed")
			if x.exists(prefix + n.Path) {
				x.Error("the object is still there")
			}
			x.wantContent(prefix+"renamed", []byte(n.Label))
			x.rename("renamed", n.Path)
			x.wantContent(prefix+n.Path, []byte(n.Label))
		})
		x.run("chtimes-"+n.Label, func(x *fixture) {
			mtime := time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC)
			x.must(x.Chtimes(n.Path, mtime, mtime))
			if info, err := x.StatFile(n.Path); err != nil || !info.ModTime().Equal(mtime) {
				x.Errorf("got %v, %v; want time %v", info, err, mtime)
			}
		})
		x.run("remove-"+n.Label, func(x *fixture) {
			x.must(x.Remove(n.Path))
			if x.exists(prefix + n.Path) {
				x.Error("the object is still there")
			}
			wantError(x, errorOf(x.Stat(n.Path)), fs.ErrNotExist)
			x.wantList("/", h.Limits.listing(names[i+1:])...)
		})
	}
	x.wantKeys()
	t.Run("directories", func(t *testing.T) { testDirectoryNames(t, h) })
	t.Run("refused", func(t *testing.T) { testRefusedNames(t, h) })
	t.Run("unnameable", func(t *testing.T) { testUnrepresentableKeys(t, h) })
}

func (x *fixture) wantInfo(stat func(string) (fs.FileInfo, error), name, key string, size int64) {
	x.Helper()
	info, err := stat(name)
	x.must(err)
	if info.Name() != path.Base(name) || info.Size() != size || info.Mode() != 0o644 || info.IsDir() {
		x.Errorf(
			"got %q, %d bytes, %v; want %q, %d bytes", info.Name(), info.Size(), info.Mode(), path.Base(name),
			size)
	}
	if object := info.Sys().(*driver.Object); object.Key != key || object.ETag == "" {
		x.Errorf("unexpected object %+v", object)
	}
}

// wantRefused checks that a name is refused because the server cannot store it, and that no object with the key exists.
func (x *fixture) wantRefused(err error, key string) {
	x.Helper()
	named := errors.Is(err, syscall.EILSEQ) || errors.Is(err, syscall.ENAMETOOLONG)
	if _, limited := x.limits[ReasonOfRefusal]; !named && (!limited || !errors.Is(err, syscall.EAGAIN)) {
		x.Errorf("got error %v, want EILSEQ or ENAMETOOLONG", err)
	}
	if _, err := x.client.HeadObject(x.Context(), &s3.HeadObjectInput{Bucket: &x.bucket, Key: &key}); err == nil {
		x.Errorf("unexpected object %q", key)
	}
	if named {
		x.wantNoUploads(key)
		return
	}
	// After a 500 response to CompleteMultipartUpload, S3 may still complete the upload, so it may stay until a sweep.
	x.abortUploads(key)
}

func (x *fixture) rename(oldname, newname string) {
	x.Helper()
	x.must(x.Rename(oldname, newname))
}

// longDirectory is the maximum length of the name of a directory on a server with the limit LongDirectories.
const longDirectory = 240

// testDirectoryNames makes, lists, renames and removes a directory with every name.
func testDirectoryNames(t *testing.T, h Harness) {
	x := h.open(t, nil)
	for _, n := range Names() {
		if strings.HasPrefix(n.Path, "beside") {
			n.Needs = nil // no limit applies to a single name
		}
		if len(path.Base(n.Path)) > longDirectory {
			n.Needs = append(n.Needs, LongDirectories)
		}
		x.run(n.Label, func(x *fixture) {
			err := x.Mkdir(n.Path, 0o755)
			if h.Limits.outcome(n) == refused {
				x.wantRefused(err, n.Path+"/")
				return
			}
			x.must(err)
			if !x.exists(n.Path + "/") {
				x.Error("missing marker")
			}
			info, err := x.StatDir(n.Path)
			if err != nil || info.Name() != path.Base(n.Path) || !info.IsDir() {
				x.Errorf("got %v, %v", info, err)
			}
			if h.Limits.outcome(n) == hidden {
				x.testHiddenDirectory(n.Path)
				return
			}
			parent := path.Dir(n.Path)
			x.wantList(parent, path.Base(n.Path)+"/")
			x.wantList(n.Path)
			x.write(n.Path+"/in", []byte("x"))
			x.wantList(n.Path, "in")
			x.rename(n.Path, "renamed")
			x.wantKeys("renamed/", "renamed/in")
			x.rename("renamed", n.Path)
			x.wantKeys(n.Path+"/", n.Path+"/in")
			wantNoError(x, x.RemoveAll(n.Path))
			x.wantKeys()
		})
	}
}

// testHiddenDirectory checks that operations that list a directory do not lose files that the server cannot list.
func (x *fixture) testHiddenDirectory(name string) {
	x.wantList("/")
	wantError(x, x.Rename(name, "renamed"), syscall.EILSEQ)
	wantError(x, x.RemoveAll(name), syscall.EILSEQ)
	wantError(x, x.RemoveDir(name), syscall.ENOTEMPTY)
	if !x.exists(name + "/") {
		x.Error("the marker is gone")
	}
	x.delete(name + "/")
}

// testRefusedNames checks that no operation creates or loses anything if the server refuses a name.
func testRefusedNames(t *testing.T, h Harness) {
	x := h.open(t, nil)
	content := random(100)
	x.put("safe", content)
	x.put("tree/safe", content)
	long := strings.Repeat("l", 256)
	for _, test := range []struct {
		label   string
		limit   Limit
		key     string
		attempt func() error
	}{
		{"write", LongSegments, long, func() error { return x.tryWrite(long, content) }},
		{"write-by-parts", LongSegments, long, func() error { return x.tryWrite(long, random(h.PartSize+1)) }},
		{"append", LongSegments, long, func() error { return x.tryAppend(long, content) }},
		{"mkdir", LongSegments, long + "/", func() error { return x.Mkdir(long, 0o755) }},
		{"mkdir-all", LongSegments, long + "/x/", func() error { return x.MkdirAll(long+"/x", 0o755) }},
		{"rename", LongSegments, long, func() error { return x.Rename("safe", long) }},
		{"rename-directory", LongSegments, long + "/safe", func() error { return x.Rename("tree", long) }},
		{"write-below", LongSegments, long + "/x", func() error { return x.tryWrite(long+"/x", content) }},
		{"rename-below", LongSegments, long + "/x", func() error { return x.Rename("safe", long+"/x") }},
		{"stat", LongSegments, long, func() error { _, err := x.Stat(long); return err }},
		{"open", LongSegments, long, func() error { _, err := x.Open(long); return err }},
		{"remove", LongSegments, long, func() error { return x.Remove(long) }},
		{"chtimes", LongSegments, long, func() error { return x.Chtimes(long, time.Now(), time.Now()) }},
		{"write-below-a-file", FileBesideDirectory, "safe/x", func() error { return x.tryWrite("safe/x", content) }},
		{"write-by-parts-below-a-file", FileBesideDirectory, "safe/x", func() error {
			return x.tryWrite("safe/x", random(h.PartSize+1))
		}},
		{"mkdir-below-a-file", FileBesideDirectory, "safe/x/", func() error { return x.Mkdir("safe/x", 0o755) }},
		{"rename-below-a-file", FileBesideDirectory, "safe/x", func() error { return x.Rename("tree/safe", "safe/x") }},
		{"write-on-a-directory", FileBesideDirectory, "tree", func() error { return x.tryWrite("tree", content) }},
	} {
		if _, limited := h.Limits[test.limit]; !limited {
			continue
		}
		x.run(test.label, func(x *fixture) {
			x.wantRefused(test.attempt(), test.key)
			x.wantKeys("safe", "tree/safe")
		})
	}
	x.wantContent("safe", content)
}

// testUnrepresentableKeys checks that every operation refuses a pathname that is not UTF-8 or too long for S3, without
// sending a request.
func testUnrepresentableKeys(t *testing.T, h Harness) {
	const prefix = "p/"
	x := h.open(t, &driver.Options{Prefix: prefix})
	tooLong := longest(prefix, 200) + "k"
	for _, n := range append(UnrepresentableKeys(), Name{Label: "key-1025", Path: tooLong}) {
		kind := error(syscall.EILSEQ)
		if n.Path == tooLong {
			kind = syscall.ENAMETOOLONG
		}
		for operation, attempt := range map[string]func() error{
			"create":     func() error { _, err := x.Create(n.Path); return err },
			"open":       func() error { _, err := x.Open(n.Path); return err },
			"append":     func() error { _, err := x.OpenFile(n.Path, os.O_WRONLY|os.O_APPEND, 0); return err },
			"open-at":    func() error { _, err := x.OpenAt(n.Path, os.O_RDONLY, 5); return err },
			"mkdir":      func() error { return x.Mkdir(n.Path, 0o755) },
			"mkdir-all":  func() error { return x.MkdirAll(n.Path, 0o755) },
			"remove":     func() error { return x.Remove(n.Path) },
			"remove-dir": func() error { return x.RemoveDir(n.Path) },
			"remove-all": func() error { return x.RemoveAll(n.Path) },
			"rename":     func() error { return x.Rename("x", n.Path) },
			"rename-of":  func() error { return x.Rename(n.Path, "x") },
			"stat":       func() error { _, err := x.Stat(n.Path); return err },
			"stat-file":  func() error { _, err := x.StatFile(n.Path); return err },
			"stat-dir":   func() error { _, err := x.StatDir(n.Path); return err },
			"list":       func() error { _, err := x.List(n.Path); return err },
			"chtimes":    func() error { return x.Chtimes(n.Path, time.Now(), time.Now()) },
		} {
			x.run(n.Label+"-"+operation, func(x *fixture) { wantError(x, attempt(), kind) })
		}
	}
	if n := x.spy.Total(); n != 0 {
		t.Errorf("got %d requests", n)
	}
	x.run("marker-1025", func(x *fixture) {
		name := longest(prefix, 200)
		wantError(x, x.Mkdir(name, 0o755), syscall.ENAMETOOLONG)
		x.wantKeys()
	})
}
