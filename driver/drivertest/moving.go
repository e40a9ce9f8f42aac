package drivertest

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

func testMkdir(t *testing.T, h Harness) {
	x := h.open(t, nil)
	x.putAll("file", "implied/file", "foobar")
	mkdir := func(name string) func() error { return func() error { return x.Mkdir(name, 0o755) } }
	all := func(name string) func() error { return func() error { return x.MkdirAll(name, 0o755) } }
	for _, test := range []struct {
		label string
		make  func() error
		kind  error // nil for success
		made  []string
	}{
		{"new", mkdir("new"), nil, []string{"new/"}},
		{"twice", mkdir("new"), fs.ErrExist, nil},
		{"with-a-slash", mkdir("/slash/"), nil, []string{"slash/"}},
		{"file", mkdir("file"), fs.ErrExist, nil},
		{"implied", mkdir("implied"), fs.ErrExist, nil},
		{"beginning-of-a-name", mkdir("foo"), nil, []string{"foo/"}},
		{"without-parents", mkdir("p/q/r"), nil, []string{"p/q/r/"}},
		{"root", mkdir("/"), fs.ErrExist, nil},
		{"all-new", all("a/b/c"), nil, []string{"a/", "a/b/", "a/b/c/"}},
		{"all-again", all("a/b/c"), nil, nil},
		{"all-one-more", all("a/b/d"), nil, []string{"a/b/d/"}},
		{"all-implied", all("implied/x"), nil, []string{"implied/x/"}},
		{"all-on-a-file", all("file"), syscall.ENOTDIR, nil},
		{"all-below-a-file", all("file/x"), syscall.ENOTDIR, nil},
		{"all-root", all("/"), nil, nil},
	} {
		x.run(test.label, func(x *fixture) {
			want := append(x.keys(), test.made...)
			wantError(x, test.make(), test.kind)
			x.wantKeys(want...)
		})
	}
	x.run("among-many", func(x *fixture) {
		// More keys than a page between the file and the directory with the same name.
		many := h.open(x.T, nil)
		many.putAll(numbered("name ", 1001)...)
		many.putAll("name/file")
		wantError(x, many.Mkdir("name", 0o755), fs.ErrExist)
	})
}

