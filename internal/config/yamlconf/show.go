package yamlconf

import (
	"encoding"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/base/contract"
)

// Redacted replaces secrets in the result of [Show].
const Redacted = "[redacted]"

// Show returns a section as YAML, without values that are not set in it and in defaults, a section of the same type.
// Secrets are redacted, and so are the passwords and queries of URLs, which may have tokens. The paths of services that
// are called, which have the key url, are redacted as well.
func Show[T any](section, defaults *T) (string, error) {
	node := nodeFor("", reflect.ValueOf(section), reflect.ValueOf(defaults))
	if node == nil {
		return "", nil
	}
	text, err := yaml.Marshal(node)
	return string(text), err
}

// nodeFor returns the node of a value, or nil if it is not set. key is the key of the value, or of its list. initial is
// the default, or the zero Value.
func nodeFor(key string, v, initial reflect.Value) *yaml.Node {
	if !v.IsValid() || v.IsZero() && (!initial.IsValid() || initial.IsZero()) {
		return nil
	}
	if v.Kind() == reflect.Pointer && !isText(v) {
		if initial.IsValid() {
			initial = initial.Elem()
		}
		return nodeFor(key, v.Elem(), initial)
	}
	switch {
	case IsScalar(v.Type()) || isText(v):
		return scalarFor(key, v)
	case v.Kind() == reflect.Map:
		return mapFor(v)
	case v.Kind() == reflect.Slice:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			if item := nodeFor(key, v.Index(i), reflect.Value{}); item != nil {
				node.Content = append(node.Content, item)
			}
		}
		return node
	}
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range FieldsOf(v.Type()) {
		field, err := v.FieldByIndexErr(f.Index)
		if err != nil { // below a pointer that is not set
			continue
		}
		var ofDefault reflect.Value
		if initial.IsValid() {
			ofDefault, _ = initial.FieldByIndexErr(f.Index)
		}
		name := f.Tag.Get("yaml")
		if value := nodeFor(name, field, ofDefault); value != nil {
			node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, value)
		}
	}
	if len(node.Content) == 0 {
		return nil
	}
	return node
}

// mapFor returns the node of a map, sorted by key.
func mapFor(v reflect.Value) *yaml.Node {
	entries := map[string]reflect.Value{}
	for _, key := range v.MapKeys() {
		entries[textFor(key)] = v.MapIndex(key)
	}
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		value := nodeFor(name, entries[name], reflect.Value{})
		if value == nil {
			value = &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
		}
		node.Content = append(node.Content, stringNode(name), value)
	}
	return node
}

// isText reports whether a value has a text form of its own.
func isText(v reflect.Value) bool {
	switch v.Interface().(type) {
	case encoding.TextMarshaler, fmt.Stringer:
		return true
	}
	return false
}

// textFor returns the text of a scalar.
func textFor(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case fmt.Stringer: // also durations and languages
		return value.String()
	case encoding.TextMarshaler:
		if text, err := value.MarshalText(); err == nil {
			return string(text)
		}
	}
	if v.Kind() == reflect.String {
		return v.String()
	}
	return fmt.Sprint(v.Interface())
}

func scalarFor(key string, v reflect.Value) *yaml.Node {
	if _, secret := v.Interface().(contract.Secret); secret {
		return stringNode(Redacted)
	}
	text := textFor(v)
	switch v.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		if !isText(v) {
			return &yaml.Node{Kind: yaml.ScalarNode, Value: text}
		}
	}
	return stringNode(withoutCredentials(key, text))
}

func stringNode(text string) *yaml.Node {
	node := &yaml.Node{}
	node.SetString(text)
	return node
}

// withoutCredentials redacts what may be secret in a URL. Other texts are returned unchanged.
func withoutCredentials(key, text string) string {
	scheme, rest, found := strings.Cut(text, "://")
	if !found || strings.ContainsAny(scheme, " \t\n") {
		return text
	}
	u, err := url.Parse(text)
	if err != nil { // it cannot be said which part is secret
		return scheme + "://" + Redacted
	}
	if u.User != nil {
		_, rest, _ = strings.Cut(rest, "@")
		rest = Redacted + "@" + rest
	}
	if base, _, found := strings.Cut(rest, "#"); found {
		rest = base + "#" + Redacted
	}
	if base, _, found := strings.Cut(rest, "?"); found {
		rest = base + "?" + Redacted
	}
	if base, path, _ := strings.Cut(rest, "/"); key == "url" && path != "" {
		rest = base + "/" + Redacted
	}
	return scheme + "://" + rest
}
