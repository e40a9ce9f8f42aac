package server

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/control"
	"github.com/babelftp/babelftp/internal/s3test"
)

// newStorage is a fresh bucket that holds the file /dir/file and the empty directory /empty.
func newStorage(t *testing.T) *driver.Fs {
	t.Helper()
	s := s3test.Start(t, "embedded")
	storage := driver.New(t.Context(), s.Client(), s.Bucket(t), nil)
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

// Each operation works with the permissions it needs and no others, and fails without any one of them.
func TestPermissions(t *testing.T) {
	now := time.Now()
	for _, tc := range []struct {
		name  string
		needs []config.Permission
		do    func(control.Storage) error
	}{
		{"stat", nil, func(s control.Storage) error { _, err := s.Stat("/dir/file"); return err }},
		{"stat-file", nil, func(s control.Storage) error { _, err := s.StatFile("/dir/file"); return err }},
		{"stat-dir", nil, func(s control.Storage) error { _, err := s.StatDir("/dir"); return err }},
		{"list", []config.Permission{config.List}, func(s control.Storage) error { _, err := s.ReadDirSeq("/dir"); return err }},
		{"open", []config.Permission{config.Read}, func(s control.Storage) error { return closed(s.Open("/dir/file")) }},
		{"open-directory", []config.Permission{config.Read, config.List}, func(s control.Storage) error { return closed(s.Open("/dir")) }},
		{"open-at", []config.Permission{config.Read}, func(s control.Storage) error { return closed(s.OpenAt("/dir/file", os.O_RDONLY, 3)) }},
		{"create", []config.Permission{config.Write}, func(s control.Storage) error { return closed(s.Create("/new")) }},
		{"overwrite", []config.Permission{config.Write}, func(s control.Storage) error {
			return closed(s.OpenAt("/dir/file", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0))
		}},
		{"append", []config.Permission{config.Write}, func(s control.Storage) error {
			return closed(s.OpenFile("/dir/file", os.O_WRONLY|os.O_APPEND, 0))
		}},
		{"read-and-write", []config.Permission{config.Read, config.Write}, func(s control.Storage) error {
			return closed(s.OpenFile("/new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0))
		}},
		{"set-time", []config.Permission{config.Write}, func(s control.Storage) error { return s.Chtimes("/dir/file", now, now) }},
		{"chmod", []config.Permission{config.Write}, func(s control.Storage) error { return supported(s.Chmod("/dir/file", 0)) }},
		{"chown", []config.Permission{config.Write}, func(s control.Storage) error { return supported(s.Chown("/dir/file", 0, 0)) }},
		{"remove", []config.Permission{config.Delete}, func(s control.Storage) error { return s.Remove("/dir/file") }},
		{"remove-file", []config.Permission{config.Delete}, func(s control.Storage) error { return s.RemoveFile("/dir/file") }},
		{"remove-dir", []config.Permission{config.Delete}, func(s control.Storage) error { return s.RemoveDir("/empty") }},
		{"remove-all", []config.Permission{config.Delete}, func(s control.Storage) error { return s.RemoveAll("/dir") }},
		{"rename", []config.Permission{config.Rename}, func(s control.Storage) error { return s.Rename("/dir/file", "/moved") }},
		{"copy", []config.Permission{config.Read, config.Write}, func(s control.Storage) error {
			return s.Copy(t.Context(), "/dir", "/copy")
		}},
		{"mkdir", []config.Permission{config.Mkdir}, func(s control.Storage) error { return s.Mkdir("/made", 0) }},
		{"mkdir-all", []config.Permission{config.Mkdir}, func(s control.Storage) error { return s.MkdirAll("/made/deep", 0) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			storage := newStorage(t)
			for _, missing := range tc.needs {
				all := &guarded{storage: storage, may: func(p config.Permission) bool { return p != missing }}
				err := tc.do(all)
				var pathErr *fs.PathError
				if !errors.Is(err, fs.ErrPermission) || !errors.As(err, &pathErr) {
					t.Errorf("without %s: %v", missing, err)
				}
			}
			if _, err := storage.StatFile("/dir/file"); err != nil {
				t.Fatalf("a refused operation did something: %v", err)
			}
			only := &guarded{storage: storage, may: func(p config.Permission) bool { return slices.Contains(tc.needs, p) }}
			if err := tc.do(only); err != nil {
				t.Errorf("with %s alone: %v", tc.needs, err)
			}
		})
	}
}

// supported drops the error of what S3 has nothing for: it was let through.
func supported(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// The files of a guarded storage are the driver's own, so that they keep the methods that move data fast and abort uploads.
func TestGuardedFilesKeepTheirMethods(t *testing.T) {
	s := &guarded{storage: newStorage(t), may: func(config.Permission) bool { return true }}
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
