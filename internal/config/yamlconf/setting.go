package yamlconf

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// A Setting is a new value for a key of a section.
type Setting struct {
	Key   string     // as it was written, such as limits.sessions
	Path  Path       // the keys that lead to the value
	Value *yaml.Node // nil removes the key
}

// ParseSetting parses KEY=VALUE, where KEY is a key of a section whose struct is t. Keys of nested sections and maps
// follow a dot, as in limits.sessions=5. An empty VALUE removes the key. Lists are separated by commas, or written in
// YAML in brackets, like whole maps and sections in braces.
//
// Errors name the key and say what is valid. The value itself is checked when the section is decoded.
func ParseSetting(t reflect.Type, text string) (Setting, error) {
	key, value, found := strings.Cut(text, "=")
	switch {
	case !utf8.ValidString(text):
		return Setting{}, fmt.Errorf("%q is not UTF-8", text)
	case !found || key == "":
		return Setting{}, fmt.Errorf("%q is not KEY=VALUE: write %[2]s=VALUE, or %[2]s= to remove the key", text, text)
	}
	s := Setting{Key: key}
	path, leaf := findKey(t, key)
	if path == nil {
		return Setting{}, unknownSetting(t, key)
	}
	if s.Path = path; value == "" {
		return s, nil
	}
	var err error
	if s.Value, err = nodeOf(leaf, value); err != nil {
		return Setting{}, fmt.Errorf("%s %w", key, err)
	}
	return s, nil
}

// entryName stands for the name of an entry in the keys of a map.
const entryName = "NAME"

// KeysOf returns the keys of all values in a section whose struct is t, including the keys of nested sections. A key of
// a map ends in .NAME, a placeholder for the name of an entry.
func KeysOf(t reflect.Type) (keys []string) {
	for _, f := range FieldsOf(t) {
		key := f.Tag.Get("yaml")
		switch {
		case IsScalar(f.Type) && HasFileForm(f):
			keys = append(keys, key, key+FileSuffix)
		case f.Type.Kind() == reflect.Map && !IsScalar(f.Type):
			keys = append(keys, key+"."+entryName)
		case f.Type.Kind() == reflect.Struct && !IsScalar(f.Type):
			for _, inner := range KeysOf(f.Type) {
				keys = append(keys, key+"."+inner)
			}
		default:
			keys = append(keys, key)
		}
	}
	return keys
}

// findKey returns the path and the type of the value with this key, or nil if the key is unknown.
func findKey(t reflect.Type, key string) (Path, reflect.Type) {
	if t.Kind() == reflect.Map && key != "" { // names of entries can contain dots
		return Path{key}, t.Elem()
	}
	if t.Kind() != reflect.Struct || IsScalar(t) {
		return nil, nil
	}
	first, rest, nested := strings.Cut(key, ".")
	for _, f := range FieldsOf(t) {
		switch name := f.Tag.Get("yaml"); {
		case !nested && first == name:
			return Path{first}, f.Type
		case !nested && first == name+FileSuffix && HasFileForm(f):
			return Path{first}, reflect.TypeFor[string]()
		case nested && first == name:
			if inner, leaf := findKey(f.Type, rest); inner != nil {
				return append(Path{first}, inner...), leaf
			}
		}
	}
	return nil, nil
}

// unknownSetting returns the error for an unknown key, with the key that was probably meant. The name of its section
// may be missing.
func unknownSetting(t reflect.Type, key string) error {
	known := KeysOf(t)
	advice := Suggest(key, known, "")
	if advice == "" {
		names := map[string]string{} // keys by their last part
		for _, k := range slices.Backward(known) {
			names[k[strings.LastIndexByte(k, '.')+1:]] = k
		}
		if near, ok := nearest(key, slices.Sorted(maps.Keys(names))); ok {
			advice = "did you mean " + names[near] + "?"
		}
	}
	return fmt.Errorf("unknown key %q: %s", key, cmp.Or(advice, "want one of "+strings.Join(known, ", ")))
}

