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

// TestGolden compares what the chart renders with testdata/golden: with most of its features, and with the load
// balancer that module nlbtest makes. TestKube creates what it renders with every file of values. To write
// them: go test ./deploy -run TestGolden -update
func TestGolden(t *testing.T) {
	for _, name := range []string{"aws", "metallb"} {
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

// TestNetworkLoadBalancer wants the load balancer of testdata/nlb.yaml to be that of the rendered Service. The module
// nlbtest makes it, which takes minutes.
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
