package drivertest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver"
)

func testStat(t *testing.T, h Harness) {
	x := h.open(t, &driver.Options{Prefix: "in/"})
	x.put("in/file.txt", []byte("12345"))
	x.put("in/implied/file", nil)
	x.put("in/foobar", nil)
	x.put("outside", nil)
	if err := x.Mkdir("marked", 0o755); err != nil {
		t.Fatal(err)
	}
	type stat = func(string) (fs.FileInfo, error)
	const file, directory = "file", "directory"
	for _, test := range []struct {
		label, name string
		file        any // result of Stat and StatFile: file or an error
		directory   any // result of StatDir: directory or an error
	}{
		{"file", "file.txt", file, fs.ErrNotExist},
		{"rooted", "/file.txt", file, fs.ErrNotExist},
		{"not-clean", "//implied/../x/.././file.txt", file, fs.ErrNotExist},
		{"file-with-a-slash", "file.txt/", fs.ErrNotExist, fs.ErrNotExist},
		{"implied-directory", "implied", fs.ErrNotExist, directory},
		{"marked-directory", "marked", fs.ErrNotExist, directory},
		{"directory-with-a-slash", "/marked/", fs.ErrNotExist, directory},
		{"beginning-of-a-name", "foo", fs.ErrNotExist, fs.ErrNotExist},
		{"outside-of-the-prefix", "../outside", fs.ErrNotExist, fs.ErrNotExist},
		{"nothing", "nothing", fs.ErrNotExist, fs.ErrNotExist},
		{"below-a-file", "file.txt/x", fs.ErrNotExist, fs.ErrNotExist},
		{"root", "/", syscall.EISDIR, directory},
		{"root-as-nothing", "", syscall.EISDIR, directory},
		{"root-as-dot", ".", syscall.EISDIR, directory},
		{"above-the-root", "../..", syscall.EISDIR, directory},
	} {
		x.run(test.label, func(x *fixture) {
			check := func(stat stat, want any) {
				x.Helper()
				info, err := stat(test.name)
				if kind, failure := want.(error); failure {
					wantError(x, err, kind)
					var pathErr *fs.PathError
					if !errors.As(err, &pathErr) || pathErr.Path != test.name {
						x.Errorf("got error %#v, want an *fs.PathError for %q", err, test.name)
					}
					return
				}
				if err != nil {
					x.Error(err)
				} else if info.IsDir() != (want == directory) || info.Mode().IsDir() != info.IsDir() {
					x.Errorf("got mode %v, want a %v", info.Mode(), want)
				}
			}
			check(x.StatFile, test.file)
			check(x.StatDir, test.directory)
			either := test.file
			if test.directory == directory {
				either = directory
			}
			check(x.Stat, either)
		})
	}
	x.run("times", func(x *fixture) {
		for name, known := range map[string]bool{"file.txt": true, "marked": true, "implied": false, "/": false} {
			info, err := x.Stat(name)
			x.must(err)
			if info.ModTime().IsZero() == known {
				x.Errorf("%s: got time %v; has a time: %v", name, info.ModTime(), known)
			}
		}
	})
	x.run("no-bucket", func(x *fixture) {
		gone := MustNew(x.Context(), x.client, "no-such-bucket", nil)
		wantError(x, errorOf(gone.StatDir("directory")), syscall.ENXIO)
		wantError(x, errorOf(gone.List("/")), syscall.ENXIO)
	})
}

