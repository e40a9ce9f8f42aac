package deploy

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden compares the rendered chart with testdata/golden: once with most features, once with the load
// balancer that module nlbtest builds, and once with custom resources. TestKube covers the other files of values. To
// write the golden files: go test ./deploy -run TestGolden -update
func TestGolden(t *testing.T) {
	for _, name := range []string{"aws", "metallb", "customresources"} {
		t.Run(name, func(t *testing.T) {
			golden := filepath.Join("testdata", "golden", name+".yaml")
			rendered := renderText(t, filepath.Join(chart, "ci", name+"-values.yaml"))
			if *update {
				must.WriteFile(t, golden, rendered)
				return
			}
			now, err := os.ReadFile(golden)
			must.OK(t, err)
			if string(now) != rendered {
				t.Errorf(
					"%s is not what the chart renders now: go test ./deploy -run TestGolden -update, and read the "+
						"difference", golden)
			}
		})
	}
}

// TestNetworkLoadBalancer checks that the load balancer in testdata/nlb.yaml belongs to the rendered Service.
// Module nlbtest builds it, which takes minutes.
func TestNetworkLoadBalancer(t *testing.T) {
	load := func(name string) string {
		text := must.ReadFile(t, filepath.Join("testdata", name))
		return text
	}
	made := load("nlb.yaml")
	for document := range strings.SplitSeq(load("golden/aws.yaml"), "\n---\n") {
		if strings.Contains(document, "\n  type: LoadBalancer\n") &&
			!strings.Contains(made, fmt.Sprintf("\n# %x.\n", sha256.Sum256([]byte(document)))) {
			t.Error("the Service has changed: cd deploy/nlbtest && go test -update, and read the difference")
		}
	}
}