func testRemove(t *testing.T, h Harness) {
	x := h.open(t, nil)
	fill := func() {
		x.putAll(
			"file", "dir/file", "empty/", "marked/", "marked/file", "tree/", "tree/a", "tree/b/", "tree/b/c",
			"tree/d/e", "treeless")
	}
	for _, test := range []struct {
		label   string
		remove  func(string) error
		name    string
		kind    error
		removed []string
	}{
		{"file", x.Remove, "file", nil, []string{"file"}},
		{"empty-directory", x.Remove, "empty", nil, []string{"empty/"}},
		{"full-directory", x.Remove, "dir", syscall.ENOTEMPTY, nil},
		{"missing", x.Remove, "missing", fs.ErrNotExist, nil},
		{"root", x.Remove, "/", fs.ErrInvalid, nil},
		{"file-as-file", x.RemoveFile, "file", nil, []string{"file"}},
		{"directory-as-file", x.RemoveFile, "empty", syscall.EISDIR, nil},
		{"implied-as-file", x.RemoveFile, "dir", syscall.EISDIR, nil},
		{"missing-as-file", x.RemoveFile, "missing", fs.ErrNotExist, nil},
		{"root-as-file", x.RemoveFile, "/", syscall.EISDIR, nil},
		{"file-as-directory", x.RemoveDir, "file", syscall.ENOTDIR, nil},
		{"empty-as-directory", x.RemoveDir, "/empty/", nil, []string{"empty/"}},
		{"full-as-directory", x.RemoveDir, "dir", syscall.ENOTEMPTY, nil},
		{"marked-as-directory", x.RemoveDir, "marked", syscall.ENOTEMPTY, nil},
		{"missing-as-directory", x.RemoveDir, "missing", fs.ErrNotExist, nil},
		{"beginning-of-a-name", x.RemoveDir, "fil", fs.ErrNotExist, nil},
		{"root-as-directory", x.RemoveDir, "/", fs.ErrInvalid, nil},
		{"all-of-a-tree", x.RemoveAll, "tree", nil, []string{"tree/", "tree/a", "tree/b/", "tree/b/c", "tree/d/e"}},
		{"all-of-a-file", x.RemoveAll, "file", syscall.ENOTDIR, nil},
		{"all-of-nothing", x.RemoveAll, "missing", nil, nil},
		{"file-with-a-slash", x.Remove, "file/", syscall.ENOTDIR, nil},
		{"file-with-a-slash-as-file", x.RemoveFile, "file/", syscall.ENOTDIR, nil},
		{"directory-with-a-slash-as-file", x.RemoveFile, "empty/", syscall.EISDIR, nil},
		{"missing-with-a-slash-as-file", x.RemoveFile, "missing/", fs.ErrNotExist, nil},
		{"file-with-a-slash-as-directory", x.RemoveDir, "file/", syscall.ENOTDIR, nil},
		{"empty-directory-with-a-slash", x.Remove, "empty/", nil, []string{"empty/"}},
		{"all-of-a-file-with-a-slash", x.RemoveAll, "file/", syscall.ENOTDIR, nil},
	} {
		x.run(test.label, func(x *fixture) {
			fill()
			left := slices.DeleteFunc(x.keys(), func(key string) bool { return slices.Contains(test.removed, key) })
			wantError(x, test.remove(test.name), test.kind)
			x.wantKeys(left...)
		})
	}
	x.run("marker-with-content", func(x *fixture) {
		in := &s3.PutObjectInput{Bucket: &x.bucket, Key: aws.String("odd/"), Body: strings.NewReader("content")}
		if _, err := x.client.PutObject(x.Context(), in); err != nil {
			return // the server stores no data in a marker
		}
		wantError(x, x.RemoveDir("odd"), syscall.ENOTEMPTY)
		x.wantContent("odd/", []byte("content"))
		x.delete("odd/")
	})
	x.run("all-of-the-root", func(x *fixture) {
		fill()
		other := *x
		other.Fs = x.session(x.Context(), &driver.Options{Prefix: "tree/"})
		wantNoError(x, other.RemoveAll("/"))
		x.wantKeys("dir/file", "empty/", "file", "marked/", "marked/file", "treeless")
	})
	x.run("refused", func(x *fixture) {
		x.put("old", nil)
		x.refuseDelete(responseError(http.StatusForbidden, "AccessDenied"))
		wantError(x, x.RemoveFile("old"), fs.ErrPermission)
	})
}

// A move is a rename or a copy.
type move struct {
	label    string
	keys     []string
	from, to string
	kind     error
	want     []string // nil if the keys do not change
}

// testMoves runs each move in an empty bucket.
func (x *fixture) testMoves(run func(from, to string) error, moves []move) {
	for _, m := range moves {
		x.run(m.label, func(x *fixture) {
			x.putAll(m.keys...)
			err := run(m.from, m.to)
			wantError(x, err, m.kind)
			var link *os.LinkError
			if m.kind != nil && (!errors.As(err, &link) || link.Old != m.from || link.New != m.to) {
				x.Errorf("got error %#v, want an *os.LinkError", err)
			}
			if m.want == nil {
				m.want = m.keys
			}
			x.wantKeys(m.want...)
			x.must(x.RemoveAll("/"))
		})
	}
}

