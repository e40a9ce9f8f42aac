package yamlconf

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSourcesChange(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	s := NewSources()
	if _, err := s.ReadFile(name); err == nil {
		t.Error("a missing file was read")
	}
	if _, err := s.ReadDir(dir); err != nil || s.Changed() {
		t.Errorf("changed: %v, %v", s.Changed(), err)
	}
	for _, content := range []string{"one", "two"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if !s.Changed() {
			t.Errorf("%q is no change", content)
		}
		if _, err := s.ReadFile(name); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ReadDir(dir); err != nil || s.Changed() {
			t.Errorf("%q is a change after it was read: %v", content, err)
		}
	}
}
