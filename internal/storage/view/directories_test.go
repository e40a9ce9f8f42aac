package view

import (
	"errors"
	"io/fs"
	"strconv"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// The home and its parents exist without an object, and so does nothing else. Existing files and directories take
// precedence.
func TestHome(t *testing.T) {
	storage := newStorage(t)
	h := filesOf(t, storage, NewDirectories("/teams/alice"))
	for _, tc := range []struct {
		name  string
		there bool
	}{
		{"/", true},
		{"/teams", true},
		{"/teams/", true},
		{"/teams/alice", true},
		{"/dir", true},
		{"/teams/alice/inner", false},
		{"/teams/al", false},
		{"/team", false},
		{"/other", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			info, err := h.StatDir(tc.name)
			if there := err == nil; there != tc.there || there && !info.IsDir() {
				t.Errorf("StatDir: %v, %v", info, err)
			}
			if _, err = h.Stat(tc.name); (err == nil) != tc.there {
				t.Errorf("Stat: %v", err)
			}
			entries, err := h.List(tc.name)
			if (err == nil) != tc.there || !tc.there && !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("List: %v", err)
			}
			if tc.there && tc.name != "/" && tc.name != "/dir" {
				for info, err := range entries {
					t.Errorf("empty directory: got %v, %v", info, err)
				}
			}
		})
	}
	must.OK(t, write(h, "/teams/alice/file", "content"))
	names, err := readDirNames(h, "/teams/alice")
	must.OK(t, err)
	if len(names) != 1 || names[0] != "file" {
		t.Errorf("home: got entries %q", names)
	}
}

// A directory that a session has seen exists for the session until the session removes it. What exists in S3 takes
// precedence.
func TestVanishedDirectory(t *testing.T) {
	storage := newStorage(t)
	put := func(name string) {
		t.Helper()
		must.OK(t, write(filesOf(t, storage, NewDirectories("/")), name, "content"))
	}
	remove := func(name string) { // as another session
		t.Helper()
		must.OK(t, storage.RemoveFile(name))
	}
	for name, see := range map[string]func(f *Files) error{
		"CWD":        func(f *Files) error { _, err := f.StatDir("/a/b"); return err },
		"MLST":       func(f *Files) error { _, err := f.Stat("/a/b"); return err },
		"SIZE":       func(f *Files) error { _, err := f.StatFile("/a/b/file"); return err },
		"MLSD":       func(f *Files) error { _, err := f.List("/a/b"); return err },
		"MLSD-above": func(f *Files) error { _, err := readDirNames(f, "/a"); return err },
		"RETR": func(f *Files) error {
			file, err := f.OpenReader("/a/b/file", 0)
			if err == nil {
				err = file.Close()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			put("/a/b/file")
			known := NewDirectories("/")
			f := filesOf(t, storage, known)
			must.OK(t, see(f))
			remove("/a/b/file")
			for _, dir := range []string{"/a/b", "/a"} {
				info, err := f.StatDir(dir)
				if err != nil || !info.IsDir() {
					t.Errorf("StatDir %s: %v, %v", dir, info, err)
				}
				if names, err := readDirNames(f, dir); err != nil || len(names) > 0 {
					t.Errorf("List %s: %q, %v", dir, names, err)
				}
			}

			put("/a/b") // now a file has the name
			if _, err := f.StatDir("/a/b"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("StatDir of a file: %v", err)
			}
			if err := f.RemoveDir("/a/b"); !errors.Is(err, syscall.ENOTDIR) {
				t.Errorf("RemoveDir of a file: %v", err)
			}
			must.OK(t, f.RemoveFile("/a/b"))
			if err := f.RemoveDir("/a"); err != nil {
				t.Errorf("RemoveDir: %v", err)
			}
			if err := f.RemoveDir("/a"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("RemoveDir again: %v", err)
			}
			if _, err := f.Stat("/a"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Stat after RemoveDir: %v", err)
			}
		})
	}
}

