package driver_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestForeignFiles works with files that another program has written to the directory behind versitygw. They have no
// ETag.
func TestForeignFiles(t *testing.T) {
	t.Parallel()
	const content = "stored by NFS"
	s := s3test.Start(t, "versitygw")
	bucket := s.Bucket(t)
	folder := filepath.Join(s.Folder, bucket, "dir")
	put := func(name, content string) {
		t.Helper()
		must.OK(t, os.MkdirAll(folder, 0o755))
		must.OK(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644))
	}
	f := drivertest.MustNew(
		t.Context(), s.Client(s3client.RetryUnstored("")), bucket, &driver.Options{Profile: profile(t, s)})
	want := func(name, content string) {
		t.Helper()
		if got, err := afero.ReadFile(f, "dir/"+name); err != nil || string(got) != content {
			t.Errorf("%s has %q, %v; want %q", name, got, err, content)
		}
	}
	for _, name := range []string{"read", "append", "restart", "rename", "stay", "time", "delete", "changed"} {
		put(name, content)
	}
	if infos, err := afero.ReadDir(f, "dir"); err != nil || len(infos) != 8 {
		t.Errorf("the directory has %v, %v", infos, err)
	}
	if info, err := f.Stat("dir/read"); err != nil || info.Size() != int64(len(content)) {
		t.Errorf("SIZE: %v, %v", info, err)
	}
	want("read", content)

	write := func(name, added string, offset int64, before func()) error {
		w, err := f.OpenAt("dir/"+name, os.O_WRONLY, offset)
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, added)
		before()
		return errors.Join(err, w.Close())
	}
	nothing := func() {}
	size := int64(len(content))
	if err := write("append", ", and more", size, nothing); err != nil {
		t.Errorf("APPE: %v", err)
	}
	want("append", content+", and more")
	if err := write("restart", "BY", 7, nothing); err != nil {
		t.Errorf("REST and STOR: %v", err)
	}
	want("restart", "stored BY NFS")
	if err := write("changed", ", and more", size, func() {
		put("changed", "another")
	}); !errors.Is(err, syscall.ESTALE) {
		t.Errorf("APPE to a file that has changed: %v", err)
	}
	want("changed", "another")
	large := strings.Repeat(content, (6<<20)/len(content))
	put("large", large)
	if err := write("large", ", and more", int64(len(large)), nothing); err != nil {
		t.Errorf("APPE to a large file: %v", err)
	}
	want("large", large+", and more")
	if err := f.Rename("dir/rename", "dir/renamed"); err != nil {
		t.Errorf("RNTO: %v", err)
	}
	want("renamed", content)
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := f.Chtimes("dir/time", when, when); err != nil {
		t.Errorf("MFMT: %v", err)
	}
	if info, err := f.Stat("dir/time"); err != nil || !info.ModTime().Equal(when) {
		t.Errorf("after MFMT: %v, %v", info, err)
	}
	want("time", content)
	if err := f.Remove("dir/delete"); err != nil {
		t.Errorf("DELE: %v", err)
	}
	if err := f.Rename("dir", "moved"); err != nil {
		t.Errorf("RNTO of the directory: %v", err)
	}
	if got, err := afero.ReadFile(f, "moved/stay"); err != nil || string(got) != content {
		t.Errorf("in the moved directory: %q, %v", got, err)
	}
}
