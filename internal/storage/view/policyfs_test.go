package view

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"
	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// newStorage is a fresh bucket that holds the file /dir/file and the empty directory /empty.
func newStorage(t *testing.T) *driver.Fs {
	t.Helper()
	s := s3test.Start(t, "embedded")
	storage := drivertest.MustNew(t.Context(), s.Client(), s.Bucket(t), nil)
	if err := afero.WriteFile(storage, "/dir/file", []byte("content"), 0); err != nil {
		t.Fatal(err)
	}
	if err := storage.Mkdir("/empty", 0); err != nil {
		t.Fatal(err)
	}
	return storage
}

func closed(f afero.File, err error) error {
	if err != nil {
		return err
	}
	return f.Close()
}

// policyFSOf is a storage behind a policy of one layer.
func policyFSOf(storage ObjectStorage, rules string) *policyFS {
	return &policyFS{storage: storage, policy: Policy{layer(rules)}, form: norm.NFC.String, Unseen: &Unseen{}}
}

// Each operation works with the permissions it needs and no others, and fails without any one of them. Where it tells
// of what is there the user must also see that, by being allowed to read it or to list it.
func TestPermissions(t *testing.T) {
	now := time.Now()
	for _, tc := range []struct {
		name, needs string
		sees        bool
		do          func(Storage) error
	}{
		{"stat", "", true, func(s Storage) error { _, err := s.Stat("/dir/file"); return err }},
		{"stat-file", "", true, func(s Storage) error { _, err := s.StatFile("/dir/file"); return err }},
		{"stat-dir", "", true, func(s Storage) error { _, err := s.StatDir("/dir"); return err }},
		{"list", "l", false, func(s Storage) error { _, err := s.ReadDirSeq("/dir"); return err }},
		{"open", "r", false, func(s Storage) error { return closed(s.Open("/dir/file")) }},
		{"open-directory", "rl", false, func(s Storage) error { return closed(s.Open("/dir")) }},
		{"open-at", "r", false, func(s Storage) error { return closed(s.OpenAt("/dir/file", os.O_RDONLY, 3)) }},
		{"create", "w", false, func(s Storage) error { return closed(s.Create("/new")) }},
		{"overwrite", "w", false, func(s Storage) error {
			return closed(s.OpenAt("/dir/file", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0))
		}},
		{"append", "w", false, func(s Storage) error {
			return closed(s.OpenFile("/dir/file", os.O_WRONLY|os.O_APPEND, 0))
		}},
		{"resume", "w", true, func(s Storage) error {
			return closed(s.OpenAt("/dir/file", os.O_WRONLY|os.O_CREATE, 3))
		}},
		{"read-and-write", "rw", false, func(s Storage) error {
			return closed(s.OpenFile("/new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0))
		}},
		{"set-time", "w", true, func(s Storage) error { return s.Chtimes("/dir/file", now, now) }},
		{"chmod", "w", true, func(s Storage) error { return supported(s.Chmod("/dir/file", 0)) }},
		{"chown", "w", true, func(s Storage) error { return supported(s.Chown("/dir/file", 0, 0)) }},
		{"remove", "d", false, func(s Storage) error { return s.Remove("/dir/file") }},
		{"remove-file", "d", false, func(s Storage) error { return s.RemoveFile("/dir/file") }},
		{"remove-dir", "d", false, func(s Storage) error { return s.RemoveDir("/empty") }},
		{"remove-all", "d", false, func(s Storage) error { return s.RemoveAll("/dir") }},
		{"rename", "nw", true, func(s Storage) error { return s.Rename("/dir/file", "/moved") }},
		{"copy", "rw", false, func(s Storage) error { return s.Copy(t.Context(), "/dir/file", "/copy") }},
		{"hash", "r", false, func(s Storage) error {
			_, _, err := s.Hash(t.Context(), "/dir/file", "MD5", 0, -1)
			return err
		}},
		{"mkdir", "m", false, func(s Storage) error { return s.Mkdir("/made", 0) }},
		{"mkdir-all", "m", false, func(s Storage) error { return s.MkdirAll("/made/deep", 0) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			storage := newStorage(t)
			refused := func(rules string) {
				t.Helper()
				err := tc.do(policyFSOf(storage, rules))
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
				t.Fatalf("a refused operation did something: %v", err)
			}
			for _, rules := range enough {
				if err := tc.do(policyFSOf(newStorage(t), rules)); err != nil {
					t.Errorf("with %s alone: %v", rules, err)
				}
			}
		})
	}
}

// An operation on a name needs the rights for that name. An operation on a tree needs the rights for all names that
// may be in it.
func TestPathPermissions(t *testing.T) {
	rename := func(from, to string) func(Storage) error {
		return func(s Storage) error { return s.Rename(from, to) }
	}
	duplicate := func(from, to string) func(Storage) error {
		return func(s Storage) error { return s.Copy(t.Context(), from, to) }
	}
	for _, tc := range []struct {
		name, rules string
		do          func(Storage) error
		allowed     bool
	}{
		{"other-directory", "- /dir=r", func(s Storage) error { return closed(s.Open("/dir/file")) }, true},
		{"not-this-directory", "all /dir=lw", func(s Storage) error { return closed(s.Open("/dir/file")) }, false},
		{"this-file", "all /dir/f*=lw", func(s Storage) error { return closed(s.Open("/dir/file")) }, false},
		{"unclean-name", "all /dir=", func(s Storage) error { return closed(s.Open("empty/../dir/file")) }, false},
		{"list-a-file-in-a-directory", "lr /dir/file=r", func(s Storage) error {
			_, err := s.ReadDirSeq("/dir/file")
			if errors.Is(err, fs.ErrNotExist) {
				return nil // no directory, so it may be a file
			}
			return err
		}, true},

		{"remove-all-with-an-exception-below", "all /dir/*.keep=lr", func(s Storage) error {
			return s.RemoveAll("/dir")
		}, false},
		{"remove-all-beside-an-exception", "all /other/keep=lr", func(s Storage) error {
			return s.RemoveAll("/dir")
		}, true},
		{"remove-all-where-it-is-allowed", "lr /dir=lrd", func(s Storage) error { return s.RemoveAll("/dir") }, true},

		{"make-parents-that-are-there", "l /dir/*=m", func(s Storage) error { return s.MkdirAll("/dir/a/b", 0) }, true},
		{"make-parents-that-are-not", "l /new/*=m", func(s Storage) error { return s.MkdirAll("/new/a/b", 0) }, false},

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
			err := tc.do(policyFSOf(newStorage(t), tc.rules))
			if tc.allowed && err != nil || !tc.allowed && !errors.Is(err, fs.ErrPermission) {
				t.Errorf("allowed should be %v: %v", tc.allowed, err)
			}
		})
	}
}

