package docs_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/doctor"
)

// TestDoctor compares the list of findings with the program. With -update, it writes the list.
func TestDoctor(t *testing.T) {
	places := []string{"server and log", "server", "log", "debug lines"}
	found := map[string][]string{}
	for _, k := range doctor.Kinds() {
		place := places[0]
		switch debug := strings.HasSuffix(strings.Join(k.Log, ""), "(debug lines)"); {
		case k.Log == nil:
			place = places[1]
		case !k.Server && len(k.Log) == 1 && debug:
			place = places[3]
		case !k.Server:
			place = places[2]
		}
		found[place] = append(found[place], "`"+string(k.ID)+"`")
	}
	var b strings.Builder
	b.WriteString("| seen in | finding |\n| --- | --- |\n")
	for _, place := range places {
		fmt.Fprintf(&b, "| %s | %s |\n", place, strings.Join(found[place], ", "))
	}
	generated(t, filepath.Join("guides", "troubleshooting.md"), map[string]string{"doctor": b.String()})
}
