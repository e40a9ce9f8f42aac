package deploy

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden compares the rendered manifests of each file of values with testdata/golden. Module kubetest validates these files as the API
// server would. To write them: go test ./deploy -run TestGolden -update
func TestGolden(t *testing.T) {
	var want []string
	for _, values := range valueFiles(t) {
		name := strings.TrimSuffix(filepath.Base(values), "-values.yaml") + ".yaml"
		want = append(want, name)
		t.Run(name, func(t *testing.T) {
			golden := filepath.Join("testdata", "golden", name)
			rendered := renderText(t, values)
			if *update {
				if err := os.WriteFile(golden, []byte(rendered), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			now, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if string(now) != rendered {
				t.Errorf("%s is not what the chart renders now: go test ./deploy -run TestGolden -update, and read the difference", golden)
			}
		})
	}
	there, err := filepath.Glob(filepath.Join("testdata", "golden", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(there) != len(want) {
		t.Errorf("testdata/golden has %d files, but there are %d files of values: remove the others", len(there), len(want))
	}
}
