package doctor_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/doctor"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// TestKeys checks that the reference documents each key of a finding.
func TestKeys(t *testing.T) {
	var known []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-zA-Z0-9_.]+)` \\|").
		FindAllStringSubmatch(must.ReadFile(t, "../../docs/configuration.md"), -1) {
		known = append(known, m[1])
	}
	named := 0
	for _, k := range doctor.Kinds() {
		for _, key := range k.Keys {
			named++
			found := false
			for _, have := range known {
				found = found || have == key || strings.HasPrefix(have, key+".")
			}
			if !found {
				t.Errorf("%s names the key %s, which the reference does not have", k.ID, key)
			}
		}
	}
	if named == 0 {
		t.Error("no finding names a key")
	}
}
