package docs_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

var update = flag.Bool("update", false, "write the generated parts of pages")

// module is the path of the module with a trailing slash.
const module = "github.com/babelftp/babelftp/"

// programPackages returns the packages of the program, without those that are only for tests, relative to the
// module.
func programPackages(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{if .GoFiles}}{{.ImportPath}}{{end}}", module+"cmd/...",
		module+"driver/...", module+"i18n/...", module+"internal/...", module+"locales/...").Output()
	must.OK(t, err)
	var found []string
	forTests := regexp.MustCompile(`^(internal/(testkit|acceptance|conformance|dialects)|driver/drivertest)(/|$)`)
	for _, name := range strings.Fields(string(out)) {
		if name = strings.TrimPrefix(name, module); !forTests.MatchString(name) {
			found = append(found, name)
		}
	}
	return found
}

// group returns the group of a package, which is its top-level directory, or the first two directories in
// internal.
func group(name string) string {
	folders := strings.Split(name, "/")
	if folders[0] == "internal" {
		return path.Join(folders[:2]...)
	}
	return folders[0]
}

// purposes describes the groups of packages.
var purposes = map[string]string{
	"cmd":               "the command line, with one file for each subcommand",
	"driver":            "S3 as a file system, with and without the interface `afero.Fs`; does not depend on FTP",
	"i18n":              "chooses a language and renders texts",
	"internal/admin":    "API, web page and socket for administrators; metrics and probes",
	"internal/base":     "small packages that all others may use",
	"internal/certs":    "TLS certificates, and ACME",
	"internal/config":   "reads and checks the configuration",
	"internal/doctor":   "finds out why FTP does not work, from logs, from the configuration, or by connecting to a server",
	"internal/ftp":      "sessions, commands, replies and data connections",
	"internal/pathname": "converts pathnames between the charsets of clients and keys",
	"internal/report":   "reports what sessions do to the log, the audit log, webhooks and traces",
	"internal/server":   "starts, reloads and stops everything",
	"internal/storage":  "clients for S3 servers, and the view that a user has of the buckets",
	"internal/users":    "tenants and users: logins, limits, bans, users file",
	"locales":           "the texts, in one folder for each language",
}

// table returns a Markdown table of the packages by group.
func table(packages []string) string {
	members := map[string][]string{}
	for _, name := range slices.Sorted(slices.Values(packages)) {
		members[group(name)] = append(members[group(name)], fmt.Sprintf("[`%s`](../%s)", path.Base(name), name))
	}
	var b strings.Builder
	b.WriteString("| group | what it is for | packages |\n| --- | --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(members)) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, purposes[name], strings.Join(members[name], ", "))
	}
	return b.String()
}

// TestPackages compares the table in docs/architecture.md with the packages. With -update, it writes the
// table.
func TestPackages(t *testing.T) {
	all := programPackages(t)
	for _, name := range all {
		if purposes[group(name)] == "" {
			t.Errorf("purposes lacks %s", group(name))
		}
	}
	generated(t, "architecture.md", map[string]string{"packages": table(all)})
}

// generated compares the generated parts of a page in docs with parts, which are keyed by name. With -update,
// it writes them.
func generated(t *testing.T, page string, parts map[string]string) {
	t.Helper()
	file := filepath.Join(root, "docs", page)
	before := must.ReadFile(t, file)
	text := before
	for name, content := range parts {
		begin, end := fmt.Sprintf("<!-- begin %s: go test ./docs -update -->\n", name), "<!-- end -->"
		head, rest, found := strings.Cut(text, begin)
		_, tail, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s: missing markers for %s", file, name)
		}
		text = head + begin + content + end + tail
	}
	if text == before {
		return
	}
	if !*update {
		t.Fatalf("docs/%s is not up to date: run go test ./docs -update", page)
	}
	must.OK(t, os.WriteFile(file, []byte(text), 0o644))
}
