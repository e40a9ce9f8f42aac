package yamlconf

import (
	"path/filepath"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
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
		must.WriteFile(t, name, content)
		if !s.Changed() {
			t.Errorf("%q is not a change", content)
		}
		if _, err := s.ReadFile(name); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ReadDir(dir); err != nil || s.Changed() {
			t.Errorf("%q is a change after it was read: %v", content, err)
		}
	}
}
