package acceptance_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

var (
	allClients    = flag.Bool("clients.all", false, "run all clients of TestClients, not only the core")
	updateClients = flag.Bool("update", false, "with -clients.all, write the table of docs/conformance.md")
)

// clientsPage contains the table of clients and tasks between two comments.
const (
	clientsPage  = "../../docs/conformance.md"
	beginClients = "<!-- begin clients: make clients UPDATE=-update -->\n"
	endClients   = "<!-- end -->"
)

// splitClientsPage returns the page before, in and after the table.
func splitClientsPage(t *testing.T) (head, table, tail string) {
	t.Helper()
	page := must.ReadFile(t, clientsPage)
	head, rest, found := strings.Cut(page, beginClients)
	table, tail, closed := strings.Cut(rest, endClients)
	if !found || !closed {
		t.Fatalf("%s has no place for the clients", clientsPage)
	}
	return head + beginClients, table, endClients + tail
}

// TestClientsTable checks that the table lists the clients and tasks of TestClients. It ignores the versions of the
// clients.
func TestClientsTable(t *testing.T) {
	t.Parallel()
	versions, tested := map[string]string{}, suiteCounts{}
	_, table, _ := splitClientsPage(t)
	for _, m := range regexp.MustCompile(`(?m)^\| (.*?) \| (.*?) \| (.*?) \|`).FindAllStringSubmatch(table, -1) {
		versions[m[1]] = cmp.Or(versions[m[1]], m[2])
		if name, suite := strings.CutPrefix(m[1], testsOf); suite {
			var passed, all int
			_, _ = fmt.Sscanf(m[3], "%d of %d", &passed, &all)
			tested.add(name, passed, all)
		}
	}
	if want := clientsTable(versions, &tested); table != want && !*updateClients {
		t.Errorf(
			"the table of %s is not up to date: run make clients UPDATE=-update; it should be\n%s", clientsPage, want)
	}
}

// writeClientsTable updates the table with the results of this run.
func writeClientsTable(t *testing.T, tested *suiteCounts) {
	t.Helper()
	commands := map[string][]string{}
	for _, c := range clients {
		commands[c.name] = c.version
	}
	for _, o := range outsideSuites {
		commands[testsOf+o.name] = o.version
	}
	versions := map[string]string{}
	for name, command := range commands {
		out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
		version := regexp.MustCompile(`\d+(\.\d+)+(-\d{14})?|\d{8}`).FindString(string(out))
		if version == "" {
			t.Fatalf("%q: no version in %s; %v", command, out, err)
		}
		versions[name] = version
	}
	head, _, tail := splitClientsPage(t)
	must.OK(t, os.WriteFile(clientsPage, []byte(head+clientsTable(versions, tested)+tail), 0o644))
}