// A session removes a tree without markers from its leaves, or moves the files out of it, without having seen the
// directories before.
func TestRemoveTreeWithoutMarkers(t *testing.T) {
	storage := newStorage(t)
	for name, removeFile := range map[string]func(f *Files) error{
		"DELE": func(f *Files) error { return f.RemoveFile("/x/y/file") },
		"RNTO": func(f *Files) error { return f.Rename("/x/y/file", "/moved") },
	} {
		t.Run(name, func(t *testing.T) {
			must.OK(t, write(filesOf(t, storage, NewDirectories("/")), "/x/y/file", "content"))
			f := filesOf(t, storage, NewDirectories("/"))
			if err := f.RemoveDir("/x/y"); !errors.Is(err, syscall.ENOTEMPTY) {
				t.Errorf("RemoveDir of a directory with a file: %v", err)
			}
			must.OK(t, removeFile(f))
			for _, dir := range []string{"/x/y", "/x"} {
				if err := f.RemoveDir(dir); err != nil {
					t.Errorf("RemoveDir %s: %v", dir, err)
				}
				if err := f.RemoveDir(dir); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("RemoveDir %s again: %v", dir, err)
				}
			}
		})
	}
}

// Sessions remember at least the last maxSeen directories, and at most twice as many.
func TestManyDirectories(t *testing.T) {
	known := NewDirectories("/")
	name := func(n int) string { return "/" + strconv.Itoa(n) }
	for n := range 5 * maxSeen {
		known.see(name(n))
		if held := len(known.recent) + len(known.older); held > 2*maxSeen {
			t.Fatalf("got %d remembered directories", held)
		}
	}
	for n := 4 * maxSeen; n < 5*maxSeen; n++ {
		if seen, _ := known.seen(name(n)); !seen {
			t.Fatalf("directory %d was forgotten", n)
		}
	}
	if seen, _ := known.seen("/0"); seen {
		t.Error("the first directory was not forgotten")
	}
}

// The sessions of a user share what they know, because a client may use several connections. If one session removes or
// renames a directory, it is gone for all of them, with its contents.
func TestDirectoriesOfSeveralSessions(t *testing.T) {
	storage := newStorage(t)
	known := NewDirectories("/")
	one, other := filesOf(t, storage, known), filesOf(t, storage, known)
	for _, name := range []string{"/a/b/c/file", "/x/y/file"} {
		must.OK(t, write(one, name, "content"))
	}
	for _, dir := range []string{"/a/b/c", "/x/y"} {
		if _, err := one.StatDir(dir); err != nil {
			t.Fatal(err)
		}
	}

	must.OK(t, other.Rename("/a/b", "/moved"))
	for _, dir := range []string{"/a/b", "/a/b/c"} {
		if _, err := one.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Stat %s after RNTO: %v", dir, err)
		}
		if _, err := one.StatDir(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("StatDir %s after RNTO: %v", dir, err)
		}
	}
	if info, err := one.Stat("/a"); err != nil || !info.IsDir() {
		t.Errorf("Stat of the directory above after RNTO: %v, %v", info, err)
	}

	must.OK(t, other.RemoveFile("/x/y/file"))
	if info, err := one.Stat("/x/y"); err != nil || !info.IsDir() {
		t.Errorf("Stat after DELE: %v, %v", info, err)
	}
	if err := one.RemoveDir("/x/y"); err != nil {
		t.Errorf("RemoveDir after DELE: %v", err)
	}
	if _, err := other.StatDir("/x/y"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("StatDir after RMD: %v", err)
	}
}

// Clients send MLST to check whether a directory exists before they create it. A directory that another user has
// removed must not be found.
func TestDirectoryThatAnotherUserRemoved(t *testing.T) {
	storage := newStorage(t)
	must.OK(t, storage.Mkdir("/d", 0o755))
	f := filesOf(t, storage, NewDirectories("/"))
	if _, err := f.StatDir("/d"); err != nil {
		t.Fatal(err)
	}
	must.OK(t, storage.RemoveDir("/d"))
	if _, err := f.Stat("/d"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat: %v", err)
	}
	if _, err := f.StatDir("/d"); err != nil { // a session whose working directory it is can still leave it
		t.Errorf("StatDir: %v", err)
	}
	if err := f.Mkdir("/d"); err != nil {
		t.Errorf("Mkdir: %v", err)
	}
}

// The directories that sessions have seen are forgotten when the last session ends.
func TestDirectoriesWithoutSessions(t *testing.T) {
	known := NewDirectories("/")
	endOne, endOther := known.BeginSession(), known.BeginSession()
	known.see("/d")
	endOne()
	if seen, _ := known.seen("/d"); !seen {
		t.Error("the directory was forgotten during a session")
	}
	endOther()
	if seen, _ := known.seen("/d"); seen {
		t.Error("the directory was not forgotten")
	}
}

func readDirNames(f *Files, dir string) (names []string, err error) {
	entries, err := f.List(dir)
	if err != nil {
		return nil, err
	}
	for info, err := range entries {
		if err != nil {
			return nil, err
		}
		names = append(names, info.Name())
	}
	return names, nil
}
