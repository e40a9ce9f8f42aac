package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/base/contract"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// maxSecret is the maximum size of a value in a Secret, in bytes, as for a value in a file.
const maxSecret = 64 << 10

// A specProblem is a problem with a spec.
type specProblem struct {
	path    string
	reason  ResourceReason
	message string
}

// A specReader converts a spec to a section of the configuration. Its problems name the keys of the spec, and no
// message contains the content of a Secret.
type specReader struct {
	from     resolver
	fields   map[reflect.Type][]SpecField // the results of SpecFields
	problems []specProblem
}

// fieldsOf is like [SpecFields], and remembers the result.
func (r *specReader) fieldsOf(t reflect.Type) []SpecField {
	fields, known := r.fields[t]
	if !known {
		fields = SpecFields(t)
		r.fields[t] = fields
	}
	return fields
}

// A resolver finds what references in a spec refer to.
type resolver interface {
	// secret returns the value of a key in a Secret.
	secret(name, key string) (text string, err error)
	// file returns the name of a file with the value of a key in a Secret. role is the key without _secret.
	file(name, key, role string) (file string, err error)
	// configMap returns the texts in a ConfigMap.
	configMap(name string) (data map[string]string, err error)
}

// A missingError is the error for a Secret, a ConfigMap, or a key in it that does not exist.
type missingError struct {
	reason  ResourceReason
	message string
}

func (e *missingError) Error() string { return e.message }

func (r *specReader) report(p yamlconf.Path, reason ResourceReason, format string, args ...any) {
	r.problems = append(r.problems, specProblem{p.String(), reason, fmt.Sprintf(format, args...)})
}

// specRoot is the first element of paths in a spec.
const specRoot = "spec"

// read returns the section in a spec, which is JSON, or nil if it cannot be read.
func (r *specReader) read(kind ResourceKind, spec []byte) *yaml.Node {
	p := yamlconf.Path{specRoot}
	object, err := parseSpec(spec)
	if err != nil {
		r.report(p, ResourceInvalid, "%v", err)
		return nil
	}
	return r.section(p, object, SpecType(kind))
}

var errNoObject = errors.New("must be an object")

// parseSpec parses the JSON of a spec.
func parseSpec(spec []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(spec))
	d.UseNumber()
	var object map[string]any
	err := d.Decode(&object)
	if _, more := d.Token(); err != nil || object == nil || !errors.Is(more, io.EOF) {
		return nil, errNoObject
	}
	return object, nil
}

// section converts an object at p to a section whose struct is t.
func (r *specReader) section(p yamlconf.Path, object map[string]any, t reflect.Type) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	fields := r.fieldsOf(t)
	var texts []SpecField
	for _, key := range slices.Sorted(maps.Keys(object)) {
		at, value := p.Child(key), object[key]
		i := slices.IndexFunc(fields, func(f SpecField) bool { return f.Key == key })
		if i < 0 {
			r.report(at, ResourceInvalid, "%s", unknownSpecKey(t, fields, key))
			continue
		}
		f := fields[i]
		name := f.Field.Tag.Get("yaml")
		switch f.Form {
		case SpecConfigMap:
			texts = append(texts, f)
		case SpecSecret:
			if _, both := object[name]; both && name != key {
				r.report(at, ResourceInvalid, "%s and %s are both given: remove one", name, key)
				continue
			}
			if text, ok := r.secret(at, value, f); ok {
				add(n, name, textNode(text))
			}
		case SpecValue:
			add(n, name, r.value(at, value, f.Field.Type))
		}
	}
	for _, f := range texts {
		r.texts(p, n, object[f.Key], f)
	}
	return n
}

// value converts a value at p for a field of type t.
func (r *specReader) value(p yamlconf.Path, value any, t reflect.Type) *yaml.Node {
	if yamlconf.IsScalar(t) {
		return plainNode(value)
	}
	section := t
	for section.Kind() == reflect.Pointer {
		section = section.Elem()
	}
	object, isObject := value.(map[string]any)
	list, isList := value.([]any)
	switch {
	case section.Kind() == reflect.Struct && isObject:
		return r.section(p, object, section)
	case t.Kind() == reflect.Map && isObject:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, key := range slices.Sorted(maps.Keys(object)) {
			add(n, key, r.value(p.Child(key), object[key], t.Elem()))
		}
		return n
	case t.Kind() == reflect.Slice && isList:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i, item := range list {
			n.Content = append(n.Content, r.value(p.Child(strconv.Itoa(i)), item, t.Elem()))
		}
		return n
	}
	return plainNode(value)
}

