package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A block is a fenced block on a page.
type block struct {
	page   string
	number int // number of the first line
	fence  string
	text   string
}

func (b block) name() string { return fmt.Sprintf("%s:%d", b.page, b.number) }

// blocks returns the blocks in these languages on all pages.
func blocks(t *testing.T, fences ...string) []block {
	t.Helper()
	var all []block
	for _, page := range pages(t) {
		last := -1
		for _, l := range lines(t, page) {
			switch {
			case !slices.Contains(fences, l.fence):
			case l.number == last+1:
				all[len(all)-1].text += l.text + "\n"
				last++
			default:
				all = append(all, block{page, l.number, l.fence, l.text + "\n"})
				last = l.number
			}
		}
	}
	return all
}

// A schema is the subset of JSON Schema that the tests need.
type schema struct {
	Ref                  string            `json:"$ref"`
	AllOf                []schema          `json:"allOf"`
	AnyOf                []schema          `json:"anyOf"`
	Properties           map[string]schema `json:"properties"`
	AdditionalProperties *schema           `json:"additionalProperties"`
	Items                *schema           `json:"items"`
	Definitions          map[string]schema `json:"definitions"`
}

// UnmarshalJSON also accepts true and false, which are schemas too.
func (s *schema) UnmarshalJSON(text []byte) error {
	if text[0] != '{' {
		return nil
	}
	type plain schema
	return json.Unmarshal(text, (*plain)(s))
}

// configurationSchema returns the schema of the configuration.
func configurationSchema() schema { return decodeSchema(config.Schema()) }

func chartSchema(t *testing.T) schema {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "babelftp", "values.schema.json"))
	must.OK(t, err)
	return decodeSchema(text)
}

// decodeSchema panics for invalid schemas, because other tests have checked them.
func decodeSchema(text []byte) (s schema) {
	if err := json.Unmarshal(text, &s); err != nil {
		panic(err)
	}
	return s
}

// child returns the schemas for the value of a key, or none if the key is unknown.
func (s schema) child(key string, definitions map[string]schema) []schema {
	if s.Ref != "" {
		s = definitions[strings.TrimPrefix(s.Ref, "#/definitions/")]
	}
	var found []schema
	if p, ok := s.Properties[key]; ok {
		found = append(found, p)
	}
	for _, part := range slices.Concat(s.AllOf, s.AnyOf) {
		found = append(found, part.child(key, definitions)...)
	}
	if s.Items != nil { // the path has no index
		found = append(found, s.Items.child(key, definitions)...)
	}
	if len(found) == 0 && s.AdditionalProperties != nil &&
		(s.AdditionalProperties.Ref != "" || s.AdditionalProperties.Properties != nil) {
		found = append(found, *s.AdditionalProperties)
	}
	return found
}

// has reports whether the path of keys exists.
func (s schema) has(path ...string) bool {
	at := []schema{s}
	for _, key := range path {
		var next []schema
		for _, a := range at {
			next = append(next, a.child(key, s.Definitions)...)
		}
		at = next
	}
	return len(at) > 0
}

// partOf completes a part of a configuration. The part belongs to the top level, or to the tenant acme if it
// has a key that the top level does not have.
func partOf(s schema, text string) (string, error) {
	var part map[string]any
	if err := yaml.Unmarshal([]byte(text), &part); err != nil {
		return "", err
	}
	for key := range part {
		if !s.has(key) {
			part = map[string]any{"tenants": map[string]any{"acme": part}}
			break
		}
	}
	whole := map[string]any{
		"passive": map[string]any{"ports": "30000-30099"},
		"s3":      map[string]any{"region": "eu-west-1"},
		"tenants": map[string]any{"acme": map[string]any{
			"bucket": "acme-data", "users": map[string]any{"someone": map[string]any{"password_hash": hash}},
		}},
	}
	merge(whole, part)
	complete, err := yaml.Marshal(whole)
	return string(complete), err
}

// merge copies the values in from to to, recursively.
func merge(to, from map[string]any) {
	for key, value := range from {
		before, isMap := to[key].(map[string]any)
		if more, both := value.(map[string]any); isMap && both {
			merge(before, more)
			continue
		}
		to[key] = value
	}
}

// Prefixes of blocks with chart values, Kubernetes objects and language rules. On the page about the chart,
// blocks without a prefix are values.
const (
	firstLineOfValues = "# values.yaml"
	firstLineOfObject = "apiVersion: "
	firstLineOfRules  = "# language.yaml\n"
)

const chartPage = "docs/guides/kubernetes.md"

// isPart reports whether a block is a part of the server's configuration.
func (b block) isPart() bool {
	for _, head := range []string{firstLine + "\n", firstLineOfValues, firstLineOfObject, firstLineOfRules} {
		if strings.HasPrefix(b.text, head) {
			return false
		}
	}
	return filepath.ToSlash(b.page) != chartPage
}

// TestFragments completes and loads all parts of configurations on the pages. The tests of deploy check chart
// values.
func TestFragments(t *testing.T) {
	found := 0
	s := configurationSchema()
	for _, b := range blocks(t, "yaml") {
		if !b.isPart() {
			continue
		}
		found++
		t.Run(b.name(), func(t *testing.T) {
			text, err := partOf(s, b.text)
			must.OK(t, err)
			if err := load(t, text); err != nil {
				t.Errorf("%v\nValues of the chart begin with %q.", err, firstLineOfValues)
			}
		})
	}
	if found < 10 {
		t.Errorf("the pages show %d parts of configurations", found)
	}
}

var (
	inlineCode = regexp.MustCompile("`([^`]+)`")
	// A dottedKey is a path of keys in the text of a page, such as passive.ports or tenants.acme.bucket.
	dottedKey = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+$`)
)

// TestKeys checks that the paths of keys in the text of pages exist in the configuration or the chart values.
func TestKeys(t *testing.T) {
	s, chart := configurationSchema(), chartSchema(t)
	found := 0
	for _, page := range pages(t) {
		if page == "CONTRIBUTING.md" {
			continue // has an example of a new key
		}
		for _, l := range lines(t, page) {
			for _, m := range inlineCode.FindAllStringSubmatch(l.text, -1) {
				if l.fence != "" || !dottedKey.MatchString(m[1]) || strings.HasSuffix(m[1], ".yaml") {
					continue
				}
				path := strings.Split(m[1], ".")
				if !isKey(s, chart, path[0]) {
					continue // a key of another file, package or program
				}
				found++
				if !isKey(s, chart, path...) {
					t.Errorf("%s:%d: unknown key %s", page, l.number, m[1])
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("the pages name %d paths of keys", found)
	}
}

// isKey accepts paths from the top level of the configuration, from a tenant or a user, and chart values. The
// contents of resources are defined by Kubernetes.
func isKey(s, chart schema, path ...string) bool {
	tenant := []string{"tenants", "NAME"}
	switch {
	case path[0] == "resources":
		return true
	case path[0] == "config" && len(path) > 1:
		return s.has(path[1:]...)
	}
	return s.has(path...) || chart.has(path...) || s.has(append(tenant, path...)...) ||
		s.has(slices.Concat(tenant, []string{"users", "NAME"}, path)...)
}
