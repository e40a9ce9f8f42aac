package linearizability

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// Lines that [History.String] writes.
var (
	printedLine = regexp.MustCompile(
		`^ *([0-9.]+)s- *(?:([0-9.]+)s\??)? *client (\d+) replica (\d+)  (.*) -> (no reply|\d+)(?: ([^(]*?))?( \([^()]*\))*$`)
	printedCommand = regexp.MustCompile(
		`^(?:(resumes at )?REST (\d+), )?(?:RNFR (\S+), )?([A-Z]+)(?: ([^" ]\S*))?(?: (".*"))?$`)
	printedEntry = regexp.MustCompile(`([^ {]+): (\d+) bytes`)
)

// parse makes a history of lines that [History.String] has written, so that one that a run has printed can be judged
// again. The times have lost all below a millisecond. That gives the commands more freedom, never less.
func parse(t *testing.T, text string) (h History) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		c, err := parseCommand(strings.TrimRight(line, "\n"))
		must.OK(t, err)
		h = append(h, c)
	}
	return h
}

func parseCommand(line string) (c Command, err error) {
	m := printedLine.FindStringSubmatch(line)
	if m == nil {
		return c, fmt.Errorf("%q is no line of a history", line)
	}
	number := func(text string) (n int64) {
		if text != "" && err == nil {
			n, err = strconv.ParseInt(text, 10, 64)
		}
		return n
	}
	seconds := func(text string) (d time.Duration) {
		if text != "" && err == nil {
			d, err = time.ParseDuration(text + "s")
		}
		return d
	}
	unquote := func(text string) (data string) {
		if text != "" && err == nil {
			data, err = strconv.Unquote(text)
		}
		return data
	}
	c.Call, c.Return = seconds(m[1]), seconds(m[2])
	c.Client, c.Replica = int(number(m[3])), int(number(m[4]))
	if m[6] != "no reply" {
		c.Code = int(number(m[6]))
	}
	c.Settled = strings.Contains(line, isSettled)
	c.Blind, c.Seen = strings.Contains(line, mayBeBlind), strings.Contains(line, maySee)
	n := printedCommand.FindStringSubmatch(m[5])
	if n == nil {
		return c, fmt.Errorf("%q is no command", m[5])
	}
	c.Verb, c.Name, c.Offset, c.Data = n[4], n[5], number(n[2]), unquote(n[6])
	switch {
	case n[1] != "":
		c.Verb = "KEEP"
	case n[2] != "":
		c.Verb = "REST"
	case n[3] != "":
		c.Name, c.To = n[3], n[5]
	}
	switch {
	case c.Code/100 != 2:
	case c.Verb == "RETR":
		c.Got = unquote(m[7])
	case c.Verb == "SIZE", c.Verb == "MLST":
		c.Size = number(strings.TrimSuffix(m[7], " bytes"))
	case c.Verb == "MLSD":
		c.Listing = map[string]int64{}
		for _, entry := range printedEntry.FindAllStringSubmatch(m[7], -1) {
			c.Listing[entry[1]] = number(entry[2])
		}
	}
	return c, err
}

// A history that a run has printed is the same when it is read.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, name := range printedHistories(t) {
		text, err := os.ReadFile(name)
		must.OK(t, err)
		if got := parse(t, string(text)).String(); got != string(text) {
			t.Errorf("%s is read as\n%s", name, got)
		}
	}
}

func printedHistories(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal("no histories", err)
	}
	return names
}

// unansweredCore is what contradicts itself in testdata/unanswered-delete.txt, in a bucket that keeps versions. SIZE
// tells that the rename has copied the file from before the second APPE, and RMD that no file is left. So the rename
// has deleted what APPE had added, and its reply must not be 250.
const unansweredCore = `
    0.221s-    0.227s  client 0 replica 1  STOR d/b "0-2 " -> 226
    0.294s-    0.306s  client 0 replica 1  APPE d/b "b" -> 226
    0.311s-    0.970s  client 0 replica 1  RNFR d/b, RNTO a -> 250 (may have deleted what came after its last look)
    0.315s-    0.322s  client 3 replica 1  APPE d/b "b" -> 226
    0.329s-    0.334s  client 3 replica 1  RMD d/ -> 250 (its replica may have shown the directory)
    0.337s-    0.340s  client 1 replica 0  SIZE a -> 213 5 bytes
`

// A rename on MinIO got no answer to its DELETE, which had deleted what another client had stored after the last look.
// The bucket kept versions, and the rename got 250 all the same.
func TestUnansweredDelete(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/unanswered-delete.txt")
	must.OK(t, err)
	all, versions := parse(t, string(text)), Rules{Versions: true}
	core := parse(t, unansweredCore)
	if got := versions.Shrink(all, until); len(got) != len(core) || got[1:].String() != core[1:].String() {
		t.Errorf("got\n%s, want%s, or another beginning", got, unansweredCore)
	}
	answered := func(h History, code int) History {
		i := slices.IndexFunc(h, func(c Command) bool { return c.Verb == "RNTO" && c.Code == 250 })
		h[i].Code = code
		return h
	}
	wrong := parse(t, unansweredCore)
	wrong[len(wrong)-1].Size = 7
	for _, tt := range []struct {
		name    string
		rules   Rules
		history History
		want    Verdict
	}{
		{"all", versions, all, Unexplained},
		{"core", versions, core, Unexplained},
		{"without-versions", Rules{}, all, Explained},
		{"core-without-versions", Rules{}, core, Explained},
		{"in-doubt", versions, answered(slices.Clone(all), 451), Explained},
		{"core-in-doubt", versions, answered(parse(t, unansweredCore), 451), Explained},
		{"wrong-size-in-doubt", versions, answered(wrong, 451), Unexplained},
	} {
		if got := tt.rules.Check(tt.history, until); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// MinIO has stored "4-4 " as an older version than that of APPE, whose PUT has ended 40 ms before: the log of the
// requests had
//
//	0.632s-    0.635s  replica 0  HEAD b: 200
//	0.640s-    0.642s  replica 0  PUT b: 200
//	0.632s-    0.685s  replica 0  PUT b: 200
func TestOlderVersion(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/older-version.txt")
	must.OK(t, err)
	for rules, want := range map[Rules]Verdict{{}: Unexplained, {Versions: true}: Explained} {
		if got := rules.Check(parse(t, string(text)), until); got != want {
			t.Errorf("under %+v %s, want %s", rules, got, want)
		}
	}
}

// A listing on MinIO had a directory with the name of a file that was deleted in the same millisecond.
func TestGhostOfDeletedFile(t *testing.T) {
	t.Parallel()
	const deleted = `
0.486s-    0.489s  client 0 replica 1  STOR a "1-4 " -> 226
0.496s-    0.500s  client 0 replica 1  DELE a -> 250
0.498s-    0.500s  client 3 replica 0  MLSD -> 226 {a/: 0 bytes}
0.502s-    0.508s  client 1 replica 0  SIZE a -> 550`
	later := strings.ReplaceAll(deleted, "0.498s-    0.500s  client 3", "0.501s-    0.502s  client 3")
	for _, tt := range []struct {
		rules   Rules
		history string
		want    Verdict
	}{
		{Rules{}, deleted, Unexplained},
		{Rules{Ghosts: true}, deleted, Explained},
		{Rules{Ghosts: true}, later, Unexplained},
	} {
		if got := tt.rules.Check(parse(t, tt.history), until); got != tt.want {
			t.Errorf("under %+v %s, want %s", tt.rules, got, tt.want)
		}
	}
}