// plainNode converts a value of JSON.
func plainNode(value any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			add(n, key, plainNode(value[key]))
		}
		return n
	case []any:
		n.Kind = yaml.SequenceNode
		for _, item := range value {
			n.Content = append(n.Content, plainNode(item))
		}
		return n
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	}
	return textNode(fmt.Sprint(value))
}

func textNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

// add adds an entry to a mapping.
func add(n *yaml.Node, key string, value *yaml.Node) {
	n.Content = append(n.Content, textNode(key), value)
}

// unknownSpecKey says why a section, whose struct is t, does not have a key.
func unknownSpecKey(t reflect.Type, fields []SpecField, key string) string {
	if why := excludedKey(t, key); why != "" {
		return why
	}
	plain := strings.TrimSuffix(key, yamlconf.FileSuffix)
	for _, f := range fields {
		name := f.Field.Tag.Get("yaml")
		if f.Form != SpecSecret || name != key && name != plain {
			continue
		}
		if _, secret := reflect.Zero(f.Field.Type).Interface().(contract.Secret); secret && key == name {
			return fmt.Sprintf("is a secret, which a custom resource must not contain: store it in a Secret, and write "+
				"%s: {name: NAME}", f.Key)
		}
		return fmt.Sprintf("names a file of the server, which a custom resource must not: store the content in a Secret, and "+
			"write %s: {name: NAME}", f.Key)
	}
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.Key
	}
	return "unknown key: " + yamlconf.Suggest(key, known, "correct its name or remove it")
}

// References in a spec. Names are checked, so that none can name an object of another namespace.
var (
	objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
	objectKey  = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)
)

// reference returns the name and the key in a reference at p.
func (r *specReader) reference(p yamlconf.Path, value any, f SpecField) (name, key string, ok bool) {
	object, isObject := value.(map[string]any)
	if !isObject {
		r.report(p, ResourceInvalid, "must be a reference: write {name: NAME}")
		return "", "", false
	}
	key = f.DefaultKey
	for _, k := range slices.Sorted(maps.Keys(object)) {
		text, isText := object[k].(string)
		switch {
		case k == "name" && isText && objectName.MatchString(text):
			name = text
		case k == "name":
			r.report(p.Child(k), ResourceInvalid, "is not the name of an object in the namespace of the resource")
			return "", "", false
		case k == "key" && f.Form == SpecSecret && isText && objectKey.MatchString(text):
			key = text
		case k == "key" && f.Form == SpecSecret:
			r.report(p.Child(k), ResourceInvalid, "is not a key of a Secret: write letters, digits, -, _ and . only")
			return "", "", false
		default:
			r.report(p.Child(k), ResourceInvalid, "unknown key: a reference has the name of an object in the same namespace, and "+
				"of a Secret the key")
			return "", "", false
		}
	}
	if name == "" {
		r.report(p.Child("name"), ResourceInvalid, "is missing: write the name of an object in the namespace of the resource")
	}
	return name, key, name != ""
}

// secret returns the value that a reference at p refers to.
func (r *specReader) secret(p yamlconf.Path, value any, f SpecField) (text string, ok bool) {
	name, key, ok := r.reference(p, value, f)
	if !ok {
		return "", false
	}
	var err error
	if f.Field.Tag.Get("path") != "" {
		text, err = r.from.file(name, key, strings.TrimSuffix(f.Key, secretSuffix))
	} else {
		text, err = r.from.secret(name, key)
	}
	if err != nil {
		r.unresolved(p, err)
	}
	return text, err == nil
}

// unresolved reports the error of a resolver.
func (r *specReader) unresolved(p yamlconf.Path, err error) {
	reason := ResourceInvalid
	if missing, ok := errors.AsType[*missingError](err); ok {
		reason = missing.reason
	}
	r.report(p, reason, "%v", err)
}

