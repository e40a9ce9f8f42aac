package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGuides wants the README to list each guide, and each guide to begin with a task: "To do this, do that."
func TestGuides(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	guides, err := filepath.Glob(filepath.Join(root, "docs", "guides", "*.md"))
	if err != nil || len(guides) < 10 {
		t.Fatalf("the guides are %v, %v", guides, err)
	}
	for _, guide := range guides {
		name := filepath.Base(guide)
		if !strings.Contains(string(readme), "](docs/guides/"+name+")") {
			t.Errorf("README.md does not list %s", name)
		}
		text, err := os.ReadFile(guide)
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(text), "\n")
		if first := strings.TrimSpace(after); !strings.HasPrefix(first, "To ") {
			begin, _, _ := strings.Cut(first, "\n")
			t.Errorf("%s does not begin with a task: %s", name, begin)
		}
	}
}
