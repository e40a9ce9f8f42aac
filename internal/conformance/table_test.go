package conformance_test

import (
	"cmp"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// ownPackage is the package of tests that the table names without a package.
const ownPackage = "conformance"

var (
	testInTable = regexp.MustCompile("`(?:([a-z0-9]+): )?(Test[A-Za-z0-9_]*)(?:/[^`]+)?`")
	testInCode  = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
)

// TestTable checks that the tests that docs/conformance.md names exist.
func TestTable(t *testing.T) {
	root, err := s3test.Repository()
	must.OK(t, err)
	page := must.ReadFile(t, filepath.Join(root, "docs", "conformance.md"))
	packages := map[string]map[string]bool{}
	for _, named := range testInTable.FindAllStringSubmatch(page, -1) {
		pkg, test := cmp.Or(named[1], ownPackage), named[2]
		if packages[pkg] == nil {
			packages[pkg] = testsOf(t, root, pkg)
		}
		if !packages[pkg][test] {
			t.Errorf("package %s has no %s", pkg, test)
		}
	}
}

// testsOf returns the tests of a package.
func testsOf(t *testing.T, root, pkg string) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	for _, parent := range []string{"internal", "internal/*", "internal/*/*", "driver/internal", "."} {
		files, err := filepath.Glob(filepath.Join(root, parent, pkg, "*_test.go"))
		must.OK(t, err)
		for _, file := range files {
			code := must.ReadFile(t, file)
			for _, test := range testInCode.FindAllStringSubmatch(code, -1) {
				tests[test[1]] = true
			}
		}
	}
	return tests
}
