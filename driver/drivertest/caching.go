package drivertest

import (
	"io/fs"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/babelftp/babelftp/driver"
)

// testMetadataCache looks at what a session need not ask for twice, and at what it must ask for again: what this
// process has written.
func testMetadataCache(t *testing.T, h Harness) {
	x := h.open(t, nil)
	x.putAll("dir/a", "dir/b", "dir/sub/")
	requests := func(x *fixture, want int, run func()) {
		x.Helper()
		x.spy.Reset()
		if run(); x.spy.Total() != want {
			x.Errorf("%d requests, %v; want %d", x.spy.Total(), x.spy.Counts(), want)
		}
	}
	// A session that has looked at a directory lists what other clients have stored since.
	x.run("looked-at-then-listed", func(x *fixture) {
		requests(x, 2+x.requestsFor(markerLooks), func() {
			if _, err := x.StatDir("dir"); err != nil {
				x.Fatal(err)
			}
			x.wantList("dir", "a", "b", "sub/")
		})
		x.putAll("dir/other")
		x.wantList("dir", "a", "b", "other", "sub/")
		x.delete("dir/other")
	})
	x.run("files-not-remembered", func(x *fixture) {
		x.wantList("dir", "a", "b", "sub/")
		requests(x, 1, func() { x.wantSize("dir/a", 0) })
	})
	testMetadataCacheWrites(t, h)
}

// testMetadataCacheWrites writes in each way that there is, by one of two sessions, and looks whether the other knows.
func testMetadataCacheWrites(t *testing.T, h Harness) {
	const size = 6 << 20 // of more than a part
	for _, test := range []struct {
		label string
		write func(x *fixture) error
		want  []string
		size  int64 // of "a"
	}{
		{"nothing", func(*fixture) error { return nil }, []string{"a", "b", "empty/"}, 3},
		{"create", func(x *fixture) error {
			return x.tryWrite("dir/new", nil)
		}, []string{"a", "b", "empty/", "new"}, 3},
		{"replace", func(x *fixture) error { return x.tryWrite("dir/a", random(5)) }, []string{"a", "b", "empty/"}, 5},
		{"by-parts", func(x *fixture) error {
			return x.tryWrite("dir/a", random(size))
		}, []string{"a", "b", "empty/"}, size},
		{"append", func(x *fixture) error { return x.tryAppend("dir/a", random(4)) }, []string{"a", "b", "empty/"}, 7},
		{"mkdir", func(x *fixture) error { return x.Mkdir("dir/new", 0o755) }, []string{"a", "b", "empty/", "new/"}, 3},
		{"remove", func(x *fixture) error { return x.Remove("dir/b") }, []string{"a", "empty/"}, 3},
		{"remove-file", func(x *fixture) error { return x.RemoveFile("dir/a") }, []string{"b", "empty/"}, -1},
		{"remove-dir", func(x *fixture) error { return x.RemoveDir("dir/empty") }, []string{"a", "b"}, 3},
		{"remove-all", func(x *fixture) error { return x.RemoveAll("dir/empty") }, []string{"a", "b"}, 3},
		{"rename", func(x *fixture) error { return x.Rename("dir/a", "dir/c") }, []string{"b", "c", "empty/"}, -1},
		{"rename-directory", func(x *fixture) error {
			return x.Rename("other", "dir/other")
		}, []string{"a", "b", "empty/", "other/"}, 3},
		{"copy", func(x *fixture) error {
			return x.Copy(x.Context(), "dir/b", "dir/c")
		}, []string{"a", "b", "c", "empty/"}, 3},
		{"set-time", func(x *fixture) error {
			return x.Chtimes("dir/a", time.Time{}, time.Unix(1e9, 0))
		}, []string{"a", "b", "empty/"}, 3},
	} {
		t.Run(test.label, func(t *testing.T) {
			x := h.open(t, nil)
			route := driver.NewEndpoint()
			x.Fs = x.session(
				t.Context(), &driver.Options{MetadataCache: driver.NewMetadataCache(time.Hour), Endpoint: route})
			reader := *x
			reader.Fs = x.session(
				t.Context(), &driver.Options{Prefix: "dir/", MetadataCache: driver.NewMetadataCache(time.Hour),
					Endpoint: route})
			x.put("dir/a", random(3))
			x.put("dir/b", nil)
			x.putAll("dir/empty/", "other/file")

			reader.wantList("/", "a", "b", "empty/")
			x.spy.Reset()
			reader.wantSize("a", 3)
			if n := x.spy.Total(); n != 0 {
				t.Errorf("the size of a file that was listed took %d requests", n)
			}
			if err := test.write(x); err != nil {
				t.Fatal(err)
			}
			if test.size < 0 {
				_, err := reader.StatFile("a")
				wantError(t, err, fs.ErrNotExist)
			} else {
				reader.wantSize("a", test.size)
			}
			reader.wantList("/", test.want...)
			if test.label == "set-time" {
				x.wantTimes(&reader)
			}
		})
	}
	t.Run("while-a-listing-is-read", func(t *testing.T) {
		x := h.open(t, &driver.Options{MetadataCache: driver.NewMetadataCache(time.Hour)})
		x.putAll("a", "b", "c")
		entries, err := x.ReadDirSeq("/")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for info, err := range entries {
			if err != nil {
				t.Fatal(err)
			}
			if names = append(names, info.Name()); len(names) == 1 {
				x.write("c", random(10))
			}
		}
		if x.sortUnlessListed(names); !slices.Equal(names, []string{"a", "b", "c"}) {
			t.Errorf("listed are %q", names)
		}
		x.wantSize("c", 10)
	})
	t.Run("failed-upload", func(t *testing.T) {
		x := h.open(t, &driver.Options{MetadataCache: driver.NewMetadataCache(time.Hour)})
		x.put("a", random(3))
		x.wantList("/", "a")
		f := x.openAt("a", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0)
		if _, err := f.Write(random(5)); err != nil {
			t.Fatal(err)
		}
		f.(aborter).Abort(errInterrupted)
		wantError(t, f.Close(), errInterrupted)
		x.wantSize("a", 3)
	})
}

// wantTimes wants the time that was set of a file that was listed before.
func (x *fixture) wantTimes(reader *fixture) {
	x.Helper()
	reader.Fs = x.session(
		x.Context(), &driver.Options{Prefix: "dir/", MetadataCache: driver.NewMetadataCache(time.Hour),
			Objects: driver.Objects{ListSetTimes: true}})
	reader.list("/")
	x.spy.Reset()
	info, err := reader.StatFile("a")
	if err != nil || !info.ModTime().Equal(time.Unix(1e9, 0)) || x.spy.Total() != 0 {
		x.Errorf("%v, %v, by %d requests; want the time that was set", info, err, x.spy.Total())
	}
}

// wantSize wants a file to have so many bytes.
func (x *fixture) wantSize(name string, want int64) {
	x.Helper()
	info, err := x.StatFile(name)
	if err != nil {
		x.Fatal(err)
	}
	if info.Size() != want {
		x.Errorf("%s has %d bytes, want %d", name, info.Size(), want)
	}
}
