package vfs

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/spf13/afero"
)

// The home and what leads there exist without an object; nothing else does, and what is there shows.
func TestHome(t *testing.T) {
	storage := newStorage(t)
	h := NewHomeFS(storage, "/teams/alice")
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
			entries, err := h.ReadDirSeq(tc.name)
			if (err == nil) != tc.there || !tc.there && !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("ReadDirSeq: %v", err)
			}
			if tc.there && tc.name != "/" && tc.name != "/dir" {
				for info, err := range entries {
					t.Errorf("the empty directory lists %v, %v", info, err)
				}
			}
		})
	}
	if err := afero.WriteFile(h, "/teams/alice/file", []byte("content"), 0); err != nil {
		t.Fatal(err)
	}
	entries, err := h.ReadDirSeq("/teams/alice")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for info, err := range entries {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.Name())
	}
	if len(names) != 1 || names[0] != "file" {
		t.Errorf("the home lists %q", names)
	}
}
