package view

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A file with a denied name is not stored by any operation. An existing file with such a name can be read and removed.
func TestDeniedNames(t *testing.T) {
	s := newStorage(t)
	s.fill(t, "old.exe", "file")
	v := &View{Mounts: at(s), Directories: NewDirectories("/"), Deny: NewNames([]string{"*.exe", "caf\u00e9*"})}
	var notes []Note
	files := v.For(t.Context(), func(n Note) { notes = append(notes, n) })
	open := func(flag int, offset int64) func(string) error {
		return func(name string) error { return closed(files.OpenWriter(name, flag, offset)) }
	}
	for what, do := range map[string]func(name string) error{
		"STOR":            open(os.O_CREATE|os.O_TRUNC, 0),
		"APPE":            open(os.O_CREATE|os.O_APPEND, 0),
		"STOR after REST": open(os.O_CREATE, 1),
		"RNTO":            func(name string) error { return files.Rename("/file", name) },
		"SITE CPTO":       func(name string) error { return files.Copy("/file", name) },
	} {
		for _, name := range []string{"/a.exe", "/dir/a.exe", "/new/deep/.exe", "/old.exe", "/cafe\u0301.txt"} {
			notes = nil
			err := do(name)
			if !errors.Is(err, ErrNameDenied) || !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s %s: %v", what, name, err)
			}
			if len(notes) != 1 || !errors.Is(notes[0].Err, ErrNameDenied) {
				t.Errorf("%s %s: unexpected notes %+v", what, name, notes)
			}
		}
	}
	if got, err := read(files, "/old.exe"); got != "old.exe" || err != nil {
		t.Errorf("unexpected content of the old file: %q, %v", got, err)
	}
	if err := errors.Join(
		files.Mkdir("/tools.exe"), write(files, "/tools.exe/a.txt", "a"), write(files, "/a.EXE", "a"),
		files.Rename("/old.exe", "/old"), files.Copy("/old", "/a.exe.txt"), files.RemoveDir("/empty"),
	); err != nil {
		t.Error(err)
	}
}

// The limit applies to the whole file, and no part of a file that is too large becomes visible.
func TestLargestSize(t *testing.T) {
	const most = 10
	for _, tc := range []struct {
		name              string
		before            string // the file
		flag              int
		offset, announced int64
		content           string
		opens, stored     bool
	}{
		{"fits", "", os.O_TRUNC, 0, 0, "0123456789", true, true},
		{"too large", "", os.O_TRUNC, 0, 0, "0123456789+", true, false},
		{"announced", "", os.O_TRUNC, 0, 10, "0123456789", true, true},
		{"announced as too large", "", os.O_TRUNC, 0, 11, "", false, false},
		{"appended", "01234", os.O_APPEND, 0, 0, "56789", true, true},
		{"appended too much", "01234", os.O_APPEND, 0, 0, "56789+", true, false},
		{"appended to what is too large", "0123456789+", os.O_APPEND, 0, 0, "", false, false},
		{"after an offset", "01234", 0, 5, 0, "56789", true, true},
		{"too much after an offset", "01234", 0, 5, 0, "56789+", true, false},
		{"in the middle", "0123456789", 0, 2, 0, "23456789", true, true},
		{"too much in the middle", "0123456789", 0, 2, 0, "23456789+", true, false},
		{"from an offset that is too large", "0123456789+", 0, 11, 0, "", false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStorage(t)
			v := &View{Mounts: at(s), Directories: NewDirectories("/")}
			if tc.before != "" {
				must.OK(t, write(v.For(t.Context(), nil), "/file", tc.before))
			}
			v.MaxSize = most
			files := v.For(t.Context(), nil)
			files.Announced = tc.announced
			file, err := files.OpenWriter("/file", tc.flag|os.O_CREATE, tc.offset)
			if (err == nil) != tc.opens {
				t.Fatalf("Open: %v", err)
			}
			if err == nil {
				_, err = file.ReadFrom(iotest.OneByteReader(strings.NewReader(tc.content)))
				err = errors.Join(err, file.Close())
			}
			if (err == nil) != tc.stored {
				t.Errorf("Close: %v", err)
			}
			var large *SizeError
			if err != nil && (!errors.As(err, &large) || large.Limit != most || !errors.Is(err, syscall.EFBIG)) {
				t.Errorf("unexpected error: %v", err)
			}
			want := tc.before
			if tc.stored {
				want = tc.before[:min(tc.offset, int64(len(tc.before)))] + tc.content
				if tc.flag == os.O_APPEND {
					want = tc.before + tc.content
				}
			}
			switch got, err := read(files, "/file"); {
			case want == "" && errors.Is(err, fs.ErrNotExist):
			case err != nil || got != want:
				t.Errorf("got file %q, %v; want %q", got, err, want)
			}
		})
	}
}

// Write counts bytes in the same way as ReadFrom, also after a call of ReadFrom.
func TestLargestSizeOfWrites(t *testing.T) {
	v := &View{Mounts: at(newStorage(t)), Directories: NewDirectories("/"), MaxSize: 10}
	files := v.For(t.Context(), nil)
	file, err := files.OpenWriter("/file", os.O_CREATE|os.O_TRUNC, 0)
	must.OK(t, err)
	_, first := io.WriteString(file, "01234")
	_, second := file.ReadFrom(bytes.NewReader([]byte("56789")))
	_, third := file.Write([]byte("+"))
	if first != nil || second != nil || !errors.Is(third, syscall.EFBIG) || !errors.Is(file.Close(), syscall.EFBIG) {
		t.Errorf("got %v, %v, %v", first, second, third)
	}
	if _, err := files.StatFile("/file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file exists: %v", err)
	}
}
