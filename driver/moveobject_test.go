package driver_test

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// TestMoveObject moves the file "old" or the marker "dir/" while another client works on the same names, or after an
// attempt that ended between the copy and the delete. Nothing may be lost or replaced.
func TestMoveObject(t *testing.T) {
	t.Parallel()
	type files map[string]string // content by name
	for name, tc := range map[string]struct {
		first    bool     // an earlier attempt ends before the delete
		theirs   files    // files that another client stores after that
		atDelete files    // files that another client stores right before the delete
		dirs     []string // directories that another client makes
		from, to string   // "old" and "new" by default
		want     error    // error of the move
		after    files    // content of the bucket at the end
		gone     string   // a key that no longer exists
	}{
		"moves":         {after: files{"new": "content"}, gone: "old"},
		"new-directory": {to: "a/b/new", after: files{"a/b/new": "content"}, gone: "old"},
		"completes":     {first: true, after: files{"new": "content"}, gone: "old"},
		"exists":        {theirs: files{"new": "theirs"}, want: fs.ErrExist, after: files{"old": "content", "new": "theirs"}},
		"same-bytes":    {theirs: files{"new": "content"}, want: fs.ErrExist, after: files{"old": "content", "new": "content"}},
		"copy-was-replaced": {first: true, theirs: files{"new": "theirs"}, want: fs.ErrExist,
			after: files{"old": "content", "new": "theirs"}},
		"source-was-replaced": {first: true, theirs: files{"old": "another"}, want: fs.ErrExist,
			after: files{"old": "another", "new": "content"}},
		"source-is-replaced": {atDelete: files{"old": "another"}, want: syscall.ESTALE,
			after: files{"old": "another", "new": "content"}},
		"directory": {theirs: files{"new/file": "theirs"}, want: syscall.EISDIR,
			after: files{"old": "content", "new/file": "theirs"}},
		"missing":           {from: "older", want: fs.ErrNotExist, after: files{"old": "content"}},
		"root":              {to: "/", want: fs.ErrInvalid, after: files{"old": "content"}},
		"file-to-directory": {to: "new/", want: fs.ErrInvalid, after: files{"old": "content"}},
		"marker":            {from: "dir/", to: "other/", after: files{"other/": ""}, gone: "dir"},
		"missing-marker":    {from: "dirs/", to: "other/", want: fs.ErrNotExist, after: files{"dir/": ""}},
		"marker-of-files": {theirs: files{"dir/file": "stays"}, from: "dir/", to: "other/",
			after: files{"other/": "", "dir/file": "stays"}},
		"marker-onto-marker": {dirs: []string{"other"}, from: "dir/", to: "other/", after: files{"other/": ""}, gone: "dir"},
	} {
		for _, profile := range []string{"aws", "minio", "gcs", "versitygw"} {
			t.Run(profile+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p, _ := driver.ProfileNamed(profile)
					server := s3sim.New(s3sim.Options{Profile: p, Versioning: true})
					server.CreateBucket("bucket")
					// open returns a file system in a process of its own, which calls before ahead of its first delete.
					open := func(ctx context.Context, before func() error) *drivertest.Fs {
						spy, done := drivertest.NewSpy(server.Client(nil)), before == nil
						spy.Before(func(_ context.Context, operation string, _ any) error {
							if done || operation != "DeleteObject" && operation != "DeleteObjects" {
								return nil
							}
							done = true
							return before()
						})
						return drivertest.MustNew(ctx, spy, "bucket", &driver.Options{Profile: p})
					}
					theirs := open(t.Context(), nil)
					store := func(all files) {
						for name, content := range all {
							write(t, theirs, name, content)
						}
					}
					store(files{"old": "content"})
					must.OK(t, theirs.Mkdir("dir", 0))
					from, to := cmp.Or(tc.from, "old"), cmp.Or(tc.to, "new")
					if tc.first {
						ctx, kill := context.WithCancel(t.Context())
						err := open(ctx, func() error { kill(); return ctx.Err() }).MoveObject(ctx, from, to)
						if err == nil {
							t.Fatal("the first attempt was not interrupted")
						}
					}
					store(tc.theirs)
					for _, dir := range tc.dirs {
						must.OK(t, theirs.Mkdir(dir, 0))
					}
					moving, _ := theirs.IsMoving(t.Context(), from, to) // the error says that one of them is missing
					if want := name == "completes"; moving != want {
						t.Errorf("IsMoving() = %t, want %t", moving, want)
					}
					wantErr, after := tc.want, tc.after
					if tc.atDelete != nil && !p.ConditionalDelete { // the file is among the older versions
						wantErr, after = nil, files{"new": "content"}
					}
					mine := open(t.Context(), func() error { store(tc.atDelete); return nil })
					if err := mine.MoveObject(t.Context(), from, to); !errors.Is(err, wantErr) {
						t.Errorf("got error %v, want %v", err, wantErr)
					}
					for name, want := range after {
						if _, err := theirs.StatDir(name); err == nil && want == "" {
							continue
						}
						if got, err := afero.ReadFile(theirs, name); err != nil || string(got) != want {
							t.Errorf("%s has %q, %v; want %q", name, got, err, want)
						}
					}
					if _, err := theirs.Stat(tc.gone); tc.gone != "" && !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("%s still exists: %v", tc.gone, err)
					}
				})
			})
		}
	}
}
