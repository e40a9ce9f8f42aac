package view

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// Each operation needs exactly these permissions, and fails without any one of them. If its result reveals whether a
// file exists, the user must also be allowed to read or list the file.
func TestPermissions(t *testing.T) {
	now := time.Now()
	for _, tc := range []struct {
		name, needs string
		sees        bool
		do          func(*Files) error
	}{
		{"stat", "", true, func(s *Files) error { _, err := s.Stat("/dir/file"); return err }},
		{"stat-file", "", true, func(s *Files) error { _, err := s.StatFile("/dir/file"); return err }},
		{"stat-dir", "", true, func(s *Files) error { _, err := s.StatDir("/dir"); return err }},
		{"list", "l", false, func(s *Files) error { _, err := s.List("/dir"); return err }},
		{"open", "r", false, func(s *Files) error { return closed(s.OpenReader("/dir/file", 0)) }},
		{"open-at", "r", false, func(s *Files) error { return closed(s.OpenReader("/dir/file", 3)) }},
		{"create", "w", false, func(s *Files) error { return write(s, "/new", "") }},
		{"overwrite", "w", false, func(s *Files) error { return write(s, "/dir/file", "") }},
		{"append", "w", false, func(s *Files) error {
			return closed(s.OpenWriter("/dir/file", os.O_APPEND, 0))
		}},
		{"resume", "w", true, func(s *Files) error { return closed(s.OpenWriter("/dir/file", os.O_CREATE, 3)) }},
		{"set-time", "w", true, func(s *Files) error { return s.SetTime("/dir/file", now) }},
		{"remove-file", "d", false, func(s *Files) error { return s.RemoveFile("/dir/file") }},
		{"remove-dir", "d", false, func(s *Files) error { return s.RemoveDir("/empty") }},
		{"remove-all", "d", false, func(s *Files) error { return s.RemoveAll("/dir") }},
		{"rename", "nw", true, func(s *Files) error { return s.Rename("/dir/file", "/moved") }},
		{"copy", "rw", false, func(s *Files) error { return s.Copy("/dir/file", "/copy") }},
		{"hash", "r", false, func(s *Files) error {
			_, _, err := s.Hash("/dir/file", "MD5", 0, -1)
			return err
		}},
		{"mkdir", "m", false, func(s *Files) error { return s.Mkdir("/made") }},
		{"mkdir-all", "m", false, func(s *Files) error { return s.MkdirAll("/made/deep") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			storage := newStorage(t)
			refused := func(rules string) {
				t.Helper()
				err := tc.do(guarded(t, storage, rules))
				var pathErr *fs.PathError
				if !errors.Is(err, fs.ErrPermission) || !errors.As(err, &pathErr) {
					t.Errorf("with %s: %v", rules, err)
				}
			}
			for _, missing := range strings.Split(tc.needs, "") {
				refused("-" + strings.ReplaceAll("lrwdnm", missing, ""))
			}
			enough := []string{"-" + tc.needs}
			if tc.sees {
				refused("-" + tc.needs)
				enough = []string{"-r" + tc.needs, "-l" + tc.needs}
			}
			if _, err := storage.StatFile("/dir/file"); err != nil {
				t.Fatalf("a refused operation had an effect: %v", err)
			}
			for _, rules := range enough {
				if err := tc.do(guarded(t, newStorage(t), rules)); err != nil {
					t.Errorf("with only %s: %v", rules, err)
				}
			}
		})
	}
}

