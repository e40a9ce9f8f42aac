package deploy

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden compares the rendered manifests of each file of values with testdata/golden. Module kubetest validates
// these files as the API server would. To write them: go test ./deploy -run TestGolden -update
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
				t.Errorf(
					"%s is not what the chart renders now: go test ./deploy -run TestGolden -update, and read the "+
						"difference", golden)
			}
		})
	}
	there, err := filepath.Glob(filepath.Join("testdata", "golden", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(there) != len(want) {
		t.Errorf(
			"testdata/golden has %d files, but there are %d files of values: remove the others", len(there), len(want))
	}
}

// TestNetworkLoadBalancer wants the load balancer of testdata/nlb.yaml to be that of the rendered Service. The module
// nlbtest makes it, which takes minutes.
func TestNetworkLoadBalancer(t *testing.T) {
	load := func(name string) string {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	made := load("nlb.yaml")
	for document := range strings.SplitSeq(load("golden/aws.yaml"), "\n---\n") {
		if strings.Contains(document, "\n  type: LoadBalancer\n") &&
			!strings.Contains(made, fmt.Sprintf("\n# %x.\n", sha256.Sum256([]byte(document)))) {
			t.Error("the Service has changed: cd deploy/nlbtest && go test -update, and read the difference")
		}
	}
}
