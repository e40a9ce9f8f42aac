package admin

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// The OpenAPI document is generated from the routes, from the types of their bodies and responses, and from the JSON
// Schema of the configuration. Descriptions are the comments of types and fields. To update it:
//
//	go test ./internal/admin -run TestOpenAPI -update
func TestOpenAPI(t *testing.T) {
	want := newDescriber(t).document()
	if flag.Lookup("update").Value.String() == "true" { // set by tests of the page too
		must.OK(t, os.WriteFile("openapi.json", want, 0o644))
	}
	if !bytes.Equal([]byte(must.ReadFile(t, "openapi.json")), want) {
		t.Error("openapi.json is outdated; run: go test ./internal/admin -run TestOpenAPI -update")
	}
}

// A schema is a JSON Schema or another part of the document.
type schema = map[string]any

// A describer creates the OpenAPI document.
type describer struct {
	t        *testing.T
	schemas  schema
	types    map[string]reflect.Type // by the names of their schemas
	comments map[string]string       // of types, as PACKAGE.TYPE, and fields, as PACKAGE.TYPE.FIELD
	parsed   map[string]bool         // packages with comments
}

func newDescriber(t *testing.T) *describer {
	t.Helper()
	return &describer{t, schema{}, map[string]reflect.Type{}, map[string]string{}, map[string]bool{}}
}