// texts adds the texts in a ConfigMap to the section n at p. Texts in the section take precedence.
func (r *specReader) texts(p yamlconf.Path, n *yaml.Node, value any, f SpecField) {
	at := p.Child(f.Key)
	name, _, ok := r.reference(at, value, f)
	if !ok {
		return
	}
	data, err := r.from.configMap(name)
	if err != nil {
		r.unresolved(at, err)
		return
	}
	own := child(n, f.Field.Tag.Get("yaml"))
	if own.Kind != yaml.MappingNode {
		return // reported when it is decoded
	}
	ofMessages := f.Field.Type.Elem().Kind() == reflect.Map
	for _, key := range slices.Sorted(maps.Keys(data)) {
		into, tag := own, key
		if dot := strings.LastIndexByte(key, '.'); ofMessages && dot > 0 {
			into, tag = child(own, key[:dot]), key[dot+1:]
		}
		parsed, err := language.Parse(tag)
		switch {
		case err != nil || ofMessages && into == own:
			r.report(at, ResourceInvalid, "the key %q of the ConfigMap %q is not %s", key, name, map[bool]string{
				false: "a language tag: write it like fr", true: "a message with a language: write it like goodbye.fr",
			}[ofMessages])
		case into.Kind == yaml.MappingNode && !hasLanguage(into, parsed):
			add(into, parsed.String(), textNode(data[key]))
		}
	}
}

// child returns the value of a key in a mapping, which is added if it is missing.
func child(n *yaml.Node, key string) *yaml.Node {
	for pair := range slices.Chunk(n.Content, 2) {
		if pair[0].Value == key {
			return pair[1]
		}
	}
	value := &yaml.Node{Kind: yaml.MappingNode}
	add(n, key, value)
	return value
}

// hasLanguage reports whether a mapping has a text in a language.
func hasLanguage(n *yaml.Node, tag language.Tag) bool {
	for pair := range slices.Chunk(n.Content, 2) {
		if found, err := language.Parse(pair[0].Value); err == nil && found == tag {
			return true
		}
	}
	return false
}

// A ReferenceFinder finds what specs refer to. It is not safe for concurrent use.
type ReferenceFinder struct {
	fields map[reflect.Type][]SpecField
}

// ReferencesOf returns the names of the Secrets and ConfigMaps that a spec refers to, sorted.
func (f *ReferenceFinder) ReferencesOf(kind ResourceKind, spec []byte) (secrets, configMaps []string) {
	if f.fields == nil {
		f.fields = map[reflect.Type][]SpecField{}
	}
	names := &nameCollector{}
	r := specReader{from: names, fields: f.fields}
	r.read(kind, spec)
	for _, list := range []*[]string{&names.secrets, &names.configMaps} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return names.secrets, names.configMaps
}

// A nameCollector is a resolver that records names.
type nameCollector struct{ secrets, configMaps []string }

func (c *nameCollector) secret(name, _ string) (string, error) {
	c.secrets = append(c.secrets, name)
	return "", nil
}

func (c *nameCollector) file(name, key, _ string) (string, error) { return c.secret(name, key) }

func (c *nameCollector) configMap(name string) (map[string]string, error) {
	c.configMaps = append(c.configMaps, name)
	return nil, nil
}

// textOf returns a value of a Secret as text, without the line break at its end.
func textOf(content []byte) (string, error) {
	switch {
	case len(content) > maxSecret:
		return "", fmt.Errorf("is longer than %d bytes", maxSecret)
	case !utf8.Valid(content):
		return "", errors.New("is not UTF-8")
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r"), nil
}

// pathInSpec returns the path in a spec for a path in a section of the configuration, whose struct is t.
func pathInSpec(t reflect.Type, p yamlconf.Path) yamlconf.Path {
	q := yamlconf.Path{specRoot}
	for _, key := range p {
		for t != nil && t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch {
		case t == nil || yamlconf.IsScalar(t):
			t = nil
		case t.Kind() == reflect.Struct:
			fields := SpecFields(t)
			i := slices.IndexFunc(fields, func(f SpecField) bool { return f.Field.Tag.Get("yaml") == key })
			if t = nil; i >= 0 {
				key, t = fields[i].Key, fields[i].Field.Type
			}
		default:
			t = t.Elem()
		}
		q = append(q, key)
	}
	return q
}
