package view

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/s3error"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// boxed returns the files of a user whose new files in /box get numbered objects, and the notes of the operations.
func boxed(t *testing.T, s storage, rules string) (*Files, *[]Note) {
	t.Helper()
	n := 0
	key := func(_ context.Context, name string, _ driver.Origin) string {
		if _, ok := Within(name, "/box"); !ok || name == "/box" {
			return ""
		}
		n++
		return fmt.Sprintf("/box/k=%d/%s", n, path.Base(name))
	}
	var notes []Note
	return (&View{
		Mounts:      NewMounts(Mount{Dir: "/", Store: NewStore(s.Driver), Key: key}),
		Directories: NewDirectories("/"), Policy: Policy{layer(rules)}, Form: norm.NFC.String,
	}).For(t.Context(), func(n Note) { notes = append(notes, n) }), &notes
}

// promised writes a file with this content, which must have the hash of want.
func promised(f *Files, name, want, content string) error {
	sum := sha256.Sum256([]byte(want))
	f.SHA256 = &sum
	defer func() { f.SHA256 = nil }()
	return write(f, name, content)
}

func TestKeysOfUploads(t *testing.T) {
	now := time.Now()
	for _, tc := range []struct {
		name string
		do   func(f *Files) error
		err  error
		want string // objects below box/
	}{
		{"twice", func(f *Files) error { return errors.Join(write(f, "/box/a", "1"), write(f, "/box/a", "2")) }, nil,
			"k=N/a k=N/a"},
		{"directory", func(f *Files) error { return write(f, "/box/x/y/a", "1") }, nil, "k=N/a"},
		{"append", func(f *Files) error {
			return closed(f.OpenWriter("/box/a", os.O_CREATE|os.O_APPEND, 0))
		}, fs.ErrPermission, ""},
		{"append-to-own", func(f *Files) error {
			return errors.Join(write(f, "/box/a", "1"), closed(f.OpenWriter("/box/a", os.O_CREATE|os.O_APPEND, 0)))
		}, fs.ErrPermission, "k=N/a"},
		{"resume", func(f *Files) error { return closed(f.OpenWriter("/box/a", os.O_CREATE, 3)) }, fs.ErrPermission, ""},
		{"resume-own", func(f *Files) error {
			return errors.Join(write(f, "/box/a", "12345"), closed(f.OpenWriter("/box/a", os.O_CREATE, 3)))
		}, fs.ErrPermission, "k=N/a"},
		{"pending", func(f *Files) error { _, err := f.PendingUpload("/box/a"); return err }, fs.ErrNotExist, ""},
		{"aborted", func(f *Files) error {
			w, err := f.OpenWriter("/box/a", os.O_CREATE|os.O_TRUNC, 0)
			must.OK(t, err)
			must.Write(t, w, "1")
			w.Abort(fs.ErrClosed)
			return w.Close()
		}, fs.ErrClosed, ""},
		{"promise", func(f *Files) error { return promised(f, "/box/a", "1", "1") }, nil, "k=N/a"},
		{"promise-broken", func(f *Files) error { return promised(f, "/box/a", "1", "2") }, s3error.ErrHashMismatch, ""},
		{"stat-other", func(f *Files) error { _, err := f.StatFile("/box/a"); return err }, fs.ErrPermission, ""},
		{"stat-own", func(f *Files) error {
			must.OK(t, write(f, "/box/a", "1"))
			must.OK(t, write(f, "/box/a", "333"))
			info, err := f.StatFile("/box/a")
			if err == nil && info.Size() != 3 {
				return fmt.Errorf("the size is %d", info.Size())
			}
			return err
		}, nil, "k=N/a k=N/a"},
		{"stat-object", func(f *Files) error {
			must.OK(t, write(f, "/box/a", "1"))
			object := f.resolve("/box/a").inner
			_, err := f.StatFile(object)
			return errors.Join(err, f.Rename(object, "/box/b"))
		}, nil, "k=N/b"},
		{"read-own", func(f *Files) error {
			return errors.Join(write(f, "/box/a", "1"), closed(f.OpenReader("/box/a", 0)))
		}, fs.ErrPermission, "k=N/a"},
		{"set-time", func(f *Files) error {
			return errors.Join(write(f, "/box/a", "1"), f.SetTime("/box/a", now))
		}, nil, "k=N/a"},
		{"remove-own", func(f *Files) error {
			return errors.Join(write(f, "/box/a", "1"), f.RemoveFile("/box/a"))
		}, nil, ""},
		{"remove-twice", func(f *Files) error {
			return errors.Join(write(f, "/box/a", "1"), f.RemoveFile("/box/a"), f.RemoveFile("/box/a"))
		}, fs.ErrNotExist, ""},
		{"remove-other", func(f *Files) error { return f.RemoveFile("/box/a") }, fs.ErrNotExist, ""},
		{"rename-own", func(f *Files) error {
			must.OK(t, write(f, "/box/a.part", "1"))
			must.OK(t, f.Rename("/box/a.part", "/box/a"))
			_, err := f.StatFile("/box/a")
			return err
		}, nil, "k=N/a"},
		{"rename-over-own", func(f *Files) error {
			must.OK(t, write(f, "/box/a", "1"))
			must.OK(t, write(f, "/box/b", "2"))
			return f.Rename("/box/b", "/box/a")
		}, nil, "k=N/a k=N/a"},
		{"rename-other", func(f *Files) error { return f.Rename("/box/a", "/box/b") }, fs.ErrPermission, ""},
		{"move-into", func(f *Files) error { return f.Rename("/dir/file", "/box/file") }, nil, "k=N/file"},
		{"copy-into", func(f *Files) error { return f.Copy("/dir/file", "/box/file") }, nil, "k=N/file"},
		{"move-directory-into", func(f *Files) error { return f.Rename("/dir", "/box/dir") }, fs.ErrPermission, ""},
		{"move-directory-onto-own", func(f *Files) error {
			return errors.Join(write(f, "/box/a", "1"), f.Rename("/dir", "/box/a"))
		}, fs.ErrPermission, "k=N/a"},
		{"make-directory", func(f *Files) error {
			must.OK(t, f.Mkdir("/box/x"))
			must.OK(t, f.MkdirAll("/box/x/y"))
			if _, err := f.StatDir("/box/x/y"); err != nil {
				return err
			}
			must.OK(t, f.Mkdir("/box/z/"))
			return errors.Join(f.RemoveDir("/box/x/y"), f.RemoveDir("/box/x/"))
		}, nil, ""},
		{"the-directory-itself", func(f *Files) error { return f.Mkdir("/box") }, nil, "marker"},
		{"slash", func(f *Files) error { return write(f, "/box/x/", "1") }, syscall.EISDIR, ""},
		{"rename-to-slash", func(f *Files) error {
			return errors.Join(write(f, "/box/a", "1"), f.Rename("/box/a", "/box/x/"))
		}, syscall.ENOTDIR, "k=N/a"},
		{"reserved", func(f *Files) error { return write(f, "/box/.babelftp/a", "1") }, nil, "k=N/a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStorage(t)
			f, _ := boxed(t, s, "lrwdnm /box=wdnm")
			if err := tc.do(f); !errors.Is(err, tc.err) {
				t.Errorf("got %v, want %v", err, tc.err)
			}
			var got []string
			for _, key := range s3test.Objects(t, s.client, s.name) {
				if rest, ok := strings.CutPrefix(key, "box/"); ok {
					got = append(got, cmp.Or(strings.Map(func(r rune) rune {
						if r >= '0' && r <= '9' {
							return 'N'
						}
						return r
					}, rest), "marker"))
				}
			}
			if text := strings.Join(got, " "); text != tc.want {
				t.Errorf("the objects are %q, want %q", text, tc.want)
			}
		})
	}
}

// Notes have the name that the user sent, and the object.
func TestNotesOfKeys(t *testing.T) {
	s := newStorage(t)
	f, notes := boxed(t, s, "-wn")
	must.OK(t, write(f, "/box/é", "1"))
	must.OK(t, f.Rename("/box/é", "/box/b"))
	got := *notes
	if len(got) != 2 || got[0].Path != "/box/é" || got[0].Object == "" || got[0].URI != s.Driver.URI(got[0].Object) ||
		got[1].URI != got[0].URI || got[1].To != "/box/b" || !strings.HasSuffix(got[1].ToURI, "/b") ||
		got[1].ToURI == f.URI("/box")+"/b" {
		t.Errorf("got %+v", got)
	}
}
