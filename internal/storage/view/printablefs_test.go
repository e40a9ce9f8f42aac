package view

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/spf13/afero"
)

// No operation creates a name with a control character. One that is there can be read, renamed and removed.
func TestPrintableFS(t *testing.T) {
	storage := newStorage(t)
	s := NewPrintableFS(storage)
	for _, bad := range []string{"/a\nb", "/a\x00b", "/dir/\x7f", "/\u0085/file"} {
		for op, do := range map[string]func() error{
			"create":    func() error { return closed(s.Create(bad)) },
			"open-file": func() error { return closed(s.OpenFile(bad, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0)) },
			"open-at":   func() error { return closed(s.OpenAt(bad, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0)) },
			"mkdir":     func() error { return s.Mkdir(bad, 0) },
			"mkdir-all": func() error { return s.MkdirAll(bad, 0) },
			"rename":    func() error { return s.Rename("/dir/file", bad) },
			"copy":      func() error { return s.Copy(t.Context(), "/dir/file", bad) },
		} {
			if err := do(); !errors.Is(err, syscall.EILSEQ) {
				t.Errorf("%s of %q: %v, want EILSEQ", op, bad, err)
			}
		}
	}
	const old = "/dir/old\nname"
	if err := afero.WriteFile(storage, old, []byte("content"), 0); err != nil {
		t.Fatal(err)
	}
	if content, err := afero.ReadFile(s, old); err != nil || string(content) != "content" {
		t.Errorf("%q, %v", content, err)
	}
	if err := s.Rename(old, "/dir/Zoë\u202e"); err != nil {
		t.Error(err)
	}
	if err := s.RemoveFile("/dir/Zoë\u202e"); err != nil {
		t.Error(err)
	}
}
