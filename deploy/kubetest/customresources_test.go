package kubetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// A resourceSchema validates custom resources of a kind like the API server.
type resourceSchema struct {
	structural *structural.Structural
	openAPI    validation.SchemaValidator
	rules      *cel.Validator
}

// resourceSchemas returns the schemas of the definitions in the chart by kind. It fails if the API server would
// refuse a definition.
func resourceSchemas(t *testing.T) map[string]*resourceSchema {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	files, err := filepath.Glob("../babelftp/charts/crds/crds/*.yaml")
	if err != nil || len(files) != 2 {
		t.Fatalf("got the definitions %q, want two: %v", files, err)
	}
	schemas := map[string]*resourceSchema{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decoded, _, err := decoder.Decode(content, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		v1 := decoded.(*apiextensionsv1.CustomResourceDefinition)
		apiextensionsv1.SetDefaults_CustomResourceDefinition(v1)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)
		var definition apiextensions.CustomResourceDefinition
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
			v1, &definition, nil); err != nil {
			t.Fatal(err)
		}
		definition.Status.StoredVersions = []string{v1.Spec.Versions[0].Name} // the API server sets it
		for _, err := range crdvalidation.ValidateCustomResourceDefinition(t.Context(), &definition) {
			t.Errorf("%s: %v", file, err)
		}
		schemas[definition.Spec.Names.Kind] = newResourceSchema(t, definition.Spec.Versions[0].Schema, definition.Spec.Validation)
	}
	return schemas
}

func newResourceSchema(t *testing.T, schemas ...*apiextensions.CustomResourceValidation) *resourceSchema {
	t.Helper()
	for _, schema := range schemas { // the conversion moves the schema of a single version
		if schema == nil {
			continue
		}
		s, err := structural.NewStructural(schema.OpenAPIV3Schema)
		if err != nil {
			t.Fatal(err)
		}
		openAPI, _, err := validation.NewSchemaValidator(schema.OpenAPIV3Schema)
		if err != nil {
			t.Fatal(err)
		}
		return &resourceSchema{s, openAPI, cel.NewValidator(s, true, celconfig.PerCallLimit)}
	}
	t.Fatal("the definition has no schema")
	return nil
}

// problems returns what is wrong with an object, like kubectl apply with the default --validate=strict.
func (s *resourceSchema) problems(t *testing.T, object map[string]any) []string {
	t.Helper()
	var all []string
	options := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	pruned := runtime.DeepCopyJSON(object)
	for _, path := range pruning.PruneWithOptions(pruned, s.structural, true, options) {
		all = append(all, fmt.Sprintf("unknown field %q", path))
	}
	object = runtime.DeepCopyJSON(object)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	errs := validation.ValidateCustomResource(nil, object, s.openAPI)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	if len(errs) == 0 {
		failed, _ := s.rules.Validate(t.Context(), nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, failed...)
	}
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}

// TestDefinitions checks that the API server accepts the definitions: that the schemas are structural, and the rules
// compile and are cheap enough.
func TestDefinitions(t *testing.T) { resourceSchemas(t) }

// TestRulesOfTheOldestRelease checks that the rules compile in the oldest release that the chart supports, 1.30, in
// which new rules may use what 1.29 has.
func TestRulesOfTheOldestRelease(t *testing.T) {
	env := environment.MustBaseEnvSet(version.MajorMinor(1, 29))
	var walk func(path string, s *structural.Structural)
	rules := 0
	walk = func(path string, s *structural.Structural) {
		if len(s.XValidations) > 0 {
			declared := model.SchemaDeclType(s, !strings.Contains(path, "."))
			compiled, err := cel.Compile(s, declared, celconfig.PerCallLimit, env, cel.NewExpressionsEnvLoader())
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			for i, c := range compiled {
				rules++
				if c.Error != nil {
					t.Errorf("%s: %s: %v", path, s.XValidations[i].Rule, c.Error)
				}
			}
		}
		for name, property := range s.Properties {
			walk(path+"."+name, &property)
		}
		if s.Items != nil {
			walk(path+"[]", s.Items)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
			walk(path+"{}", s.AdditionalProperties.Structural)
		}
	}
	for kind, s := range resourceSchemas(t) {
		walk(kind, s.structural)
	}
	if rules < 50 {
		t.Errorf("got %d rules, want more", rules)
	}
}

// A specCase is a spec and what the API server says about it. The tests of internal/config check what the server says.
type specCase struct {
	Name   string         `json:"name"`
	Kind   string         `json:"kind"`
	Spec   map[string]any `json:"spec"`
	Schema string         `json:"schema"` // a part of the message; empty if the API server accepts the spec
}

// TestSpecs checks what the schemas accept and refuse.
func TestSpecs(t *testing.T) {
	content, err := os.ReadFile("../../internal/config/testdata/resources/specs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []specCase
	if err := yaml.Unmarshal(content, &cases); err != nil {
		t.Fatal(err)
	}
	schemas := resourceSchemas(t)
	for _, tt := range cases {
		t.Run(tt.Kind+"/"+tt.Name, func(t *testing.T) {
			text, err := json.Marshal(map[string]any{"apiVersion": "babelftp.io/v1alpha1", "kind": tt.Kind,
				"metadata": map[string]any{"name": "acme", "namespace": "team-a"}, "spec": tt.Spec})
			if err != nil {
				t.Fatal(err)
			}
			object := decode(t, text)
			problems := strings.Join(schemas[tt.Kind].problems(t, object), "\n")
			switch {
			case tt.Schema == "" && problems != "":
				t.Errorf("the API server refuses it: %s", problems)
			case tt.Schema != "" && !strings.Contains(problems, tt.Schema):
				t.Errorf("got %q from the API server, want %q", problems, tt.Schema)
			}
		})
	}
}

// toInt64 converts whole numbers as the JSON decoder of the API server does.
func toInt64(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			v[key] = toInt64(item)
		}
	case []any:
		for i, item := range v {
			v[i] = toInt64(item)
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

// TestResources checks that the API server accepts the custom resources that the chart creates, and those that
// `babelftp kubernetes export` prints.
func TestResources(t *testing.T) {
	exported, err := os.ReadFile("../../cmd/babelftp/testdata/kubernetes/manifests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	schemas := resourceSchemas(t)
	for name, manifests := range map[string][]byte{
		"chart": render(t, "../babelftp/ci/customresources-values.yaml"), "export": exported,
	} {
		found := 0
		for _, document := range documents(t, manifests) {
			object := decode(t, document)
			schema := schemas[fmt.Sprint(object["kind"])]
			if schema == nil {
				continue
			}
			found++
			for _, problem := range schema.problems(t, object) {
				t.Errorf("%s in\n%s", problem, document)
			}
		}
		if found < 2 {
			t.Errorf("%s: got %d custom resources, want more", name, found)
		}
	}
}

// decode decodes a document as the API server does.
func decode(t *testing.T, document []byte) map[string]any {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal(document, &object); err != nil {
		t.Fatal(err)
	}
	return runtime.DeepCopyJSON(toInt64(object).(map[string]any))
}
