package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Keys of a version that is out stay (docs/compatibility.md). The list of a version never changes.
func TestKeysStay(t *testing.T) {
	reference, err := os.ReadFile("configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{} // since which version
	section := ""
	row := regexp.MustCompile("^\\| `([a-z0-9_]+)` \\| .* \\| ([0-9.]+) \\| ")
	for line := range strings.Lines(string(reference)) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.TrimSpace(heading)
		} else if match := row.FindStringSubmatch(line); match != nil {
			keys[section+": "+match[1]] = match[2]
		}
	}
	lists, err := filepath.Glob("testdata/keys-*.txt")
	if err != nil || len(lists) == 0 {
		t.Fatalf("no lists of keys: %v", err)
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		listed := strings.Split(strings.TrimSpace(string(text)), "\n")
		for _, key := range listed {
			if keys[key] == "" {
				t.Errorf("%s has %q, which the configuration has no more", list, key)
			}
		}
		version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(list), "keys-"), ".txt")
		for key, since := range keys {
			if since == version && !slices.Contains(listed, key) {
				t.Errorf("%q is said to be of %s, but %s lacks it", key, version, list)
			}
		}
	}
}
