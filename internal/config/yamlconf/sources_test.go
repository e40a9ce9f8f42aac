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
		t.Error("read a missing file")
	}
	if _, err := s.ReadDir(dir); err != nil || s.Changed() {
		t.Errorf("Changed() = %v, %v", s.Changed(), err)
	}
	for _, content := range []string{"one", "two"} {
		must.WriteFile(t, name, content)
		if !s.Changed() {
			t.Errorf("%q was not noticed", content)
		}
		if _, err := s.ReadFile(name); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ReadDir(dir); err != nil || s.Changed() {
			t.Errorf("%q is a change after it was read again: %v", content, err)
		}
	}
}
