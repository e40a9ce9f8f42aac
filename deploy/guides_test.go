package deploy

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// TestValuesOfPages renders the chart with all values on the pages about it. Blocks with an image are
// complete, and their configuration must be valid. Other blocks are added to complete values.
func TestValuesOfPages(t *testing.T) {
	for _, page := range []string{
		"../docs/guides/kubernetes.md", "../docs/guides/kubernetes-resources.md", "../docs/guides/translating.md",
	} {
		text := must.ReadFile(t, page)
		rendered := 0
		for _, m := range yamlBlock.FindAllStringSubmatchIndex(text, -1) {
			block := text[m[2]:m[3]]
			number := strings.Count(text[:m[2]], "\n") + 1
			about := strings.HasPrefix(block, "# values.yaml") || strings.HasSuffix(page, "/kubernetes.md")
			if strings.HasPrefix(block, "apiVersion: ") || !about {
				continue
			}
			rendered++
			t.Run(fmt.Sprintf("%s:%d", filepath.Base(page), number), func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "values.yaml")
				writeFile(t, file, strings.ReplaceAll(block, "$argon2id$...", someHash))
				if strings.Contains(block, "\nimage:") {
					loadConfig(t, render(t, file))
					return
				}
				base := []string{"--values", filepath.Join(chart, "ci", "metallb-values.yaml")}
				if strings.HasPrefix(block, "existingSecret: ") { // has the whole configuration
					base = []string{"--set", "image.repository=babelftp"}
				}
				helmTemplate(t, append(base, "--values", file)...)
			})
		}
		if rendered == 0 {
			t.Errorf("%s shows no values", page)
		}
	}
}
