// Package internal_test checks the imports between packages.
package internal_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/babelftp/babelftp/"

// layers lists the groups of packages from top to bottom. A package may only import packages of its own layer
// and of lower ones.
func layers() []string {
	return []string{
		"cmd",                 // the command line
		"internal/kubernetes", // tenants and users that are resources of Kubernetes
		"internal/server",     // connects everything
		"internal/admin",      // API, page and metrics for administrators
		"internal/ftp",        // the FTP protocol
		"internal/doctor",     // examines servers and their logs from outside
		"internal/report",     // logs, audit log, events and traces
		"internal/users",      // tenants, users and logins
		"internal/storage",    // S3 clients, and what a user sees of a bucket
		"internal/certs",      // certificates of the server
		"internal/config",     // parses and checks the configuration, and creates nothing
		"driver",              // S3 as a file system, usable by any program, so without FTP and texts
		"internal/pathname",   // names on the wire and in storage
		"internal/base",       // useful for any server
		"i18n",                // texts and languages
		"locales",             // the catalogs
	}
}

// driverLayers lists the packages below driver/internal in the same way.
func driverLayers() []string {
	return strings.Fields(`
		listing upload file quota journal membudget
		s3api s3object`)
}

// A restriction says which packages may import a package, and why.
type restriction struct {
	pkg     string // a package, or a tree of packages if it ends in /...
	folders string // directories of packages that may import it, or may not if it starts with "not"
	reason  string
}

func restrictions() []restriction {
	return []restriction{
		{"github.com/fclairamb/ftpserverlib/...", "internal/ftp/engine", "only the adapter uses the session engine"},
		{"github.com/pires/go-proxyproto/...", "internal/ftp/relay", "only one package parses PROXY headers"},
		{"go.opentelemetry.io/otel/sdk/...", "internal/report/tracing", "spans are sent from one place"},
		{"go.opentelemetry.io/otel/exporters/...", "internal/report/tracing", "spans are sent from one place"},
		{"github.com/prometheus/client_golang/...", "internal/admin",
			"other packages count, and this one exports the counts"},
		{"github.com/spf13/afero/...", "driver internal/ftp/engine",
			"afero is the interface between the engine and the driver"},
		{"github.com/aws/aws-sdk-go-v2/service/s3",
			"cmd driver/internal/s3object driver/internal/s3api internal/report/events internal/storage",
			"few packages send requests and check responses"},
		{module + "driver", "internal/server internal/admin internal/users/account internal/storage",
			"sessions use a view, which the server creates from the driver"},
		{module + "i18n/...",
			"cmd i18n internal/doctor internal/server internal/admin internal/ftp internal/users internal/config",
			"sessions render texts for clients; other packages return errors"},
		{module + "internal/pathname", "not driver", "any program can use the driver, so it must not depend on FTP"},
		{module + "internal/storage/embeddeds3", "cmd", "only the demo has a built-in S3 server"},
		{"k8s.io/client-go/...", "internal/kubernetes cmd/babelftp-kubernetes",
			"the server without custom resources must not contain the Kubernetes client"},
		{"net", "not i18n internal/ftp/reply internal/ftp/list internal/pathname",
			"these packages create texts and do not send them"},
	}
}

// covers reports whether the restriction applies to imports of this package.
func (r restriction) covers(name string) bool {
	folder, all := strings.CutSuffix(r.pkg, "/...")
	return name == r.pkg || all && below(name, []string{folder})
}

// allows reports whether this package may import the restricted package.
func (r restriction) allows(name string) bool {
	others, refused := strings.CutPrefix(r.folders, "not ")
	return below(name, strings.Fields(others)) != refused
}

// below reports whether a package is in one of these directories.
func below(name string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return name == folder || strings.HasPrefix(name, folder+"/")
	})
}

// forTests reports whether a package is only for tests and benchmarks.
func forTests(name string) bool {
	return below(
		name, []string{"internal/testkit", "internal/acceptance", "internal/conformance", "internal/dialects",
			"driver/drivertest", "bench", "tools", "deploy", "docs"})
}

// TestImports checks all imports of the program against the layers and restrictions.
func TestImports(t *testing.T) {
	out, err := exec.Command(
		"go", "list", "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}`, module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	layer := func(name string) int {
		return slices.IndexFunc(layers(), func(group string) bool { return below(name, []string{group}) })
	}
	driverLayer := func(name string) int {
		return slices.Index(driverLayers(), strings.TrimPrefix(name, "driver/internal/"))
	}
	for line := range strings.Lines(string(out)) {
		from, to, imports := strings.Cut(strings.TrimSpace(line), " ")
		from = strings.TrimPrefix(from, module)
		if !imports || forTests(from) {
			continue
		}
		for _, r := range restrictions() {
			if r.covers(to) && !r.allows(from) {
				t.Errorf("%s imports %s: %s", from, to, r.reason)
			}
		}
		to, ours := strings.CutPrefix(to, module)
		switch {
		case !ours:
		case forTests(to):
			t.Errorf("%s imports %s, which is for tests", from, to)
		case layer(from) < 0 || layer(to) < 0:
			t.Errorf("%s or %s is in no layer", from, to)
		case layer(to) < layer(from):
			t.Errorf("%s imports %s, which is in a higher layer", from, to)
		case strings.HasPrefix(from, "driver/internal/") && strings.HasPrefix(to, "driver/internal/") &&
			driverLayer(to) <= driverLayer(from):
			t.Errorf("%s imports %s, which is in a higher layer", from, to)
		}
	}
}
