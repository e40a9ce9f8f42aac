package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// schemaFiles returns the schemas with generated parts.
func schemaFiles() []string {
	return []string{"configuration.schema.json", "../../deploy/babelftp/values.schema.json"}
}

// TestSchemaIsPortable checks that the schemas only use what the validators of all Helm releases and of editors
// interpret in the same way. The tests of package deploy run several Helm releases.
func TestSchemaIsPortable(t *testing.T) {
	for _, name := range schemaFiles() {
		t.Run(name, func(t *testing.T) {
			for _, err := range portable(must.ReadFile(t, name)) {
				t.Error(err)
			}
		})
	}
}

// TestNotPortable checks that TestSchemaIsPortable detects schemas that validators reject or interpret differently.
func TestNotPortable(t *testing.T) {
	for _, tt := range []struct{ name, schema, want string }{
		// Reported for santhosh-tekuri/jsonschema 6.0.2, which is in Helm 3.18.5 to 3.21 and 4.0 to 4.2.
		{"equal-text-and-number", `{"enum": ["1.2", 1.2]}`, "#/enum: number and text in one list"},
		{"equal-numbers", `{"enum": [1, 1.0]}`, "#/enum: 1 and 1.0 are equal"},
		{"equal-texts", `{"enum": ["a", "b", "a"]}`, "#/enum: a and a are equal"},
		{"boolean-and-text", `{"enum": [true, "true"]}`, "#/enum: boolean and text in one list"},
		{"empty-enum", `{"enum": []}`, "#/enum: want a list with items"},
		{"equal-types", `{"type": ["string", "string"]}`, "#/type: string and string are equal"},
		{"number-and-integer", `{"type": ["number", "integer"]}`, "#/type: an integer is a number"},
		{"unknown-type", `{"type": "float"}`, `#/type: unknown type "float"`},
		{"equal-names", `{"required": ["a", "a"]}`, "#/required: a and a are equal"},
		{"no-branch", `{"anyOf": []}`, "#/anyOf: want a list with items"},
		{"unknown-keyword", `{"properties": {"a": {"minLenght": 1}}}`, `#/properties/a: unknown keyword "minLenght"`},
		{"later-draft", `{"dependentRequired": {}}`, `#: unknown keyword "dependentRequired"`},
		{"lost-reference", `{"$ref": "#/definitions/a"}`, "#/$ref: #/definitions/a does not exist"},
		{"remote-reference", `{"$ref": "https://example.com/a"}`, "#/$ref: https://example.com/a does not exist"},
		{"next-to-reference", `{"$ref": "#", "type": "object"}`, "#/$ref: draft 7 ignores its neighbor type"},
		{"pattern-of-go", `{"pattern": "(?i)a"}`, "#/pattern: (?i)a: (? is not the same in all languages"},
		{"pattern-of-javascript", `{"pattern": "a(?!b)"}`, "#/pattern: a(?!b): "},
		{"names-of-properties", `{"patternProperties": {"[": {}}}`, "#/patternProperties: [: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			errs := portable(tt.schema)
			if !slices.ContainsFunc(errs, func(err error) bool { return strings.HasPrefix(err.Error(), tt.want) }) {
				t.Errorf("got %v, want %s", errs, tt.want)
			}
		})
	}
}

// portable returns the parts of a schema that validators of JSON Schema (draft 7) may reject or interpret
// differently.
func portable(schema string) []error {
	decoder := json.NewDecoder(strings.NewReader(schema))
	decoder.UseNumber()
	var root any
	if err := decoder.Decode(&root); err != nil {
		return []error{err}
	}
	c := schemaCheck{root: root}
	c.schema("#", root)
	return c.errs
}

// A schemaCheck collects the problems with the schemas in a document.
type schemaCheck struct {
	root any
	errs []error
}

func (c *schemaCheck) add(path string, err error) {
	if err != nil {
		c.errs = append(c.errs, fmt.Errorf("%s: %w", path, err))
	}
}