func testList(t *testing.T, h Harness) {
	x := h.open(t, nil)
	x.putAll("a.txt", "dir/", "dir/b", "dir/sub/c", "dir.txt", "dirt", "empty/", "foobar", "implied/deep/er")
	x.run("root", func(x *fixture) {
		x.wantList("/", "a.txt", "dir.txt", "dir/", "dirt", "empty/", "foobar", "implied/")
	})
	x.run("directory", func(x *fixture) { x.wantList("dir", "b", "sub/") })
	x.run("marker-not-in-itself", func(x *fixture) { x.wantList("/empty/") })
	x.run("only-a-directory", func(x *fixture) { x.wantList("implied", "deep/") })
	for label, name := range map[string]string{"missing": "nothing", "file": "a.txt", "beginning-of-a-name": "foo"} {
		x.run(label, func(x *fixture) {
			wantError(x, errorOf(x.List(name)), fs.ErrNotExist)
		})
	}
	x.run("empty-bucket", func(x *fixture) {
		empty := h.open(x.T, nil)
		empty.wantList("/")
		other := empty.session(x.Context(), &driver.Options{Prefix: "no/such/prefix/"})
		entries, err := other.List("")
		x.must(err)
		for info, err := range entries {
			x.Errorf("unexpected entries %v, %v", info, err)
		}
	})
	x.run("prefix-in-a-segment", func(x *fixture) {
		other := *x
		other.Fs = x.session(x.Context(), &driver.Options{Prefix: "dir"})
		other.wantList("/", ".txt", "t") // for the key "dir/", the segment is empty
	})
	x.run("readdir", func(x *fixture) { x.testReaddir() })
	x.run("without-pathname", func(x *fixture) { testWithoutPathname(x.T, h) })
	x.run("pages", func(x *fixture) { testPages(x.T, h) })
}

// testReaddir checks the afero.File of a directory.
func (x *fixture) testReaddir() {
	want := []string{"a.txt", "dir.txt", "dir", "dirt", "empty", "foobar", "implied"}
	x.sortUnlessListed(want)
	all, err := x.Open("/")
	x.must(err)
	defer x.close(all)
	names, err := all.Readdirnames(-1)
	if x.sortUnlessListed(names); err != nil || !slices.Equal(names, want) {
		x.Errorf("all entries: got %q, %v", names, err)
	}
	some, err := x.Open("")
	x.must(err)
	names = nil
	for {
		infos, err := some.Readdir(3)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || len(infos) > 3 {
			x.Fatalf("%d entries, %v", len(infos), err)
		}
		for _, info := range infos {
			names = append(names, info.Name())
		}
	}
	if x.sortUnlessListed(names); !slices.Equal(names, want) {
		x.Errorf("three at a time: got %q", names)
	}
	x.close(some)
	wantError(x, errorOf(some.Readdir(1)), fs.ErrClosed)
	wantError(x, some.Close(), fs.ErrClosed)

	dir, err := x.Open("dir")
	x.must(err)
	defer x.close(dir)
	if info, err := dir.Stat(); err != nil || !info.IsDir() || info.Name() != "dir" {
		x.Errorf("directory is described as %v, %v", info, err)
	}
	wantError(x, errorOf(dir.Read(make([]byte, 1))), syscall.EISDIR)
	wantError(x, errorOf(dir.Write(make([]byte, 1))), syscall.EISDIR)
}

// testWithoutPathname checks keys that have no pathname. Listings must not show them, and operations on directories
// must include them.
func testWithoutPathname(t *testing.T, h Harness) {
	x := h.open(t, nil)
	x.putAll("d/plain")
	for _, key := range []string{"d//empty", "d/./dot", "d/../dots", "d/..", "/leading"} {
		_, err := x.client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &x.bucket, Key: &key})
		if err == nil && !slices.Contains(x.keys(), key) {
			x.delete(key) // the server stored it under another key
		}
	}
	x.putAll("d/plain")
	x.wantList("d", "plain")
	x.wantList("/", "d/")
	x.delete("d/plain")
	if keys := x.keys(); len(keys) > 0 && keys[0] != "/leading" {
		wantError(t, x.RemoveDir("d"), syscall.ENOTEMPTY)
		x.rename("d", "e")
		x.rename("e", "d")
		if !slices.Equal(x.keys(), keys) {
			t.Errorf("the bucket has the keys %q, want %q", x.keys(), keys)
		}
	}
	wantNoError(t, x.RemoveAll("/"))
	x.wantKeys()
}

