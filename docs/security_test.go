package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityNamesTests checks that each test exists that docs/security.md names as `package: TestName`.
func TestSecurityNamesTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/security.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z0-9]+): ((?:Test|Fuzz)[A-Za-z0-9]+)`").FindAllStringSubmatch(string(page), -1)
	if len(named) == 0 {
		t.Fatal("no tests are named")
	}
	for _, name := range named {
		var sources []string
		for _, pattern := range []string{"*/%s", "internal/*/%s", "driver/internal/%s", "%s", "internal/%s"} {
			files, err := filepath.Glob(filepath.Join(root, strings.Replace(pattern, "%s", name[1], 1), "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, files...)
		}
		found := false
		for _, source := range sources {
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(text), "\nfunc "+name[2]+"(")
		}
		if !found {
			t.Errorf("docs/security.md names %s, which does not exist in package %s", name[2], name[1])
		}
	}
}
