package s3client

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

var update = flag.Bool("update", false, "rewrite the table of S3 servers")

const serversPage = "../../../docs/s3-servers.md"

// Marks around the generated table.
const beginTable, endTable = "<!-- begin: go test ./internal/storage/s3client -run TestServersPage -update -->\n", "<!-- end -->\n"

// The table on the page matches the profiles.
func TestServersPage(t *testing.T) {
	t.Parallel()
	page := must.ReadFile(t, serversPage)
	before, rest, found := strings.Cut(page, beginTable)
	shown, after, ended := strings.Cut(rest, endTable)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", serversPage)
	}
	table := serversTable(t)
	switch {
	case shown == table:
	case *update:
		must.OK(t, os.WriteFile(serversPage, []byte(before+beginTable+table+endTable+after), 0o644))
	default:
		t.Errorf(
			"%s shows another table than the code has: run go test ./internal/storage/s3client -run "+
				"TestServersPage -update", serversPage)
	}
}

// serversTable writes one line per fact that does not hold for all profiles.
func serversTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| feature | profiles without it |\n| --- | --- |\n")
	var order []string
	titles := map[string][]string{} // by the list of profiles that lack the feature
	for _, fact := range facts() {
		var having, lacking []string
		for _, name := range driver.ProfileNames() {
			p, ok := driver.ProfileNamed(name)
			if !ok {
				t.Fatalf("unknown profile %q", name)
			}
			if fact.of(p) {
				having = append(having, "`"+name+"`")
			} else {
				lacking = append(lacking, "`"+name+"`")
			}
		}
		of := strings.Join(lacking, ", ")
		if len(having) < len(lacking) {
			of = "all except " + strings.Join(having, ", ")
		}
		if of != "" {
			if titles[of] == nil {
				order = append(order, of)
			}
			titles[of] = append(titles[of], fact.title)
		}
	}
	for _, of := range order {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(titles[of], "; "), of)
	}
	return b.String()
}

// A fact is a feature of a server.
type fact struct {
	title string
	of    func(driver.Profile) bool
}

// facts returns the facts of the experiments, followed by those without an experiment.
func facts() []fact {
	var all []fact
	for i, e := range newSample(nil, "", &driver.Profile{}).experiments() {
		all = append(all, fact{e.name, func(p driver.Profile) bool {
			return newSample(nil, "", &p).experiments()[i].promised()
		}})
	}
	return append(all, []fact{
		{"tags of copies and of multipart uploads", func(p driver.Profile) bool { return !p.LosesTags }},
		{"tags", func(p driver.Profile) bool { return !p.NoTags }},
		{"bucket names in the path (`path_style`)", func(p driver.Profile) bool { return !p.VirtualHosts }},
		{"404 for missing files if the IAM policy allows a prefix only", func(p driver.Profile) bool {
			return !p.UnprefixedLookups
		}},
		{"`CopyObject` of an object onto itself that cannot bring back replaced bytes", func(p driver.Profile) bool {
			return p.InPlaceCopy
		}},
		{"`UploadPartCopy` of a key with a percent sign", func(p driver.Profile) bool {
			return p.PartCopy && !p.MisreadPartSources
		}},
		{"parts of different sizes", func(p driver.Profile) bool { return p.UnequalParts }},
		{"`HeadObject` responses without a body", func(p driver.Profile) bool { return !p.UnframedHeads }},
		{"an error for writes that a later write has overtaken", func(p driver.Profile) bool {
			return !p.OvertakenSuccess
		}},
		{"resuming interrupted uploads", func(p driver.Profile) bool { return p.Resumes() }},
		{"directory markers and files in one `DeleteObjects` request", func(p driver.Profile) bool {
			return p.BatchDeletesMarkers
		}},
		{"listings without directories that have only delete markers", func(p driver.Profile) bool {
			return !p.GhostPrefixes
		}},
		{"listings of versions with delete markers in their order", func(p driver.Profile) bool {
			return !p.MarkersApart
		}},
		{"`DeleteObject` of directory markers under Object Lock", func(p driver.Profile) bool {
			return !p.LockedMarkers
		}},
		{"uploads into a directory whose last file is being deleted", func(p driver.Profile) bool {
			return p.EmptyDirectoryCode == ""
		}},
		{"responses about a single object while it is replaced", func(p driver.Profile) bool {
			return p.AtomicReads
		}},
		{"200 only for stored objects", func(p driver.Profile) bool { return !p.FalseSuccess }},
		{"actions for ACLs and KMS keys in IAM policies", func(p driver.Profile) bool { return p.FullIAM }},
		{"gzip objects as they are stored", func(p driver.Profile) bool {
			return !p.Decompresses
		}},
	}...)
}
