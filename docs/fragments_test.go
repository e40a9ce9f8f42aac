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

// A block is a fenced block of a page.
type block struct {
	page   string
	number int // of its first line
	fence  string
	text   string
}

func (b block) name() string { return fmt.Sprintf("%s:%d", b.page, b.number) }

// blocks returns the blocks of all pages in these languages.
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

// A schema is as much of a JSON Schema as this package asks for.
type schema struct {
	Ref                  string            `json:"$ref"`
	AllOf                []schema          `json:"allOf"`
	AnyOf                []schema          `json:"anyOf"`
	Properties           map[string]schema `json:"properties"`
	AdditionalProperties *schema           `json:"additionalProperties"`
	Definitions          map[string]schema `json:"definitions"`
}

// UnmarshalJSON also takes true and false, which say whether any value is right.
func (s *schema) UnmarshalJSON(text []byte) error {
	if text[0] != '{' {
		return nil
	}
	type plain schema
	return json.Unmarshal(text, (*plain)(s))
}

// configurationSchema is the schema of the configuration, and chartSchema that of the chart's values.
func configurationSchema() schema { return decodeSchema(config.Schema()) }

func chartSchema(t *testing.T) schema {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "babelftp", "values.schema.json"))
	must.OK(t, err)
	return decodeSchema(text)
}

// decodeSchema panics where the text, which other tests have checked, is no schema.
func decodeSchema(text []byte) (s schema) {
	if err := json.Unmarshal(text, &s); err != nil {
		panic(err)
	}
	return s
}

// child returns the schemas that the value of a key must meet. It returns none where there is no such key.
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
	if len(found) == 0 && s.AdditionalProperties != nil &&
		(s.AdditionalProperties.Ref != "" || s.AdditionalProperties.Properties != nil) {
		found = append(found, *s.AdditionalProperties)
	}
	return found
}

// has reports whether a path of keys leads to a value.
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

// partOf puts a part of a configuration where it belongs in a complete one: to the server, or to the tenant acme if
// it has another key.
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

// merge adds the values of from to those of to.
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

// How blocks begin that are values of the chart, objects of Kubernetes, and rules of a language. On the page about
// the chart all others are values.
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

// TestFragments loads every part of a configuration that a page shows, within a complete one. The tests of deploy
// load values of the chart.
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
	// A dottedKey is a path of keys in the words of a page, such as passive.ports or tenants.acme.bucket.
	dottedKey = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+$`)
)

// TestKeys wants each path of keys that a page names to be one of the configuration, of a tenant, of a user or of the
// chart's values.
func TestKeys(t *testing.T) {
	s, chart := configurationSchema(), chartSchema(t)
	found := 0
	for _, page := range pages(t) {
		if page == "CONTRIBUTING.md" {
			continue // it shows how to add a key
		}
		for _, l := range lines(t, page) {
			for _, m := range inlineCode.FindAllStringSubmatch(l.text, -1) {
				if l.fence != "" || !dottedKey.MatchString(m[1]) || strings.HasSuffix(m[1], ".yaml") {
					continue
				}
				path := strings.Split(m[1], ".")
				if !isKey(s, chart, path[0]) {
					continue // another file, package or program
				}
				found++
				if !isKey(s, chart, path...) {
					t.Errorf("%s:%d: there is no key %s", page, l.number, m[1])
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("the pages name %d paths of keys", found)
	}
}

// isKey also takes keys of a tenant and of a user, and those of the server below config of the chart. What resources
// has is Kubernetes' own.
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