// An operation on a name needs the rights for that name. An operation on a tree needs the rights for all names that
// may be in it.
func TestPathPermissions(t *testing.T) {
	rename := func(from, to string) func(*Files) error {
		return func(s *Files) error { return s.Rename(from, to) }
	}
	duplicate := func(from, to string) func(*Files) error {
		return func(s *Files) error { return s.Copy(from, to) }
	}
	for _, tc := range []struct {
		name, rules string
		do          func(*Files) error
		allowed     bool
	}{
		{"other-directory", "- /dir=r", func(s *Files) error { return closed(s.OpenReader("/dir/file", 0)) }, true},
		{"not-this-directory", "all /dir=lw", func(s *Files) error { return closed(s.OpenReader("/dir/file", 0)) }, false},
		{"this-file", "all /dir/f*=lw", func(s *Files) error { return closed(s.OpenReader("/dir/file", 0)) }, false},
		{"unclean-name", "all /dir=", func(s *Files) error { return closed(s.OpenReader("empty/../dir/file", 0)) }, false},
		{"list-a-file-in-a-directory", "lr /dir/file=r", func(s *Files) error {
			_, err := s.List("/dir/file")
			if errors.Is(err, fs.ErrNotExist) {
				return nil // not a directory, so it may be a file
			}
			return err
		}, true},

		{"remove-all-with-an-exception-below", "all /dir/*.keep=lr", func(s *Files) error {
			return s.RemoveAll("/dir")
		}, false},
		{"remove-all-beside-an-exception", "all /other/keep=lr", func(s *Files) error {
			return s.RemoveAll("/dir")
		}, true},
		{"remove-all-where-it-is-allowed", "lr /dir=lrd", func(s *Files) error { return s.RemoveAll("/dir") }, true},

		{"make-parents-that-are-there", "l /dir/*=m", func(s *Files) error { return s.MkdirAll("/dir/a/b") }, true},
		{"make-parents-that-are-not", "l /new/*=m", func(s *Files) error { return s.MkdirAll("/new/a/b") }, false},

		{"rename-into-what-may-not-be-written", "all /in=lrdnm", rename("/dir/file", "/in/file"), false},
		{"rename-out-of-what-may-not-be-renamed", "all /dir=lrwdm", rename("/dir/file", "/file"), false},
		{"rename-to-where-it-may-be-read", "lrwdn /dir=lwdn", rename("/dir/file", "/file"), false},
		{"rename-to-where-it-may-be-deleted", "lrwdn /dir=lrwn", rename("/dir/file", "/file"), false},
		{"rename-to-where-less-is-allowed", "lrwdn /done=lw", rename("/dir/file", "/done/file"), true},
		{"rename-within", "- /dir=lwn", rename("/dir/file", "/dir/other"), true},
		{"rename-a-tree", "all /other/keep=lr", rename("/dir", "/moved"), true},
		{"rename-a-tree-with-an-exception-below", "all /dir/keep=lr", rename("/dir", "/moved"), false},
		{"rename-a-tree-with-more-rights-below", "lrwdn /dir/more=lrwdnm", rename("/dir", "/moved"), true},
		{"rename-a-tree-over-an-exception", "all /moved/keep=lr", rename("/dir", "/moved"), false},
		{"rename-a-tree-over-more-rights", "lwdn /moved/open=lrwdn", rename("/dir", "/moved"), false},
		{"rename-a-tree-to-where-its-names-are-listed", "all /dir=wdn", rename("/dir", "/moved"), false},
		{"rename-a-tree-to-an-unseen-name", "all /moved=wn", rename("/dir", "/moved/dir"), false},
		{"rename-a-file-to-an-unseen-name", "all /moved=wn", rename("/dir/file", "/moved/file"), true},
		{"copy-a-tree-to-where-its-names-are-listed", "all /dir=r", duplicate("/dir", "/copy"), false},
		{"copy-a-tree-to-an-unseen-name", "all /copy=w", duplicate("/dir", "/copy/dir"), false},
		{"rename-a-file-over-an-exception", "all /*/keep=lr", rename("/dir/file", "/moved"), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.do(guarded(t, newStorage(t), tc.rules))
			if tc.allowed && err != nil || !tc.allowed && !errors.Is(err, fs.ErrPermission) {
				t.Errorf("want allowed = %v, got error %v", tc.allowed, err)
			}
		})
	}
}

// An existing parent is found in either Unicode form, even if the user may not create it.
func TestParentsInEitherForm(t *testing.T) {
	for _, parent := range []string{"/caf\u00e9", "/cafe\u0301"} {
		storage := newStorage(t)
		storage.fill(t, parent[1:]+"/file")
		if err := guarded(t, storage, "l /caf\u00e9/*=m").MkdirAll(parent + "/a/b"); err != nil {
			t.Error(err)
		}
	}
}