func testRename(t *testing.T, h Harness) {
	x := h.open(t, nil)
	x.testMoves(x.Rename, []move{
		{"file", []string{"a"}, "a", "b", nil, []string{"b"}},
		{"file-into-a-directory", []string{"a", "d/x"}, "a", "d/a", nil, []string{"d/a", "d/x"}},
		{"file-into-nothing", []string{"a"}, "a", "no/such/a", nil, []string{"no/such/a"}},
		{"file-onto-a-file", []string{"a", "b"}, "a", "b", nil, []string{"b"}},
		{"file-onto-itself", []string{"a"}, "a", "/./a", nil, nil},
		{"file-onto-a-directory", []string{"a", "d/x"}, "a", "d", syscall.EISDIR, nil},
		{"missing", []string{"a"}, "b", "c", fs.ErrNotExist, nil},
		{"missing-onto-itself", []string{"a"}, "b", "b", fs.ErrNotExist, nil},
		{"directory", []string{"d/", "d/x", "d/y/z", "dd"}, "d", "e", nil, []string{"dd", "e/", "e/x", "e/y/z"}},
		{"implied-directory", []string{"d/x"}, "d", "e", nil, []string{"e/x"}},
		{"empty-directory", []string{"d/"}, "d", "e", nil, []string{"e/"}},
		{"directory-deeper", []string{"d/x", "e/y"}, "d", "e/f/d", nil, []string{"e/f/d/x", "e/y"}},
		{"directory-up", []string{"d/e/x", "d/e/y/"}, "d/e", "e", nil, []string{"e/x", "e/y/"}},
		{"directory-onto-itself", []string{"d/x"}, "d", "d/", nil, nil},
		{"directory-into-itself", []string{"d/x"}, "d", "d/e", syscall.ELOOP, nil},
		{"directory-onto-its-parent", []string{"d/e/x", "d/y"}, "d/e", "d", syscall.ENOTEMPTY, nil},
		{"empty-directory-onto-its-parent", []string{"d/", "d/e/"}, "d/e", "d", syscall.ENOTEMPTY, nil},
		{"directory-onto-a-file", []string{"d/x", "a"}, "d", "a", syscall.ENOTDIR, nil},
		{"directory-onto-an-empty-one", []string{"d/x", "e/"}, "d", "e", nil, []string{"e/", "e/x"}},
		{"directory-onto-a-full-one", []string{"d/x", "e/y"}, "d", "e", syscall.ENOTEMPTY, nil},
		{"directory-onto-a-longer-name", []string{"d/x"}, "d", "dd", nil, []string{"dd/x"}},
		{"root", []string{"a"}, "/", "b", syscall.ELOOP, nil},
		// A name with a final slash means a directory, never a file.
		{"file-with-a-slash", []string{"a"}, "a/", "b", fs.ErrNotExist, nil},
		{"file-to-a-slash", []string{"a"}, "a", "b/", syscall.ENOTDIR, nil},
		{"file-onto-a-file-with-a-slash", []string{"a", "b"}, "a", "b/", syscall.ENOTDIR, nil},
		{"file-onto-itself-with-a-slash", []string{"a"}, "a", "a/", syscall.ENOTDIR, nil},
		{"file-onto-a-directory-with-a-slash", []string{"a", "d/x"}, "a", "d/", syscall.EISDIR, nil},
		{"directory-with-slashes", []string{"d/x"}, "d/", "e/", nil, []string{"e/x"}},
		{"directory-onto-a-file-with-a-slash", []string{"d/x", "a"}, "d/", "a/", syscall.ENOTDIR, nil},
		{"onto-the-root", []string{"a"}, "a", "/", fs.ErrInvalid, nil},
		{"directory-onto-equal-files", []string{"d/x", "e/x"}, "d", "e", syscall.ENOTEMPTY, nil},
	})
	if !x.limits.has(FileBesideDirectory) && !x.limits.has(ListFileBesideDirectory) {
		x.testMoves(x.Rename, []move{
			{"directory-beside-a-file", []string{"d", "d/x"}, "d/", "e", nil, []string{"d", "e/x"}},
			{"directory-beside-a-file-to-a-slash", []string{"d", "d/x"}, "d/", "e/", nil, []string{"d", "e/x"}},
			{"file-beside-a-directory", []string{"d", "d/x"}, "d", "e", nil, []string{"d/x", "e"}},
			{"file-beside-a-directory-to-a-slash", []string{"d", "d/x"}, "d", "e/", syscall.ENOTDIR, nil},
		})
		x.run("all-of-a-directory-beside-a-file", func(x *fixture) {
			for _, name := range []string{"d", "d/"} {
				x.putAll("d", "d/x")
				wantNoError(x, x.RemoveAll(name))
				x.wantKeys("d")
				x.delete("d")
			}
		})
	}
	for label, limit := range map[string]int64{"at-once": 0, "by-parts": 1} {
		x.run("attributes-"+label, func(x *fixture) { x.testRenamedAttributes(limit) })
	}
	t.Run("many", func(t *testing.T) {
		x := h.open(t, nil)
		x.putAll(numbered("d/", 1010)...) // more than a page
		x.rename("d", "e")
		x.wantKeys(numbered("e/", 1010)...)
		wantNoError(t, x.RemoveAll("e"))
		x.wantKeys()
	})
	t.Run("same-size-is-not-enough", func(t *testing.T) { testRenamedOntoOther(t, h) })
	t.Run("source-replaced", func(t *testing.T) { testSourceReplaced(t, h) })
	t.Run("source-replaced-before-copy", func(t *testing.T) { testSourceReplacedBeforeCopy(t, h) })
	t.Run("versioned", func(t *testing.T) { testVersioned(t, h) })
	t.Run("versioned-denied", func(t *testing.T) { testVersionedDenied(t, h) })
	t.Run("stamps", func(t *testing.T) { testStamps(t, h) })
	t.Run("requests-at-once", func(t *testing.T) { testRequestsAtOnce(t, h) })
	t.Run("same-size-and-younger", func(t *testing.T) { testOntoUnprovenFiles(t, h) })
	t.Run("interrupted", func(t *testing.T) { testRenameInterrupted(t, h) })
	t.Run("interrupted-copy-completes-later", func(t *testing.T) { testRenameCompletedLater(t, h) })
	t.Run("changed-meanwhile", func(t *testing.T) { testRenameChanged(t, h) })
	t.Run("removed-meanwhile", func(t *testing.T) { testRenameRemoved(t, h) })
	t.Run("failed", func(t *testing.T) { testRenameFailed(t, h) })
	t.Run("refused", func(t *testing.T) { testRenameRefused(t, h) })
	t.Run("archived", func(t *testing.T) { testRenameArchived(t, h) })
	t.Run("deleted-one-by-one", func(t *testing.T) { testDeletedOneByOne(t, h) })
}

