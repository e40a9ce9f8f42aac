// Package internal_test checks which package may import which.
package internal_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/babelftp/babelftp/"

// house lists the groups of packages from top to bottom. A package imports packages of its own group and of those
// below, never of one above.
func house() []string {
	return []string{
		"cmd",               // the command line.
		"internal/server",   // puts everything together.
		"internal/admin",    // what administrators see and do.
		"internal/ftp",      // speaks FTP.
		"internal/doctor",   // looks at servers and their logs from outside.
		"internal/report",   // logs, audit, events and traces.
		"internal/users",    // tenants and users, and how they log in.
		"internal/storage",  // what a user sees of S3, and the S3 clients.
		"internal/certs",    // certificates of the server.
		"internal/config",   // the configuration: describes, and makes nothing.
		"driver",            // S3 as a file system: any program can use it, so it knows no FTP and no language.
		"internal/pathname", // names on the wire and in the storage.
		"internal/base",     // what works for any server.
		"i18n",              // texts and languages.
		"locales",           // the catalogs.
	}
}

// driverHouse lists the packages below driver/internal in the same way.
func driverHouse() []string {
	return strings.Fields(`
		listing upload file quota journal membudget
		s3api s3object`)
}

// A keeper says who may import a package, or who may not, and why.
type keeper struct {
	kept    string // a package, or all below it if it ends in /...
	folders string // those that may; if they begin with "not", those that may not
	reason  string
}

func keepers() []keeper {
	return []keeper{
		{"github.com/fclairamb/ftpserverlib/...", "internal/ftp/engine", "the session engine has one adapter"},
		{"github.com/pires/go-proxyproto/...", "internal/ftp/relay", "PROXY headers are read in one place"},
		{"go.opentelemetry.io/otel/sdk/...", "internal/report/tracing", "spans are sent from one place"},
		{"go.opentelemetry.io/otel/exporters/...", "internal/report/tracing", "spans are sent from one place"},
		{"github.com/prometheus/client_golang/...", "internal/admin",
			"others count, and these show the counts"},
		{"github.com/spf13/afero/...", "driver internal/ftp/engine",
			"afero is how the engine and the driver meet"},
		{"github.com/aws/aws-sdk-go-v2/service/s3",
			"cmd driver/internal/s3object driver/internal/s3api internal/report/events internal/storage",
			"requests are made, and answers checked, in few places"},
		{module + "driver", "internal/server internal/admin internal/users/account internal/storage",
			"a session asks for a view, and the server makes one of the driver"},
		{module + "i18n/...",
			"cmd i18n internal/doctor internal/server internal/admin internal/ftp internal/users internal/config",
			"the session writes what a client reads; the others return errors"},
		{module + "internal/pathname", "not driver", "any program can use the driver, so it knows no FTP"},
		{module + "internal/storage/embeddeds3", "cmd", "only the demonstration has an S3 server inside"},
		{"net", "not i18n internal/ftp/reply internal/ftp/list internal/pathname",
			"these packages make texts, and write to no socket"},
	}
}

// covers reports whether the keeper keeps a package.
func (k keeper) covers(name string) bool {
	folder, all := strings.CutSuffix(k.kept, "/...")
	return name == k.kept || all && below(name, []string{folder})
}

// allows reports whether a package may import what the keeper keeps.
func (k keeper) allows(name string) bool {
	others, refused := strings.CutPrefix(k.folders, "not ")
	return below(name, strings.Fields(others)) != refused
}

// below reports whether a package is in one of these folders.
func below(name string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return name == folder || strings.HasPrefix(name, folder+"/")
	})
}

// forTests reports whether a package is only for tests and measurements.
func forTests(name string) bool {
	return below(
		name, []string{"internal/testkit", "internal/acceptance", "internal/conformance", "internal/dialects",
			"driver/drivertest", "bench", "tools", "deploy", "docs"})
}

// TestImports holds the imports of the program against these tables.
func TestImports(t *testing.T) {
	out, err := exec.Command(
		"go", "list", "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}`, module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	floor := func(name string) int {
		return slices.IndexFunc(house(), func(group string) bool { return below(name, []string{group}) })
	}
	driverFloor := func(name string) int {
		return slices.Index(driverHouse(), strings.TrimPrefix(name, "driver/internal/"))
	}
	for line := range strings.Lines(string(out)) {
		from, to, imports := strings.Cut(strings.TrimSpace(line), " ")
		from = strings.TrimPrefix(from, module)
		if !imports || forTests(from) {
			continue
		}
		for _, k := range keepers() {
			if k.covers(to) && !k.allows(from) {
				t.Errorf("%s imports %s: %s", from, to, k.reason)
			}
		}
		to, ours := strings.CutPrefix(to, module)
		switch {
		case !ours:
		case forTests(to):
			t.Errorf("%s imports %s, which is for tests", from, to)
		case floor(from) < 0 || floor(to) < 0:
			t.Errorf("%s or %s is in no group", from, to)
		case floor(to) < floor(from):
			t.Errorf("%s imports %s, whose group is above", from, to)
		case strings.HasPrefix(from, "driver/internal/") && strings.HasPrefix(to, "driver/internal/") &&
			driverFloor(to) <= driverFloor(from):
			t.Errorf("%s imports %s, which is above", from, to)
		}
	}
}