// document returns the document.
func (d *describer) document() []byte {
	paths := schema{}
	for _, rt := range NewHandler(Options{}).routes() {
		if paths[rt.path] == nil {
			paths[rt.path] = schema{}
		}
		paths[rt.path].(schema)[strings.ToLower(rt.method)] = d.operation(&rt)
	}
	d.schemaOf(reflect.TypeFor[Failure]())
	d.settings()
	document := schema{
		"openapi": "3.1.0",
		"info": schema{
			"title": "babelftp", "version": "1", "license": schema{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "The API for administrators. It is served on admin.listen and on the admin socket.",
		},
		"servers":  []any{schema{"url": Root}},
		"security": []any{schema{"password": []any{}}, schema{"cookie": []any{}}, schema{"certificate": []any{}}},
		"paths":    paths,
		"components": schema{
			"schemas": d.schemas,
			"securitySchemes": schema{
				"password": schema{"type": "http", "scheme": "basic",
					"description": "Name and password of an administrator in admin.users."},
				"cookie": schema{"type": "apiKey", "in": "cookie", "name": cookieTLS,
					"description": "Set by POST /login. Its name lacks __Host- without TLS."},
				"certificate": schema{"type": "mutualTLS",
					"description": "A client certificate of admin.tls.client_ca_file."},
			},
			"responses": schema{"Failure": schema{
				"description": "The request failed.",
				"content":     schema{mediaJSON: schema{"schema": ref("Failure")}},
			}},
		},
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	must.OK(d.t, e.Encode(document))
	return b.Bytes()
}

func ref(name string) schema { return schema{"$ref": "#/components/schemas/" + name} }

// operation describes a route.
func (d *describer) operation(rt *route) schema {
	description := "Needs the role " + rt.role.String() + "."
	if rt.event != "" {
		description += " The audit log has it as `" + rt.event + "`."
	}
	failure := schema{"$ref": "#/components/responses/Failure"}
	responses := schema{"default": failure}
	status := cmp.Or(rt.status, http.StatusOK)
	response := schema{"description": http.StatusText(status)}
	if status != http.StatusNoContent {
		response["content"] = schema{rt.media: schema{"schema": d.response(rt)}}
	}
	if headers := headersOf(rt, status); len(headers) > 0 {
		response["headers"] = headers
	}
	responses[fmt.Sprint(status)] = response
	o := schema{"operationId": operationID(rt), "summary": rt.summary, "description": description}
	var parameters []any
	for _, match := range regexp.MustCompile(`{(\w+)}`).FindAllStringSubmatch(rt.path, -1) {
		parameters = append(parameters, schema{"name": match[1], "in": "path", "required": true,
			"schema": schema{"type": "string"}})
	}
	for _, p := range rt.query {
		of := p.schema
		if of == nil {
			of = schema{"type": "string"}
		}
		parameters = append(parameters, schema{"name": p.name, "in": "query", "required": p.required,
			"description": p.meaning, "schema": of})
	}
	if rt.ifMatch {
		parameters = append(parameters, schema{"name": "If-Match", "in": "header", "required": true,
			"description": "The ETag of the version to change, or `*`.", "schema": schema{"type": "string"}})
		responses["412"], responses["428"] = failure, failure
	}
	if len(parameters) > 0 {
		o["parameters"] = parameters
	}
	if rt.body != nil {
		content := schema{}
		for _, media := range rt.accepted {
			content[media] = schema{"schema": d.schemaOf(rt.body)}
		}
		o["requestBody"] = schema{"required": true, "content": content}
		responses["409"], responses["422"] = failure, failure
	}
	if strings.Contains(rt.path, "{") {
		responses["404"] = failure
	}
	o["responses"] = responses
	return o
}

// response returns the schema of a response. Streams are described as text.
func (d *describer) response(rt *route) schema {
	switch {
	case rt.response != nil:
		return d.schemaOf(rt.response)
	case rt.media == mediaJSON:
		return schema{"type": "object"}
	}
	return schema{"type": "string"}
}

// headersOf describes the headers of a response.
func headersOf(rt *route, status int) schema {
	headers := schema{}
	if rt.response != nil && rt.response.Implements(reflect.TypeFor[headed]()) {
		headers["ETag"] = schema{"description": "The version, for If-Match.", "schema": schema{"type": "string"}}
		if status == http.StatusCreated {
			headers["Location"] = schema{"description": "The new path.", "schema": schema{"type": "string"}}
		}
	}
	return headers
}

// operationID returns a name such as getUsersByTenantAndName.
func operationID(rt *route) string {
	id, joint := strings.ToLower(rt.method), "By"
	for _, part := range strings.FieldsFunc(rt.path, func(r rune) bool { return strings.ContainsRune("/{}.-_", r) }) {
		if strings.Contains(rt.path, "{"+part+"}") {
			id, joint = id+joint+capital(part), "And"
			continue
		}
		id += capital(part)
	}
	return id
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// schemaOf returns the schema of a type of Go in JSON, or a reference to it.
func (d *describer) schemaOf(t reflect.Type) schema {
	words, isEnum := reflect.Zero(t).Interface().(yamlconf.Enum)
	isText := t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
	switch {
	case t == reflect.TypeFor[time.Time]():
		return schema{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return schema{"type": "object"}
	case t == reflect.TypeFor[config.Settings]():
		return ref("UserSettings")
	case t == reflect.TypeFor[settingsPatch]():
		return ref("UserSettingsPatch")
	case isEnum && (isText || t.Kind() == reflect.String):
		return schema{"type": "string", "enum": words.Values()}
	case isText:
		return schema{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint16:
		return schema{"type": "integer"}
	case reflect.Float64:
		return schema{"type": "number"}
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Pointer:
		return d.schemaOf(t.Elem())
	case reflect.Slice:
		return schema{"type": "array", "items": d.schemaOf(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": d.schemaOf(t.Elem())}
	case reflect.Interface:
		return schema{}
	case reflect.Struct:
		return d.object(t)
	}
	d.t.Fatalf("no rule describes a %s", t)
	return nil
}

// object describes a struct in the components, and returns a reference. Anonymous structs are described in place.
func (d *describer) object(t reflect.Type) schema {
	name := t.Name()
	if name == "" {
		return d.properties(t)
	}
	name = capital(name)
	if other, known := d.types[name]; known {
		if other != t {
			d.t.Fatalf("%s and %s have the same name: rename one", other, t)
		}
		return ref(name)
	}
	d.types[name] = t
	d.schemas[name] = schema{}
	s := d.properties(t)
	if text := d.comment(t, ""); text != "" {
		s["description"] = sentence(regexp.MustCompile(`^An? \w+ is `).ReplaceAllString(text, ""), t.Name())
	}
	d.schemas[name] = s
	return ref(name)
}

// properties describes the fields of a struct.
func (d *describer) properties(t reflect.Type) schema {
	properties, required := schema{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		s := d.schemaOf(f.Type)
		optional := strings.Contains(options, "omit")
		if f.Type.Kind() == reflect.Pointer && (!optional || isPatch(t)) {
			s = nullable(s)
		}
		if text := d.comment(owner(t, f), f.Name); text != "" {
			s = described(s, text)
		}
		if name == passwordField {
			s["format"], s["writeOnly"] = "password", true
		}
		properties[name] = s
		if !optional {
			required = append(required, name)
		}
	}
	s := schema{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	if strings.HasPrefix(t.Name(), "new") || isPatch(t) { // bodies of requests
		s["additionalProperties"] = false
	}
	return s
}

func isPatch(t reflect.Type) bool { return strings.HasSuffix(t.Name(), "Patch") }

// owner returns the struct that declares a field, which may be embedded in t.
func owner(t reflect.Type, f reflect.StructField) reflect.Type {
	if len(f.Index) > 1 {
		t = t.FieldByIndex(f.Index[:len(f.Index)-1]).Type
	}
	return t
}

// nullable returns a schema that also accepts null.
func nullable(s schema) schema {
	if kind, ok := s["type"].(string); ok && s["enum"] == nil {
		s["type"] = []string{kind, "null"}
		return s
	}
	return schema{"anyOf": []any{s, schema{"type": "null"}}}
}

// described returns a schema with a description.
func described(s schema, text string) schema {
	s = cloned(s)
	s["description"] = text
	return s
}

func cloned(s schema) schema {
	clone := schema{}
	for key, value := range s {
		clone[key] = value
	}
	return clone
}

const modulePath = "github.com/babelftp/babelftp/"

// comment returns the comment of a type, or of its field.
func (d *describer) comment(t reflect.Type, field string) string {
	if !strings.HasPrefix(t.PkgPath(), modulePath) {
		return ""
	}
	if !d.parsed[t.PkgPath()] {
		d.parsed[t.PkgPath()] = true
		d.parse(t.PkgPath())
	}
	return d.comments[strings.TrimSuffix(t.PkgPath()+"."+t.Name()+"."+field, ".")]
}

// parse reads the comments of the structs in a package.
func (d *describer) parse(pkg string) {
	names, err := filepath.Glob(filepath.Join("../..", strings.TrimPrefix(pkg, modulePath), "*.go"))
	must.OK(d.t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		must.OK(d.t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			decl, ok := n.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE {
				return true
			}
			for _, s := range decl.Specs {
				spec := s.(*ast.TypeSpec)
				of, ok := spec.Type.(*ast.StructType)
				if !ok {
					continue
				}
				at := pkg + "." + spec.Name.Name
				d.comments[at] = oneLine(decl.Doc)
				for _, f := range of.Fields.List {
					for _, n := range f.Names {
						d.comments[at+"."+n.Name] = sentence(cmp.Or(oneLine(f.Doc), oneLine(f.Comment)), n.Name)
					}
				}
			}
			return true
		})
	}
}

func oneLine(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// sentence removes the name of a field at the beginning of its comment, which differs from the key in JSON.
func sentence(text, field string) string {
	for _, verb := range []string{" is ", " are ", " has ", " have "} {
		if rest, ok := strings.CutPrefix(text, field+verb); ok {
			text = rest
		}
	}
	runes := []rune(text)
	if len(runes) > 1 && unicode.IsLower(runes[0]) {
		runes[0] = unicode.ToUpper(runes[0])
	}
	if text = string(runes); text != "" && !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// settings adds the schemas of the settings of users, which come from the schema of the configuration.
func (d *describer) settings() {
	var of struct{ Definitions map[string]schema }
	must.OK(d.t, json.Unmarshal(config.Schema(), &of))
	for _, patch := range []bool{false, true} {
		s := &settingsDescriber{d, of.Definitions, patch}
		s.section(reflect.TypeFor[config.User]())
	}
	d.schemas["UserSettings"].(schema)["description"] = "The keys of a user in the configuration."
	d.schemas["UserSettingsPatch"].(schema)["description"] = "Changed keys of a user in the configuration. null removes a key."
}

// A settingsDescriber converts the schema of a section of the configuration.
type settingsDescriber struct {
	*describer
	definitions map[string]schema
	patch       bool // null removes a value
}

// section adds the schema of a section to the components and returns its name.
func (d *settingsDescriber) section(t reflect.Type) string {
	name := map[string]string{"User": "UserSettings", "Scope": "UserLimits", "UserTLS": "UserTLS"}[t.Name()]
	name = cmp.Or(name, "User"+t.Name())
	if d.patch {
		name += "Patch"
	}
	properties := schema{}
	for _, f := range reflect.VisibleFields(t) {
		key := f.Tag.Get("yaml")
		if key == "" || strings.HasPrefix(key, "password_hash") {
			continue
		}
		from := d.definitions[t.Name()]["properties"].(schema)[key].(schema)
		var s schema
		if f.Type.Kind() == reflect.Struct && !yamlconf.IsScalar(f.Type) {
			s = ref(d.section(f.Type))
		} else {
			s = d.value(from)
		}
		if d.patch {
			s = nullable(s)
		}
		s = described(s, from["description"].(string))
		if text := f.Tag.Get("default"); text != "" {
			s["x-default"] = text
		}
		properties[key] = s
	}
	d.schemas[name] = schema{"type": "object", "additionalProperties": false, "properties": properties}
	return name
}

// value converts the schema of a value. The configuration accepts several types, of which responses use one.
func (d *settingsDescriber) value(from schema) schema {
	s := schema{}
	if words, ok := from["enum"].([]any); ok {
		s["type"] = "string"
		s["enum"] = slices.DeleteFunc(slices.Clone(words), func(word any) bool { return word == nil })
		return s
	}
	types := from["type"].([]any)
	switch {
	case slices.Contains(types, any("object")):
		s["type"] = "object"
		inner := d.value(from["additionalProperties"].(schema))
		if d.patch {
			inner = nullable(inner)
		}
		s["additionalProperties"] = inner
	case from["pattern"] == `^(true|false)$`:
		s["type"] = "boolean"
	case slices.Contains(types, any("array")) && !slices.Contains(types, any("string")):
		s["type"], s["items"] = "array", d.value(from["items"].(schema))
	case from["pattern"] == `^-?[0-9]+$`:
		s["type"], s["minimum"] = "integer", 0
	default:
		s["type"] = "string"
		if from["pattern"] != nil {
			s["pattern"] = from["pattern"]
		}
	}
	return s
}