// testRenamedAttributes renames an object that is larger than the copy limit, unless limit is 0.
func (x *fixture) testRenamedAttributes(limit int64) {
	content := random(4*x.partSize + 1000)
	before := x.putWithAttributes("old + name%.bin", content)
	other := *x
	other.Fs = x.session(x.Context(), &driver.Options{CopyLimit: limit})
	x.spy.Reset()
	other.rename("old + name%.bin", "new")
	if n := x.spy.Counts()["UploadPartCopy"]; (n > 1) != (limit > 0 && x.profile.PartCopy && !x.profile.MisreadPartSources) {
		x.Errorf("got %d copied parts", n)
	}
	x.wantKeys("new")
	x.wantContent("new", content)
	x.wantNoUploads("new")
	x.wantAttributes("new", before)
	info, err := x.StatFile("new")
	if want := time.Unix(1_000_000_000, 250_000_000); err != nil || !info.ModTime().Equal(want) {
		x.Errorf("got %v, %v; want time %v", info, err, want)
	}
	x.delete("new")
}

// testRenamedOntoOther checks that the driver does not mistake another directory for an incomplete copy.
func testRenamedOntoOther(t *testing.T, h Harness) {
	for label, other := range map[string][]byte{"larger": random(11), "as-large": []byte("0123456789")} {
		t.Run(label, func(t *testing.T) {
			x := h.open(t, nil)
			x.put("d/x", random(10))
			x.put("e/x", other)
			wantError(t, x.Rename("d", "e"), syscall.ENOTEMPTY)
			x.wantContent("d/x", random(10))
			x.wantContent("e/x", other)
		})
	}
}

