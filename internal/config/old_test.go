package config

import (
	"slices"
	"strings"
	"testing"
)

// An old key is none any more, and what stands in its place is one.
func TestOldKeys(t *testing.T) {
	names := strings.NewReplacer("TENANT", "*", "USER", "*", "DIRECTORY", "*")
	var known []string
	for _, path := range newReference(t).order {
		known = append(known, names.Replace(path))
	}
	seen := map[string]bool{}
	for _, old := range oldKeys() {
		if slices.Contains(known, old.Key) {
			t.Errorf("%s is a key", old.Key)
		}
		if seen[old.Key] {
			t.Errorf("%s is there twice", old.Key)
		}
		seen[old.Key] = true
		if old.New != "" && !slices.Contains(known, old.New) {
			t.Errorf("%s has moved to %s, which is no key", old.Key, old.New)
		}
		if strings.Count(old.Key, "*") < strings.Count(old.New, "*") {
			t.Errorf("%s does not say which names %s has", old.Key, old.New)
		}
		if old.New == "" && old.Advice == "" {
			t.Errorf("%s needs a place or advice", old.Key)
		}
	}
}
