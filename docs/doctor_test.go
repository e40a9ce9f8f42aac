package docs_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/doctor"
)

// TestDoctor compares the table of what babelftp doctor finds with the program, or writes it with -update.
func TestDoctor(t *testing.T) {
	var b strings.Builder
	b.WriteString("| finding | seen of a server | seen in the log |\n| --- | --- | --- |\n")
	for _, k := range doctor.Kinds() {
		cause := doctor.English(k.Cause)
		for _, name := range []string{"Host", "Address", "Ports", "Seconds", "Command", "Name"} {
			cause = strings.ReplaceAll(cause, "{"+name+"}", "*"+strings.ToLower(name)+"*")
		}
		fmt.Fprintf(&b, "| `%s`: %s | %s | %s |\n", k.ID, cause, k.Server, k.Log)
	}
	generated(t, filepath.Join("guides", "troubleshooting.md"), map[string]string{"doctor": b.String()})
}
