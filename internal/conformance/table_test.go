package conformance_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// testsLog is how .ci/run asks whether the tests of the table have run.
var testsLog = flag.String(
	"tests-log", "", "output of go test -json ./...; every test of the table must have passed in it")

// A row is a rule of a document and what babelftp does about it.
type row struct {
	line                 int    // of the file
	document             string // the heading above it
	section, level, does string
	tests                []testName
}

// ownPackage is that of a test which the table names without a package.
const ownPackage = "conformance"

// A testName is what the table calls `package: Test/subtest`.
type testName struct{ pkg, function, subtest string }

func (n testName) String() string {
	return strings.TrimSuffix(n.pkg+": "+n.function+"/"+n.subtest, "/")
}

// tableHead begins each table of the document.
const tableHead = "| section | what babelftp does | shown by |"

// notTaken marks a MAY that babelftp has no use for.
const notTaken = "Not taken"

// levels end the first column; a rule is what a document says without one of these words.
var levels = []string{"MUST", "SHOULD", "MAY", "rule"}

var (
	rowDivider  = regexp.MustCompile(`^(\|-+){3}\|$`)
	testInTable = regexp.MustCompile("^`(?:([a-z0-9]+): )?(Test[A-Za-z0-9_]*)(?:/([^`]+))?`$")
)

// parseTable reads docs/conformance.md. It is strict, so that nothing that looks like a row goes unread.
func parseTable(r io.Reader) ([]row, error) {
	var rows []row
	var errs []error
	document, inTable, generated, number := "", false, false, 0
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		number++
		line := lines.Text()
		wrong := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("line %d: %s", number, fmt.Sprintf(format, args...)))
		}
		switch {
		case strings.HasPrefix(line, "<!-- begin "):
			generated = true // the tables of clients
		case strings.HasPrefix(line, "<!-- end "):
			generated = false
		case generated:
		case strings.HasPrefix(line, "## "):
			document, inTable = strings.TrimPrefix(line, "## "), false
		case line == tableHead:
			if !lines.Scan() || !rowDivider.MatchString(lines.Text()) {
				wrong("the head of a table has no |-|-|-| below it")
			}
			number++
			inTable = true
		case strings.HasPrefix(line, "|"):
			if !inTable || document == "" {
				wrong("a row outside of a table")
				continue
			}
			row, err := parseRow(line)
			if err != nil {
				wrong("%v", err)
				continue
			}
			row.line, row.document = number, document
			rows = append(rows, row)
		case strings.Contains(line, " | "):
			wrong("a row without | at its beginning")
		default:
			inTable = false
		}
	}
	return rows, errors.Join(append(errs, lines.Err())...)
}

func parseRow(line string) (row, error) {
	cells := strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), "|")
	if len(cells) != 5 || cells[0] != "" || cells[4] != "" {
		return row{}, errors.New("a row has three columns")
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(cells[i], "\x00", "|"))
	}
	lastSpace := strings.LastIndexByte(cells[1], ' ')
	r := row{section: cells[1][:max(lastSpace, 0)], level: cells[1][lastSpace+1:], does: cells[2]}
	if r.section == "" || r.does == "" {
		return row{}, errors.New("a column is empty")
	}
	if !slices.Contains(levels, r.level) {
		return row{}, fmt.Errorf("level %q is none of %q", r.level, levels)
	}
	if cells[3] != "" {
		for cell := range strings.SplitSeq(cells[3], ", ") {
			match := testInTable.FindStringSubmatch(cell)
			if match == nil {
				return row{}, fmt.Errorf("%s is no `package: Test/subtest`", cell)
			}
			r.tests = append(r.tests, testName{cmp.Or(match[1], ownPackage), match[2], match[3]})
		}
	}
	taken := !strings.Contains(r.does, notTaken)
	switch {
	case len(r.tests) == 0 && taken:
		return row{}, errors.New("no test shows it")
	case len(r.tests) == 0 && r.level != "MAY":
		return row{}, fmt.Errorf("only a MAY can be left without a test, not a %s", r.level)
	}
	return r, nil
}

// repository is its root.
func repository(t *testing.T) string {
	t.Helper()
	root, err := s3test.Repository()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// functionsOf returns the tests of the package of a name, by the file they are in.
func functionsOf(root, pkg string) (map[string]string, error) {
	var files []string
	for _, parent := range []string{"internal", "internal/*", "internal/*/*", "driver/internal", "."} {
		found, err := filepath.Glob(filepath.Join(root, parent, pkg, "*_test.go"))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("package %s has no tests", pkg)
	}
	functions := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				functions[f.Name.Name] = filepath.Base(file)
			}
		}
	}
	return functions, nil
}

// passed reads the output of go test -json, between lines of make, and returns what has passed in packages that have.
func passed(r io.Reader) (map[testName]bool, error) {
	all := map[testName]bool{}
	running := map[string][]testName{} // by package: what has passed before the package has
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event struct{ Action, Package, Test string }
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue
		}
		function, subtest, _ := strings.Cut(event.Test, "/")
		switch {
		case event.Action == "pass" && event.Test != "":
			pkg := event.Package[strings.LastIndexByte(event.Package, '/')+1:]
			running[event.Package] = append(running[event.Package], testName{pkg, function, subtest})
		case event.Action == "pass":
			for _, name := range running[event.Package] {
				all[name] = true
			}
			delete(running, event.Package)
		case event.Action == "fail" && event.Test == "":
			delete(running, event.Package)
		}
	}
	return all, lines.Err()
}

// TestTable holds docs/conformance.md and the tests together: each rule names a test that is there, each test of this
// package is named, and with -tests-log each has run and passed.
func TestTable(t *testing.T) {
	root := repository(t)
	file, err := os.Open(filepath.Join(root, "docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := parseTable(file)
	if err != nil {
		t.Fatalf("docs/conformance.md:\n%v", err)
	}
	if len(rows) == 0 {
		t.Fatal("docs/conformance.md has no rows")
	}

	seen := map[string]int{}
	functions := map[string]map[string]string{}
	named := map[testName]bool{}
	for _, r := range rows {
		key := r.document + " " + r.section
		if first, twice := seen[key]; twice {
			t.Errorf("line %d: section %s has a row already, in line %d", r.line, r.section, first)
		}
		seen[key] = r.line
		for _, test := range r.tests {
			if functions[test.pkg] == nil {
				if functions[test.pkg], err = functionsOf(root, test.pkg); err != nil {
					t.Fatalf("line %d: %v", r.line, err)
				}
			}
			if functions[test.pkg][test.function] == "" {
				t.Errorf("line %d: package %s has no %s", r.line, test.pkg, test.function)
			}
			named[testName{pkg: test.pkg, function: test.function}] = true
		}
	}
	own, err := functionsOf(root, ownPackage)
	if err != nil {
		t.Fatal(err)
	}
	for function, file := range own {
		if file != "table_test.go" && function != "TestMain" &&
			!named[testName{pkg: ownPackage, function: function}] {
			t.Errorf("no row names %s of %s", function, file)
		}
	}
	if *testsLog != "" {
		wantPassed(t, rows, *testsLog)
	}
}

func wantPassed(t *testing.T, rows []row, log string) {
	t.Helper()
	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	passed, err := passed(file)
	if err != nil {
		t.Fatal(err)
	}
	count, missing := 0, 0
	for _, r := range rows {
		for _, test := range r.tests {
			if count++; !passed[test] {
				missing++
				t.Errorf("line %d: %s is not among the tests that have passed in %s", r.line, test, log)
			}
		}
	}
	t.Logf("%d rows name %d tests; %d of these have not passed", len(rows), count, missing)
}
