package doctor_test

import (
	"io/fs"
	"os"
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

// TestMessages checks that the server logs each message that a pattern expects.
func TestMessages(t *testing.T) {
	var source strings.Builder
	root := os.DirFS("../..")
	for _, folder := range []string{"cmd", "internal"} {
		must.OK(t, fs.WalkDir(root, folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.HasPrefix(path, "internal/doctor/") {
				return err
			}
			text, err := fs.ReadFile(root, path)
			source.Write(text)
			return err
		}))
	}
	checked := 0
	for _, k := range doctor.Kinds() {
		for _, pattern := range k.Log {
			_, expression, found := strings.Cut(pattern, "msg=^")
			if !found {
				continue
			}
			for message := range strings.SplitSeq(strings.Trim(expression, "()$"), "|") {
				checked++
				if !strings.Contains(source.String(), `"`+message) {
					t.Errorf("%s expects the message %q, which the server does not log", k.ID, message)
				}
			}
		}
	}
	if checked == 0 {
		t.Error("no pattern expects a message")
	}
}