// The user of a drop box learns nothing of what others have stored, and works with what the session has stored itself.
func TestDropBox(t *testing.T) {
	storage := newStorage(t)
	s := policyFSOf(storage, "wnm")
	now := time.Now()
	for name, ask := range map[string]func(name string) error{
		"stat":      func(name string) error { _, err := s.Stat(name); return err },
		"stat-file": func(name string) error { _, err := s.StatFile(name); return err },
		"stat-dir":  func(name string) error { _, err := s.StatDir(name); return err },
		"list":      func(name string) error { _, err := s.ReadDirSeq(name); return err },
		"mkdir":     func(name string) error { return s.Mkdir(name, 0) },
		"mkdir-all": func(name string) error { return s.MkdirAll(name, 0) },
		"set-time":  func(name string) error { return s.Chtimes(name, now, now) },
		"rename":    func(name string) error { return s.Rename(name, "/x") },
		"resume":    func(name string) error { return closed(s.OpenAt(name, os.O_WRONLY|os.O_CREATE, 100)) },
		"read":      func(name string) error { return closed(s.Open(name)) },
		"remove":    func(name string) error { return s.RemoveFile(name) },
	} {
		nothing := ask("/nothing/" + name)
		for _, there := range []string{"/dir/file", "/dir", "/empty"} {
			if err := ask(there); errors.Is(err, fs.ErrPermission) != errors.Is(nothing, fs.ErrPermission) ||
				(err == nil) != (nothing == nil) {
				t.Errorf("%s: %s answers %v, and nothing answers %v", name, there, err, nothing)
			}
		}
	}

	if err := afero.WriteFile(s, "/dir/é.tmp", []byte("mine"), 0); err != nil {
		t.Fatal(err)
	}
	if info, err := s.StatFile("/dir/é.tmp"); err != nil || info.Size() != 4 {
		t.Errorf("the size of what was stored: %v, %v", info, err)
	}
	if _, err := s.StatFile("/dir/é.tmp"); !errors.Is(err, fs.ErrNotExist) { // and then control asks for the other form
		t.Errorf("the other form of its name: %v", err)
	}
	if err := s.Rename("/dir/é.tmp", "/dir/mine"); err != nil {
		t.Errorf("its final name: %v", err)
	}
	if err := s.Chtimes("/dir/mine", now, now); err != nil {
		t.Errorf("its time: %v", err)
	}
	if err := closed(s.Open("/dir/mine")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("its content: %v", err)
	}
	if _, err := policyFSOf(storage, "wnm").StatFile("/dir/mine"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("its size in another session: %v", err)
	}

	failed, err := s.OpenAt("/dir/file", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	failed.(interface{ Abort(error) }).Abort(io.ErrUnexpectedEOF)
	if err := failed.Close(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an aborted upload: %v", err)
	}
	if _, err := s.StatFile("/dir/file"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("an upload that was aborted shows what is there: %v", err)
	}
	for i := range maxStored {
		if err := closed(s.Create(fmt.Sprintf("/many/%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	_, first := s.StatFile("/many/0")
	_, older := s.StatFile("/dir/mine")
	if first != nil || !errors.Is(older, fs.ErrPermission) || len(s.stored) != maxStored {
		t.Errorf("after %d files more: %v, %v, %d known", maxStored, first, older, len(s.stored))
	}
}

// The user of a drop box resumes an interrupted upload, and does not learn by that whether a file of its name exists.
func TestDropBoxResumes(t *testing.T) {
	s3 := s3test.Start(t, "embedded")
	client, bucket := s3.Client(), s3.Bucket(t)
	storage := drivertest.MustNew(t.Context(), client, bucket, &driver.Options{
		PartSize: 5 << 20, Owner: "scanner",
		Journal: driver.NewJournal(
			client, bucket, "", driver.Profile{}, driver.Objects{}, slog.New(slog.NewTextHandler(t.Output(), nil))),
	})
	broken, err := policyFSOf(storage, "-w").OpenAt("/scan", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := broken.Write(make([]byte, 6<<20)); err != nil {
		t.Fatal(err)
	}
	broken.(interface{ Abort(error) }).Abort(io.ErrUnexpectedEOF)
	_ = broken.Close()

	s := policyFSOf(storage, "-w") // of another session
	const flag = os.O_WRONLY | os.O_CREATE
	if _, err := s.OpenAt("/scan", flag, 3); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("resuming at the offset of a file: %v", err)
	}
	info, err := s.PendingUpload("/scan")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.StatFile("/scan"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("asking for a file: %v", err)
	}
	if _, err := s.OpenAt("/scan", flag, 3); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("resuming elsewhere: %v", err)
	}
	f, err := s.OpenAt("/scan", flag, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("end")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := s.StatFile("/scan"); err != nil || got.Size() != info.Size()+3 {
		t.Errorf("what was stored: %v, %v", got, err)
	}
	if _, err := policyFSOf(storage, "lr").PendingUpload("/scan"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an upload of who may not write: %v", err)
	}
}

// Directories exist for who does not see them in the form in which they would be made, so that nothing is made in
// another. One that nothing can have does not.
func TestUnseenDirectories(t *testing.T) {
	s := policyFSOf(newStorage(t), "- /in/*=w")
	for name, want := range map[string]error{
		"/": nil, "/in": nil, "/in/any": nil, "/in/café": nil, "/in/café": fs.ErrNotExist, "/dir": fs.ErrPermission,
		"/other":        fs.ErrPermission,
		"/in/.babelftp": fs.ErrNotExist, "/in/any/.babelftp/uploads": fs.ErrNotExist,
		"/in/" + strings.Repeat("x", 1024): fs.ErrNotExist,
	} {
		if info, err := s.StatDir(name); !errors.Is(err, want) || err == nil && !info.IsDir() {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

// supported drops the error of what S3 has nothing for: it was let through.
func supported(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// The files of a guarded storage are the driver's own, so that they keep the methods that move data fast and abort
// uploads.
func TestPolicyFilesKeepTheirMethods(t *testing.T) {
	s := policyFSOf(newStorage(t), "all")
	upload, err := s.OpenAt("/new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	aborter, ok := upload.(interface{ Abort(error) })
	if !ok {
		t.Fatal("an upload has no Abort")
	}
	aborter.Abort(io.ErrUnexpectedEOF)
	if err := upload.Close(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Close: %v", err)
	}
	if _, err := s.StatFile("/new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the aborted upload is there: %v", err)
	}
}

// What the driver opens is what the layers embed. ALLO reaches it from a user who sees no names, because S3 servers
// that want equal parts must know the size of a large file before its first part.
func TestFilesOfTheDriver(t *testing.T) {
	storage := newStorage(t)
	reading, err := storage.OpenAt("/dir/file", os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	if _, ok := reading.(Aborter); !ok {
		t.Errorf("%T cannot be aborted", reading)
	}
	writing, err := storage.OpenAt("/dir/new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writing.Close()
	if _, ok := writing.(Upload); !ok {
		t.Errorf("%T is no Upload", writing)
	}

	announced := &announcedStorage{ObjectStorage: storage}
	blind := NewPolicyFS(announced, Policy{NewLayer(Rights{Write: true}, nil)}, func(name string) string {
		return name
	}, &Unseen{})
	file, err := blind.OpenAt("/dir/blind", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	file.(Upload).Announce(12345)
	if announced.size != 12345 {
		t.Errorf("the driver hears of %d bytes", announced.size)
	}
}

// announcedStorage keeps the size that a client has announced.
type announcedStorage struct {
	ObjectStorage
	size int64
}

func (s *announcedStorage) OpenAt(name string, flag int, offset int64) (afero.File, error) {
	file, err := s.ObjectStorage.OpenAt(name, flag, offset)
	if err != nil {
		return nil, err
	}
	return announcedFile{file.(Upload), s}, nil
}

type announcedFile struct {
	Upload
	storage *announcedStorage
}

func (f announcedFile) Announce(size int64) { f.storage.size = size }