// testPages lists more entries than one response of S3 contains.
func testPages(t *testing.T, h Harness) {
	const files = 2100
	x := h.open(t, nil)
	keys := numbered("many/f", files)
	x.putAll(keys...)
	x.putAll("many/f00500.d/x", "many/f00500.d/y", "many/f00999.d/")
	want := []string{}
	for _, key := range keys {
		name := strings.TrimPrefix(key, "many/")
		want = append(want, name)
		if name == "f00500" || name == "f00999" {
			want = append(want, name+".d/")
		}
	}
	near := driver.NewEndpoint()
	near.Observe(time.Millisecond) // so that the server counts as near, even if it is busy
	x.Fs = x.session(t.Context(), &driver.Options{Endpoint: near})
	x.spy.Reset()
	x.wantList("many", want...)
	if n := x.spy.Total(); n != 3 {
		t.Errorf("%d entries took %d requests, want 3", len(want), n)
	}

	x.run("while-keys-come-and-go", func(x *fixture) { x.testWhileKeysComeAndGo() })
	x.run("distant-and-listed-before", func(x *fixture) { x.testListedBefore() })
}

// testListedBefore lists a directory on a distant server several times, also after it has changed. From the second
// listing on, the driver requests pages that begin after keys that it remembers. This needs a server that encodes keys
// and sorts listings.
func (x *fixture) testListedBefore() {
	const way = 50 * time.Millisecond
	client, link := NewLink(x.client)
	link.SetSpeed(way, 0)
	far := *x
	far.spy = NewSpy(client)
	endpoint := driver.NewEndpoint()
	endpoint.Observe(way)
	far.Fs = far.session(x.Context(), &driver.Options{Endpoint: endpoint})
	var encoded atomic.Bool
	var guesses atomic.Int64
	far.spy.Before(func(_ context.Context, _ string, in any) error {
		if in, ok := in.(*s3.ListObjectsV2Input); ok && in.StartAfter != nil {
			guesses.Add(1)
		}
		return nil
	})
	far.spy.After(func(_ string, out any) error {
		if out, ok := out.(*s3.ListObjectsV2Output); ok {
			encoded.Store(out.EncodingType == types.EncodingTypeUrl)
		}
		return nil
	})
	for _, change := range []func(){
		func() {},
		func() {},
		func() { x.putAll("many/f00000.x/y", "many/f01500.x", "many/f01899.x/y", "many/f02100") },
		func() { x.delete("many/f01500.x"); x.delete("many/f00000.x/y") },
		func() { x.delete("many/f01899.x/y"); x.delete("many/f02100") },
	} {
		change()
		x.wantList("many", far.list("many")...)
	}
	far.spy.Reset()
	if _, err := far.StatDir("many"); err != nil || far.spy.Total() > 1+x.requestsFor(markerHeads) {
		x.Errorf("checking the directory took %d requests, %v", far.spy.Total(), err)
	}
	if n := guesses.Load(); (n > 0) != (encoded.Load() && x.profile.SortedListings) {
		x.Errorf("%d requests began inside the directory; keys are encoded: %v, listings are sorted: %v",
			n, encoded.Load(), x.profile.SortedListings)
	}
}

// testWhileKeysComeAndGo adds and deletes keys while a directory is listed. The listing must have each key that stays
// exactly once, in the order of the server.
func (x *fixture) testWhileKeysComeAndGo() {
	entries, err := x.List("many")
	x.must(err)
	var names []string
	for info, err := range entries {
		x.must(err)
		if names = append(names, info.Name()); len(names) == 10 {
			x.delete("many/f01500")
			x.delete("many/f00005")
			x.putAll("many/f01500a", "many/f00000a", "many/g", "many/f01700.d/x")
		}
	}
	staying := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return strings.HasSuffix(name, "a") || name == "g" || name == "f01700.d" || name == "f01500" || name == "f00005"
	})
	x.sortUnlessListed(names)
	if !slices.IsSorted(names) || len(slices.Compact(names)) != len(names) || len(staying) != 2100 {
		x.Errorf("got %d entries, %d of them unchanged; want 2100 unchanged entries, in order", len(names), len(staying))
	}
}