// The user of a drop box learns nothing about the files of others, but can work with files that the session itself
// stored.
func TestDropBox(t *testing.T) {
	storage := newStorage(t)
	s := guarded(t, storage, "wnm")
	now := time.Now()
	for name, ask := range map[string]func(name string) error{
		"stat":      func(name string) error { _, err := s.Stat(name); return err },
		"stat-file": func(name string) error { _, err := s.StatFile(name); return err },
		"stat-dir":  func(name string) error { _, err := s.StatDir(name); return err },
		"list":      func(name string) error { _, err := s.List(name); return err },
		"mkdir":     func(name string) error { return s.Mkdir(name) },
		"mkdir-all": func(name string) error { return s.MkdirAll(name) },
		"set-time":  func(name string) error { return s.SetTime(name, now) },
		"rename":    func(name string) error { return s.Rename(name, "/x") },
		"resume":    func(name string) error { return closed(s.OpenWriter(name, os.O_CREATE, 100)) },
		"read":      func(name string) error { return closed(s.OpenReader(name, 0)) },
		"remove":    func(name string) error { return s.RemoveFile(name) },
	} {
		nothing := ask("/nothing/" + name)
		for _, there := range []string{"/dir/file", "/dir", "/empty"} {
			if err := ask(there); errors.Is(err, fs.ErrPermission) != errors.Is(nothing, fs.ErrPermission) ||
				(err == nil) != (nothing == nil) {
				t.Errorf("%s: %s returned %v, but a missing name returned %v", name, there, err, nothing)
			}
		}
	}

	must.OK(t, write(s, "/dir/é.tmp", "mine"))
	if info, err := s.StatFile("/dir/é.tmp"); err != nil || info.Size() != 4 {
		t.Errorf("size of the stored file: %v, %v", info, err)
	}
	if _, err := s.StatFile("/dir/é.tmp"); !errors.Is(err, fs.ErrNotExist) { // control then tries the other form
		t.Errorf("other normalization form of the name: %v", err)
	}
	if err := s.Rename("/dir/é.tmp", "/dir/mine"); err != nil {
		t.Errorf("final name: %v", err)
	}
	if err := s.SetTime("/dir/mine", now); err != nil {
		t.Errorf("SetTime: %v", err)
	}
	if err := closed(s.OpenReader("/dir/mine", 0)); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("OpenReader: %v", err)
	}
	if _, err := guarded(t, storage, "wnm").StatFile("/dir/mine"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("size in another session: %v", err)
	}

	failed, err := s.OpenWriter("/dir/file", os.O_CREATE|os.O_TRUNC, 0)
	must.OK(t, err)
	failed.Abort(io.ErrUnexpectedEOF)
	if err := failed.Close(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("aborted upload: %v", err)
	}
	if _, err := s.StatFile("/dir/file"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("an aborted upload shows the existing file: %v", err)
	}
	for i := range maxStored {
		must.OK(t, write(s, fmt.Sprintf("/many/%d", i), ""))
	}
	_, first := s.StatFile("/many/0")
	_, older := s.StatFile("/dir/mine")
	if first != nil || !errors.Is(older, fs.ErrPermission) || len(s.unseen.stored) != maxStored {
		t.Errorf("after %d more files: got %v, %v, %d known", maxStored, first, older, len(s.unseen.stored))
	}
}