// testRenameInterrupted interrupts the rename of a directory at every request, and completes it with a second rename.
func testRenameInterrupted(t *testing.T, h Harness) {
	keys := []string{"d/", "d/a", "d/b/", "d/b/c", "d/e/f"}
	renamed := []string{}
	for _, key := range keys {
		renamed = append(renamed, "n"+strings.TrimPrefix(key, "d"))
	}
	for at := int64(1); ; at++ {
		x := h.open(t, nil)
		for i, key := range keys {
			if strings.HasSuffix(key, "/") {
				x.putAll(key)
			} else {
				x.put(key, random(i))
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		session := x.session(ctx, nil)
		var requests atomic.Int64
		x.spy.Before(func(context.Context, string, any) error {
			if requests.Add(1) == at {
				cancel()
			}
			return nil
		})
		err := session.Rename("d", "n")
		cancel()
		x.spy.Before(nil)
		if requests.Load() < at {
			wantNoError(t, err)
			if at == 1 {
				t.Error("no request was sent")
			}
			return
		}
		for i, key := range keys {
			if !slices.Contains(x.keys(), key) && !slices.Contains(x.keys(), renamed[i]) {
				t.Errorf("interrupted at request %d: %s is lost", at, key)
			}
		}
		if err != nil {
			wantError(t, err, context.Canceled)
			err = x.Rename("d", "n")
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // S3 may have deleted the last file in d nevertheless
				t.Fatal(err)
			}
		}
		x.wantKeys(renamed...)
		for i, key := range renamed {
			if !strings.HasSuffix(key, "/") {
				x.wantContent(key, random(i))
			}
		}
	}
}

// testRenameCompletedLater interrupts the rename of a directory while S3 copies a file. S3 completes the copy after the
// next rename has listed the directories.
func testRenameCompletedLater(t *testing.T, h Harness) {
	x := h.open(t, nil)
	x.put("d/a", random(10))
	var mu sync.Mutex
	var interrupted *s3.CopyObjectInput
	x.spy.Before(func(_ context.Context, _ string, in any) error {
		mu.Lock()
		defer mu.Unlock()
		if in, ok := in.(*s3.CopyObjectInput); ok {
			interrupted = in
			return context.Canceled
		}
		return nil
	})
	wantError(t, x.Rename("d", "n"), context.Canceled)
	x.Fs = x.session(t.Context(), nil)
	x.spy.Before(func(_ context.Context, _ string, in any) error {
		mu.Lock()
		defer mu.Unlock()
		var key string
		switch in := in.(type) {
		case *s3.HeadObjectInput: // the check before a copy without a condition
			key = *in.Key
		case *s3.CopyObjectInput:
			key = *in.Key
		}
		if key != "n/a" || interrupted == nil {
			return nil
		}
		_, err := x.client.CopyObject(x.Context(), interrupted)
		interrupted = nil
		return err
	})
	x.rename("d", "n")
	x.wantKeys("n/a")
	x.wantContent("n/a", random(10))
}

// testRenameRemoved removes files of a directory right before they are copied. The others are renamed. If none is left,
// the rename fails.
func testRenameRemoved(t *testing.T, h Harness) {
	for label, test := range map[string]struct {
		removed, want []string
		kind          error
	}{
		"one": {[]string{"d/a"}, []string{"n/b"}, nil},
		"all": {[]string{"d/a", "d/b"}, nil, syscall.ESTALE},
	} {
		t.Run(label, func(t *testing.T) {
			x := h.open(t, nil)
			x.put("d/a", random(10))
			x.put("d/b", random(11))
			var mu sync.Mutex
			x.spy.Before(func(_ context.Context, _ string, in any) error {
				mu.Lock()
				defer mu.Unlock()
				c, copies := in.(*s3.CopyObjectInput)
				if copies && slices.Contains(test.removed, strings.TrimPrefix(*c.CopySource, x.bucket+"/")) {
					x.delete(strings.TrimPrefix(*c.CopySource, x.bucket+"/"))
				}
				return nil
			})
			wantError(t, x.Rename("d", "n"), test.kind)
			x.spy.Before(nil)
			x.wantKeys(test.want...)
		})
	}
}

// testRenameArchived renames and copies a directory with a file that S3 has archived. Nothing may be copied before the
// file is restored.
func testRenameArchived(t *testing.T, h Harness) {
	x := h.open(t, nil)
	x.put("d/a", random(10))
	x.put("d/sub/b", random(11))
	var restored atomic.Bool
	x.spy.After(func(_ string, out any) error {
		switch out := out.(type) {
		case *s3.ListObjectsV2Output:
			for i, o := range out.Contents {
				if strings.HasSuffix(*o.Key, "d/sub/b") {
					out.Contents[i].StorageClass = types.ObjectStorageClassGlacier
				}
			}
		case *s3.HeadObjectOutput:
			if restored.Load() {
				out.Restore = aws.String(`ongoing-request="false", expiry-date="Fri, 21 Dec 2029 00:00:00 GMT"`)
			}
		}
		return nil
	})
	for label, move := range map[string]func() error{
		"rename": func() error { return x.Rename("d", "n") },
		"copy":   func() error { return x.Copy(t.Context(), "d", "n") },
	} {
		err := move()
		named, ok := errors.AsType[*s3error.EntryError](err)
		if !errors.Is(err, s3error.Archived) || !ok || named.Name != "sub/b" {
			t.Errorf("%s: got %v, want the archived file", label, err)
		}
		x.wantKeys("d/a", "d/sub/b")
	}
	restored.Store(true)
	x.rename("d", "n")
	x.wantKeys("n/a", "n/sub/b")
}

// testRenameChanged changes a directory while it is renamed. Files that were not copied must not be deleted.
func testRenameChanged(t *testing.T, h Harness) {
	x := h.open(t, nil)
	x.put("d/a", random(10))
	x.put("d/b", random(10))
	var copies atomic.Int64
	x.spy.After(func(operation string, _ any) error {
		if operation == "CopyObject" && copies.Add(1) == 2 {
			x.put("d/b", random(11))
			x.put("d/c", random(12))
		}
		return nil
	})
	err := x.Rename("d", "n")
	x.spy.After(nil)
	wantError(t, err, syscall.ESTALE)
	if named, ok := errors.AsType[*s3error.EntryError](err); !ok || named.Name != "b" && named.Name != "c" {
		t.Errorf("got error %v, want a name in it", err)
	}
	x.wantContent("n/a", random(10))
	x.wantContent("d/b", random(11))
	x.wantContent("d/c", random(12))
}

func testTimes(t *testing.T, h Harness) {
	x := h.open(t, nil)
	x.putAll("dir/file")
	x.put("plain", random(10))
	for label, mtime := range map[string]time.Time{
		"past":         time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC),
		"nanoseconds":  time.Date(2026, 7, 8, 9, 10, 11, 123456789, time.UTC),
		"before-1970":  time.Date(1931, 1, 2, 3, 4, 5, 250_000_000, time.UTC),
		"far-future":   time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC),
		"another-zone": time.Date(2020, 2, 29, 12, 0, 0, 0, time.FixedZone("test", 3600)),
	} {
		x.run(label, func(x *fixture) {
			x.must(x.Chtimes("plain", mtime, mtime))
			f := x.openAt("plain", os.O_RDONLY, 0)
			defer x.close(f)
			for what, stat := range map[string]func() (fs.FileInfo, error){
				"Stat":         func() (fs.FileInfo, error) { return x.Stat("plain") },
				"an open file": func() (fs.FileInfo, error) { return f.Stat() },
			} {
				if info, err := stat(); err != nil || !info.ModTime().Equal(mtime) {
					x.Errorf("%s: got %v, %v; want %v", what, info.ModTime(), err, mtime)
				}
			}
			x.wantContent("plain", random(10))
		})
	}
	x.run("overwritten", func(x *fixture) {
		x.write("plain", random(11))
		if mtime, set := x.head("plain").Metadata["mtime"]; set {
			x.Errorf("new bytes have the old time %s", mtime)
		}
	})
	x.run("by-parts", func(x *fixture) {
		content := random(2*x.partSize + 1000)
		x.put("large", content)
		other := x.session(x.Context(), &driver.Options{CopyLimit: int64(2 * x.partSize)})
		mtime := time.Unix(1_000_000_000, 0)
		x.must(other.Chtimes("large", mtime, mtime))
		x.wantContent("large", content)
		if info, err := x.Stat("large"); err != nil || !info.ModTime().Equal(mtime) {
			x.Errorf("got %v, %v", info, err)
		}
	})
	now := time.Now()
	wantError(t, x.Chtimes("missing", now, now), fs.ErrNotExist)
	wantError(t, x.Chtimes("dir", now, now), errors.ErrUnsupported)
	wantError(t, x.Chtimes("/", now, now), errors.ErrUnsupported)
	wantError(t, x.Chmod("plain", 0o600), errors.ErrUnsupported)
	wantError(t, x.Chown("plain", 0, 0), errors.ErrUnsupported)
}
