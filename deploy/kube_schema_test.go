//go:build kube

package deploy

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/testkit/kubeserver"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// resourcesPage is the guide about custom resources.
const resourcesPage = "../docs/guides/kubernetes-resources.md"

// definitions are the files with the definitions of custom resources.
const definitions = chart + "/charts/crds/crds/*.yaml"

// specs is a table of specs and what the API server says about them. The tests of internal/config check that the
// server says the same.
const specs = "../internal/config/testdata/resources/specs.yaml"

// A specCase is a row of the table.
type specCase struct {
	Name   string         `yaml:"name"`
	Kind   string         `yaml:"kind"`
	Spec   map[string]any `yaml:"spec"`
	Schema string         `yaml:"schema"` // part of the message; empty if the API server accepts the spec
}

// TestKubeDefinitions checks which resources the API server refuses, and that it accepts all resources in the guide.
func TestKubeDefinitions(t *testing.T) {
	k := kubeserver.Start(t)
	rules := applyDefinitions(t, k)
	k.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a}\n")
	var cases []specCase
	must.OK(t, yaml.Unmarshal([]byte(must.ReadFile(t, specs)), &cases))
	var messages strings.Builder
	for _, tt := range cases {
		t.Run(tt.Kind+"-"+tt.Name, func(t *testing.T) {
			text := resource(t, tt.Kind, "team-a", tt.Name, tt.Spec)
			_, err := k.For(t).Create(text, "Strict")
			if (err == nil) != (tt.Schema == "") || err != nil && !strings.Contains(err.Error(), tt.Schema) {
				t.Errorf("got %v, want %s", err, tt.Schema)
			}
			fmt.Fprintln(&messages, err)
			if unknown := unknownField.FindStringSubmatch(tt.Schema); unknown != nil {
				testPruned(t, k.For(t), text, unknown[1])
			}
		})
	}
	t.Run("long-name", func(t *testing.T) {
		text := resource(t, "FTPTenant", "team-a", strings.Repeat("a", 62), map[string]any{"bucket": "data"})
		_, err := k.For(t).Create(text, "Strict")
		fmt.Fprintln(&messages, err)
	})
	for _, rule := range rules {
		if !strings.Contains(messages.String(), rule) {
			t.Errorf("no refused resource fails the rule: %s", rule)
		}
	}
	t.Run("status-of-a-new-resource", func(t *testing.T) { // which nobody has seen yet
		text := resource(t, "FTPTenant", "team-a", "new", map[string]any{"bucket": "data"})
		o, err := k.For(t).Create(text, "Strict")
		if got := field(o, "status", "observedGeneration"); err != nil || got != -1.0 {
			t.Errorf("observedGeneration: %v, %v, want -1", got, err)
		}
	})
	t.Run("export", func(t *testing.T) {
		babelftp, exported := binary(t), 0
		for _, values := range valueFiles(t) {
			if strings.Contains(must.ReadFile(t, values), "\nexistingSecret: ") {
				continue // has no configuration
			}
			cmd := exec.CommandContext(
				t.Context(), babelftp, "kubernetes", "export", "--config", values, "--namespace", "team-a")
			manifests, err := cmd.Output()
			if err != nil {
				t.Errorf("%s: %v", values, err)
			}
			k.For(t).Apply(string(manifests))
			exported += strings.Count(string(manifests), "kind: FTPTenant\n")
		}
		if exported == 0 {
			t.Error("no values have a tenant")
		}
	})
	t.Run("guide", func(t *testing.T) {
		accepted := 0
		for _, m := range yamlBlock.FindAllStringSubmatch(must.ReadFile(t, resourcesPage), -1) {
			if strings.HasPrefix(m[1], "apiVersion: babelftp.io/") {
				k.For(t).Apply(m[1])
				accepted++
			}
		}
		if accepted == 0 {
			t.Error("the guide shows no resources")
		}
	})
}

var unknownField = regexp.MustCompile(`unknown field "(.*)"`)

// testPruned checks that the API server removes an unknown field if the client does not ask for a strict validation.
func testPruned(t *testing.T, k *kubeserver.Client, text, path string) {
	t.Helper()
	stored, err := k.Create(text, "Ignore")
	if err != nil {
		return // for another reason, such as a key that is missing now
	}
	if got := field(stored, strings.Split(path, ".")...); got != nil {
		t.Errorf("the API server keeps %s: %v", path, got)
	}
}

// applyDefinitions creates the definitions of the chart, and returns the messages of their rules.
func applyDefinitions(t *testing.T, k *kubeserver.Server) (rules []string) {
	t.Helper()
	files, err := filepath.Glob(definitions)
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions: %v", err)
	}
	for _, file := range files {
		text := must.ReadFile(t, file)
		k.Apply(text)
		var definition map[string]any
		must.OK(t, yaml.Unmarshal([]byte(text), &definition))
		rules = appendRules(rules, definition)
	}
	k.WaitFor("/apis/babelftp.io/v1alpha1/ftptenants")
	k.WaitFor("/apis/babelftp.io/v1alpha1/ftpusers")
	slices.Sort(rules)
	return slices.Compact(rules)
}

// appendRules appends the messages of all rules in a schema.
func appendRules(rules []string, schema any) []string {
	switch schema := schema.(type) {
	case map[string]any:
		for key, value := range schema {
			if key == "x-kubernetes-validations" {
				for _, rule := range list(value) {
					rules = append(rules, fmt.Sprint(rule["message"]))
				}
				continue
			}
			rules = appendRules(rules, value)
		}
	case []any:
		for _, value := range schema {
			rules = appendRules(rules, value)
		}
	}
	return rules
}

// field returns a nested value of a decoded object, or nil.
func field(o map[string]any, keys ...string) any {
	var at any = o
	for _, key := range keys {
		fields, _ := at.(map[string]any)
		at = fields[key]
	}
	return at
}

// list returns the mappings in a decoded list.
func list(v any) (all []map[string]any) {
	items, _ := v.([]any)
	for _, item := range items {
		if fields, ok := item.(map[string]any); ok {
			all = append(all, fields)
		}
	}
	return all
}

// resource returns an FTPTenant or FTPUser.
func resource(t *testing.T, kind, namespace, name string, spec map[string]any) string {
	t.Helper()
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "babelftp.io/v1alpha1", "kind": kind, "spec": spec,
		"metadata": map[string]any{"name": name, "namespace": namespace},
	})
	must.OK(t, err)
	return string(text)
}