// schema checks a schema and all nested schemas.
func (c *schemaCheck) schema(path string, s any) {
	keywords, ok := s.(map[string]any)
	if !ok {
		if _, ok := s.(bool); !ok {
			c.add(path, errors.New("want an object or a boolean"))
		}
		return
	}
	for _, keyword := range slices.Sorted(maps.Keys(keywords)) {
		at, v := path+"/"+keyword, keywords[keyword]
		switch keyword {
		case "properties", "patternProperties", "definitions":
			for _, name := range slices.Sorted(maps.Keys(v.(map[string]any))) {
				if keyword == "patternProperties" {
					c.add(at, pattern(name))
				}
				c.schema(at+"/"+name, v.(map[string]any)[name])
			}
		case "items", "additionalProperties", "propertyNames", "not":
			c.schema(at, v)
		case "anyOf", "allOf", "oneOf":
			c.add(at, different(v))
			for i, branch := range v.([]any) {
				c.schema(fmt.Sprint(at, "/", i), branch)
			}
		case "enum", "required":
			c.add(at, different(v))
		case "type":
			c.add(at, types(v))
		case "pattern":
			c.add(at, pattern(v.(string)))
		case "$ref":
			c.add(at, c.reference(v.(string), keywords))
		case "$schema", "title", "description", "default", "const", "minimum", "maximum", "minLength", "minProperties",
			"maxItems":
		default:
			c.add(path, fmt.Errorf("unknown keyword %q", keyword))
		}
	}
}

// different requires that the items of a list differ for every validator. santhosh-tekuri/jsonschema 6.0.2 compares
// numbers as text, so a list must not contain both text and numbers. The same applies to booleans in validators that
// convert values to text. Null is not equal to anything else.
func different(list any) error {
	items, _ := list.([]any)
	if len(items) == 0 {
		return errors.New("want a list with items")
	}
	kinds := map[string]bool{}
	for i, item := range items {
		if kind := kindOf(item); kind != "null" {
			kinds[kind] = true
		}
		for _, other := range items[:i] {
			if equal(item, other) {
				return fmt.Errorf("%v and %v are equal", other, item)
			}
		}
	}
	if len(kinds) > 1 {
		return fmt.Errorf("%s in one list", strings.Join(slices.Sorted(maps.Keys(kinds)), " and "))
	}
	return nil
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "text"
	}
	return "object"
}

func equal(a, b any) bool {
	x, isNumber := a.(json.Number)
	y, both := b.(json.Number)
	if isNumber && both {
		first, err1 := x.Float64()
		second, err2 := y.Float64()
		return err1 == nil && err2 == nil && first == second
	}
	return kindOf(a) == kindOf(b) && fmt.Sprint(a) == fmt.Sprint(b)
}

// types checks the keyword "type", which is a type or a list of types.
func types(v any) error {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, name := range list {
		if !slices.Contains([]any{"null", "boolean", "object", "array", "number", "string", "integer"}, name) {
			return fmt.Errorf("unknown type %q", name)
		}
	}
	if slices.Contains(list, any("number")) && slices.Contains(list, any("integer")) {
		return errors.New("an integer is a number")
	}
	return different(list)
}

// pattern requires a regular expression that Go, JavaScript and Python interpret in the same way.
func pattern(p string) error {
	if _, err := regexp.Compile(p); err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	for _, own := range []string{"(?", `\A`, `\z`, `\Q`, `\p`, "[[:"} {
		if strings.Contains(p, own) {
			return fmt.Errorf("%s: %s is not the same in all languages", p, own)
		}
	}
	return nil
}

// reference checks a reference and its neighboring keywords.
func (c *schemaCheck) reference(ref string, neighbors map[string]any) error {
	for name := range neighbors {
		if name != "$ref" {
			return fmt.Errorf("draft 7 ignores its neighbor %s", name)
		}
	}
	at := c.root
	for _, part := range strings.Split(ref, "/")[1:] {
		m, _ := at.(map[string]any)
		at = m[part]
	}
	if !strings.HasPrefix(ref, "#") || at == nil {
		return fmt.Errorf("%s does not exist", ref)
	}
	return nil
}