// nodeOf returns the node for the text of a value of type t.
func nodeOf(t reflect.Type, text string) (*yaml.Node, error) {
	_, canBeList := reflect.New(t).Interface().(ListUnmarshaler)
	switch {
	case strings.HasPrefix(text, "[") && (canBeList || t.Kind() == reflect.Slice && !IsScalar(t)):
		return flow(text, yaml.SequenceNode, "a list in brackets, like [a, b]")
	case IsScalar(t):
		return encoded(natural(t, text))
	case t.Kind() == reflect.Slice:
		return encoded(items(t.Elem(), text))
	case strings.HasPrefix(text, "{"):
		return flow(text, yaml.MappingNode, "a mapping in braces, like {a: b}")
	case t.Kind() == reflect.Map:
		return nil, errors.New("is a mapping: append a dot and the name of an entry, or write it in braces, like {a: [b]}")
	}
	return nil, fmt.Errorf("is a section: append a dot and one of its keys, %s, or write it in braces",
		strings.Join(KeysOf(t), ", "))
}

// natural returns the text as a value of Go that YAML writes without quotes, if it is a boolean or a number.
func natural(t reflect.Type, text string) any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		if b, err := strconv.ParseBool(text); err == nil && strconv.FormatBool(b) == text {
			return b
		}
	case reflect.Int:
		if n, err := strconv.Atoi(text); err == nil && strconv.Itoa(n) == text {
			return n
		}
	}
	return text
}

// items splits a list at its commas. A part that is not valid as an item of type t, but completes the one before,
// belongs to it, because a value such as subject:CN=alice,O=Acme contains commas.
func items(t reflect.Type, text string) (list []string) {
	valid := func(item string) bool { return setScalar(reflect.New(t).Elem(), item) == nil }
	for part := range strings.SplitSeq(text, ",") {
		if last := len(list) - 1; last >= 0 && !valid(strings.TrimSpace(part)) && valid(list[last]+","+part) {
			list[last] += "," + part
			continue
		}
		list = append(list, strings.TrimSpace(part))
	}
	return list
}

// encoded returns the node of a value.
func encoded(value any) (*yaml.Node, error) {
	node := new(yaml.Node)
	return node, node.Encode(value)
}

// flow parses a collection in YAML's flow style.
func flow(text string, kind yaml.Kind, want string) (*yaml.Node, error) {
	loader, err := yaml.NewLoader(bytes.NewReader([]byte(text)))
	if err != nil {
		return nil, err
	}
	document := new(yaml.Node)
	if err := loader.Load(document); err != nil || len(document.Content) != 1 || document.Content[0].Kind != kind {
		return nil, fmt.Errorf("is %q: want %s", text, want)
	}
	return document.Content[0], nil
}

// CompleteSetting returns what can follow the beginning of KEY=VALUE: keys, or the values of a key that has a fixed set
// of them.
func CompleteSetting(t reflect.Type, begun string) (found []string) {
	key, value, hasValue := strings.Cut(begun, "=")
	if !hasValue {
		for _, k := range KeysOf(t) {
			entry, isMap := strings.CutSuffix(k, entryName)
			if !isMap {
				entry += "="
			}
			found = append(found, entry)
		}
		return found
	}
	_, leaf := findKey(t, key)
	if leaf == nil {
		return nil
	}
	if leaf.Kind() == reflect.Pointer || leaf.Kind() == reflect.Slice {
		leaf = leaf.Elem()
	}
	var words []string
	if e, ok := reflect.Zero(leaf).Interface().(Enum); ok {
		words = e.Values()
	} else if leaf.Kind() == reflect.Bool {
		words = []string{"true", "false"}
	}
	before := value[:strings.LastIndexByte(value, ',')+1]
	for _, w := range words {
		found = append(found, key+"="+before+w)
	}
	return found
}