// The user of a drop box resumes an interrupted upload, which does not reveal whether a file with this name exists.
func TestDropBoxResumes(t *testing.T) {
	s3 := s3test.Start(t, "sim-aws")
	client, name := s3.Client(), s3.Bucket(t)
	storage := storage{&bucket{name, client}, drivertest.MustNew(t.Context(), client, name, &driver.Options{
		PartSize: 5 << 20, Owner: "scanner",
		Journal: driver.NewEndpoint().NewJournal(
			client, name, "", driver.Profile{}, driver.Objects{}, slog.New(slog.NewTextHandler(t.Output(), nil))),
	})}
	broken, err := guarded(t, storage, "-w").OpenWriter("/scan", os.O_CREATE|os.O_TRUNC, 0)
	must.OK(t, err)
	if _, err := broken.Write(make([]byte, 6<<20)); err != nil {
		t.Fatal(err)
	}
	broken.Abort(io.ErrUnexpectedEOF)
	_ = broken.Close()

	s := guarded(t, storage, "-w") // files of another session
	const flag = os.O_CREATE
	if _, err := s.OpenWriter("/scan", flag, 3); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("resuming at the offset of a file: %v", err)
	}
	info, err := s.PendingUpload("/scan")
	must.OK(t, err)
	if _, err := s.StatFile("/scan"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("PendingUpload of a file: %v", err)
	}
	if _, err := s.OpenWriter("/scan", flag, 3); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("resuming elsewhere: %v", err)
	}
	f, err := s.OpenWriter("/scan", flag, info.Size())
	must.OK(t, err)
	must.Write(t, f, "end")
	must.OK(t, f.Close())
	if got, err := s.StatFile("/scan"); err != nil || got.Size() != info.Size()+3 {
		t.Errorf("stored file: %v, %v", got, err)
	}
	if _, err := guarded(t, storage, "lr").PendingUpload("/scan"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("PendingUpload without the right to write: %v", err)
	}
}

// A directory that the user cannot see exists in the normalization form in which it would be created, so that nothing
// is created in another form. A name that is invalid as a key does not exist.
func TestUnseenDirectories(t *testing.T) {
	s := guarded(t, newStorage(t), "- /in/*=w")
	for name, want := range map[string]error{
		"/": nil, "/in": nil, "/in/any": nil, "/in/café": nil, "/in/café": fs.ErrNotExist, "/dir": fs.ErrPermission,
		"/other":        fs.ErrPermission,
		"/in/.babelftp": fs.ErrNotExist, "/in/any/.babelftp/uploads": fs.ErrNotExist,
		"/in/" + strings.Repeat("x", 1024): fs.ErrNotExist,
	} {
		if info, err := s.StatDir(name); !errors.Is(err, want) || err == nil && !info.IsDir() {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
}

// The size in ALLO reaches the driver even if the user cannot see names, because S3 servers that require equal parts
// need the size of a large file before its first part.
func TestAnnounceUnseen(t *testing.T) {
	announced := &announcedStore{Store: NewStore(newStorage(t).Driver)}
	v := &View{
		Mounts: NewMounts(Mount{Dir: "/", Store: announced}), Directories: NewDirectories("/"),
		Policy: Policy{NewLayer(Rights{Write: true}, nil)},
	}
	file, err := v.For(t.Context(), nil).OpenWriter("/dir/blind", os.O_CREATE|os.O_TRUNC, 0)
	must.OK(t, err)
	defer file.Close()
	file.Announce(12345)
	if announced.size != 12345 {
		t.Errorf("got announced size %d", announced.size)
	}
}

// announcedStore records the size that a client announces.
type announcedStore struct {
	Store
	size int64
}

func (s *announcedStore) OpenWriter(
	ctx context.Context, name string, flag int, offset int64, sum *[sha256.Size]byte,
) (Writer, error) {
	file, err := s.Store.OpenWriter(ctx, name, flag, offset, sum)
	if err != nil {
		return nil, err
	}
	return announcedFile{file, s}, nil
}

type announcedFile struct {
	Writer
	store *announcedStore
}

func (f announcedFile) Announce(size int64) { f.store.size = size }

// An existing name with a control character can be read, renamed and removed.
func TestPrintable(t *testing.T) {
	storage := newStorage(t)
	s := (&View{Mounts: at(storage), Directories: NewDirectories("/"), Printable: true}).For(t.Context(), nil)
	const old = "/dir/old\nname"
	(&bucket{storage.name, storage.client}).fill(t, old[1:])
	if content, err := read(s, old); err != nil || content != old[1:] {
		t.Errorf("got %q, %v", content, err)
	}
	if err := s.Rename(old, "/dir/Zoë\u202e"); err != nil {
		t.Error(err)
	}
	if err := s.RemoveFile("/dir/Zoë\u202e"); err != nil {
		t.Error(err)
	}
}