// clientsTable returns the tables: what each client cannot do and what fails because of it, the core clients, the
// tasks, the suites and the devices.
func clientsTable(versions map[string]string, tested *suiteCounts) string {
	var b strings.Builder
	b.WriteString("| client | version | not run | fails because of the client |\n| --- | --- | --- | --- |\n")
	shared := sharedFailures()
	for _, c := range clients {
		var works, lacks, fails []string
		for _, k := range tasks() {
			switch {
			case c.lacks[k.name] != "":
				lacks = append(lacks, k.name)
			case shared[failure{k.name, c.fails[k.name]}] != nil:
				fails = append(fails, "*"+k.name+"*")
			case c.fails[k.name] != "":
				fails = append(fails, fmt.Sprintf("*%s*: %s", k.name, c.fails[k.name]))
			default:
				works = append(works, k.name)
			}
		}
		without := strings.Join(grouped(lacks), ", ")
		switch {
		case len(works) == 0:
			without = "everything, because " + c.lacks[lacks[0]]
		case len(lacks) > len(works):
			without = "everything except " + strings.Join(grouped(works), ", ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.name, versions[c.name], without, strings.Join(fails, " "))
	}
	var core, common, meanings []string
	for f, names := range shared {
		common = append(common, fmt.Sprintf("- *%s* in %s: %s", f.task, strings.Join(names, ", "), f.reason))
	}
	slices.Sort(common)
	for _, c := range clients {
		if c.core {
			core = append(core, c.name)
		}
	}
	for _, k := range tasks() {
		if k.meaning != "" {
			meanings = append(meanings, "- *"+k.name+"*: "+k.meaning)
		}
	}
	for _, g := range groups {
		meanings = append(meanings, "- *"+g.name+"*: "+strings.Join(g.tasks, ", "))
	}
	last := len(core) - 1
	fmt.Fprintf(&b, "\n%s\n\nEach `make test` runs %s and %s. These tasks and groups of tasks need an "+
		"explanation:\n\n%s\n\n",
		strings.Join(common, "\n"), strings.Join(core[:last], ", "), core[last], strings.Join(meanings, "\n"))
	b.WriteString(suitesTable(versions, tested))
	b.WriteString(devicesList())
	return b.String()
}

// A failure is a task that fails in a client, with the reason.
type failure struct{ task, reason string }

// sharedFailures returns the failures that several clients have in common, with the names of the clients.
func sharedFailures() map[failure][]string {
	all := map[failure][]string{}
	for _, c := range clients {
		for task, reason := range c.fails {
			all[failure{task, reason}] = append(all[failure{task, reason}], c.name)
		}
	}
	maps.DeleteFunc(all, func(_ failure, names []string) bool { return len(names) == 1 })
	return all
}

// groups are tasks that share one name in the table.
var groups = []struct {
	name  string
	tasks []string
}{
	{"trees", []string{"tree up", "tree down"}},
	{"times", []string{"time up", "time down"}},
	{"TLS", []string{"explicit", "implicit", "TLS 1.2", "TLS 1.3"}},
	{"active mode", []string{"active", "active TLS", "IPv6 active"}},
	{"files", []string{"upload", "download", "rename", "delete", "directories"}},
}

// grouped replaces tasks with the name of their group if all tasks of the group are present.
func grouped(names []string) []string {
	for _, g := range groups {
		has := func(name string) bool { return slices.Contains(names, name) }
		if !slices.ContainsFunc(g.tasks, func(name string) bool { return !has(name) }) {
			names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(g.tasks, name) })
			names = append(names, g.name)
		}
	}
	return names
}

// devicesList lists the imitated devices and the settings of their tenants.
func devicesList() string {
	var b strings.Builder
	b.WriteString("### Devices and programs that the tests imitate\n\n" +
		"The tests send what these devices and programs send, according to published logs, source code or manuals. " +
		"[The scripts](../internal/acceptance/devices_test.go) name these sources. Some devices need a configuration.\n\n")
	for _, d := range devices() {
		fmt.Fprintf(&b, "- %s", d.name)
		if d.settings != "" {
			fmt.Fprintf(&b, ": `%s`", d.settings)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// testsOf is the prefix of the rows of suites.
const testsOf = "tests of "

// suitesTable shows how many tests of each suite pass, and why the others fail.
func suitesTable(versions map[string]string, tested *suiteCounts) string {
	var b strings.Builder
	b.WriteString("### Tests of other projects\n\nThe authors of clients and libraries test these against FTP servers. " +
		"`make clients` runs their tests against babelftp.\n\n| suite | version | passed | tests that fail, and why |\n" +
		"| --- | --- | --- | --- |\n")
	for _, o := range outsideSuites {
		var differs []string
		for _, tests := range slices.Sorted(maps.Keys(o.differs)) {
			differs = append(differs, fmt.Sprintf("*%s*: %s", strings.ReplaceAll(tests, "|", ", "), o.differs[tests]))
		}
		count := tested.of(o.name)
		fmt.Fprintf(&b, "| %s%s | %s | %d of %d | %s |\n", testsOf, o.name, versions[testsOf+o.name], count.passed, count.all,
			strings.Join(differs, " "))
	}
	b.WriteString("\n")
	return b.String()
}
