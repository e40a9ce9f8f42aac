package driver_test

import (
	"io"
	"os"
	"testing"

	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	s3profile "github.com/babelftp/babelftp/internal/s3client/profile"
	"github.com/babelftp/babelftp/internal/s3test"
)

// TestObjectLock works in a bucket whose objects may not be deleted for a day.
func TestObjectLock(t *testing.T) {
	s := s3test.Start(t, "minio")
	client, bucket := s.Client(s3profile.RepeatUnstored("")), s.LockedBucket(t)
	p := profile(t, s)
	p.GhostPrefixes = true
	f := drivertest.MustNew(t.Context(), client, bucket, &driver.Options{Profile: p})
	large := string(make([]byte, 11<<20))
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"MKD", func() error { return f.Mkdir("dir", 0) }},
		{"STOR", func() error { return afero.WriteFile(f, "dir/file", []byte("content"), 0) }},
		{"STOR-by-parts", func() error { return afero.WriteFile(f, "dir/large", []byte(large), 0) }},
		{"APPE", func() error {
			w, err := f.OpenFile("dir/large", os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			if _, err := io.WriteString(w, "more"); err != nil {
				return err
			}
			return w.Close()
		}},
		{"RNTO", func() error { return f.Rename("dir/file", "dir/renamed") }},
		{"DELE", func() error { return f.Remove("dir/renamed") }},
		{"DELE-large", func() error { return f.Remove("dir/large") }},
		{"RMD", func() error { return f.RemoveDir("dir") }},
		{"MKD-again", func() error { return f.Mkdir("dir", 0) }},
		{"RNTO-of-a-directory", func() error { return f.Rename("dir", "moved") }},
	} {
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
	}
	infos, err := afero.ReadDir(f, "/") // MinIO lists also what has delete markers only
	if err != nil || len(infos) != 1 || infos[0].Name() != "moved" {
		t.Errorf("the listing has %v, %v; want only what was moved", infos, err)
	}
}
