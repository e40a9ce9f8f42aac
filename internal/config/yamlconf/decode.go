package yamlconf

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/base/contract"
)

// report adds a problem with the value at p.
func (d *decoder) report(p Path, at position, format string, args ...any) {
	d.problems = append(d.problems, at.problem(p, fmt.Sprintf(format, args...)))
	if len(p) > 0 {
		at.broken = true
		d.positions[p.key()] = at
	}
}

// An entry is a key of a mapping with its value. The zero value means that the key is absent.
type entry struct {
	key   string
	at    position // position of the key
	value *yaml.Node
	empty bool // the key is present, but has no value
}

func (e entry) isSet() bool { return e.value != nil }

// noValue rejects a key without a value. A missing value often means that the program or template that wrote the
// document lost it, and the default of many keys is permissive.
const noValue = "has no value: write one, or remove the key"

// position returns the position of a scalar, or the position of the key for other values.
func (d *decoder) position(e entry) position {
	if e.value.Kind == yaml.ScalarNode {
		return d.at(e.value)
	}
	return e.at
}

// entries returns the entries of the mapping n, which may be nil.
func (d *decoder) entries(p Path, n *yaml.Node) []entry {
	n = d.resolve(n)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.report(p, d.at(n), "must be a mapping (key: value), not %s", describe(n))
		return nil
	}
	found := make([]entry, 0, len(n.Content)/2)
	seen := make(map[string]position, len(n.Content)/2)
	for pair := range slices.Chunk(n.Content, 2) {
		key := pair[0]
		e := entry{key: key.Value, at: d.at(key), value: d.resolve(pair[1])}
		e.empty = e.value == nil && d.expanded <= maxExpanded
		if key.Kind != yaml.ScalarNode {
			d.report(p, e.at, "a key must be a single value, not %s", describe(key))
			continue
		}
		if first, twice := seen[e.key]; twice {
			d.report(p.Child(e.key), e.at, "duplicate key: remove this one or the one in line %d", first.line)
			continue
		}
		seen[e.key] = e.at
		found = append(found, e)
	}
	return found
}

// structure decodes the mapping n, which may be nil, into the struct v.
func (d *decoder) structure(p Path, n *yaml.Node, v reflect.Value) {
	entries := d.entries(p, n)
	take := func(key string) entry {
		for i, e := range entries {
			if e.key == key {
				entries = append(entries[:i:i], entries[i+1:]...)
				return e
			}
		}
		return entry{}
	}
	var keys []string
	fields := d.fieldsOf(v.Type())
	for _, f := range fields {
		if naming, ok := v.Type().FieldByName(f.Tag.Get(defaultsTag)); ok {
			key := naming.Tag.Get("yaml")
			keys = append(keys, key)
			d.readDefaults(p.Child(key), p.Child(f.Tag.Get("yaml")), take(key), v.FieldByIndex(naming.Index))
		}
	}
	for _, f := range fields {
		key := f.Tag.Get("yaml")
		if slices.Contains(keys, key) { // defaults
			continue
		}
		keys = append(keys, key)
		e, inFile, withFile := take(key), entry{}, HasFileForm(f)
		if withFile && !d.noFiles {
			inFile = take(key + FileSuffix)
		}
		if e.empty || e.isEmptyText() && f.Tag.Get(emptyTag) == "" {
			d.report(p.Child(key), e.at, noValue)
			continue
		}
		switch field := v.FieldByIndex(f.Index); {
		case d.inMap > 0 && !e.isSet() && !inFile.isSet(): // keep the value; values in a map have no variables
		case IsScalar(f.Type):
			d.scalar(p.Child(key), e, inFile, withFile, field)
			if f.Tag.Get(pathTag) != "" {
				field.SetString(ResolvePath(filepath.Dir(d.file), field.String()))
			}
		default:
			d.collection(p.Child(key), e, field)
			if f.Tag.Get(pathTag) != "" {
				for _, item := range field.Seq2() {
					item.SetString(ResolvePath(filepath.Dir(d.file), item.String()))
				}
			}
		}
	}
	for _, e := range entries {
		advice, meant := d.unknownKey(p.Child(e.key), e.value, keys)
		d.report(p.Child(e.key), e.at, "%s", advice)
		if meant != nil && !d.positions.IsSet(meant) { // so that it is not reported as missing
			d.positions[meant.key()] = position{source: e.at.source, line: e.at.line, column: e.at.column, broken: true}
		}
	}
	if d.reading == nil && d.filling == nil {
		d.include(p, v)
		d.folders(p, v)
	}
}

// emptyTag is the tag of a string that may be empty. Its value documents what an empty string means.
const emptyTag = "empty"

// isEmptyText reports whether the value is an empty string.
func (e entry) isEmptyText() bool {
	text, isScalar := scalarText(e.value)
	return isScalar && text == ""
}

// pathTag is the tag of a string or a list of strings with the path of a file or folder. Relative paths are relative
// to the folder of the document.
const pathTag = "path"

// fieldsOf is like [FieldsOf], and remembers the result.
func (d *decoder) fieldsOf(t reflect.Type) []reflect.StructField {
	fields, known := d.fields[t]
	if !known {
		fields = FieldsOf(t)
		d.fields[t] = fields
	}
	return fields
}

// FieldsOf returns the fields of a struct with a yaml tag, including fields of embedded structs.
func FieldsOf(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		return f.Tag.Get("yaml") == ""
	})
}

// FileSuffix is appended to a key to read its value from a file.
const FileSuffix = "_file"

// HasFileForm reports whether the value of a field can be read from a file, which is named by the key with
// [FileSuffix]. This applies to secrets and to fields with the tag `file:"true"`.
func HasFileForm(f reflect.StructField) bool {
	_, secret := reflect.Zero(f.Type).Interface().(contract.Secret)
	return secret || f.Tag.Get("file") == "true"
}

// unknownKey returns advice for the unknown key at p in a section with the known keys. It also returns the path of
// the key that was probably meant, or nil.
func (d *decoder) unknownKey(p Path, value *yaml.Node, known []string) (advice string, meant Path) {
	key, section := p[len(p)-1], p[:len(p)-1]
	if key == "<<" {
		return "merge keys are not supported: repeat the keys, or use an alias for the whole mapping", nil
	}
	if plain, ok := strings.CutSuffix(key, FileSuffix); ok && !d.noFiles && slices.Contains(known, plain) {
		return "only secrets can be read from files: write " + plain, section.Child(plain)
	}
	if near, ok := nearest(key, known); ok {
		return "unknown key: did you mean " + near + "?", section.Child(near)
	}
	advice, meant = d.elsewhere(p, value)
	return "unknown key: " + cmp.Or(advice, "correct its name or remove it"), meant
}

// collection decodes a struct, a map or a list.
func (d *decoder) collection(p Path, e entry, v reflect.Value) {
	if e.isSet() {
		d.positions[p.key()] = e.at
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(p, e.value, v)
	case reflect.Map:
		d.mapping(p, e.value, v)
	case reflect.Slice:
		d.list(p, e.value, v)
	default:
		panic("yamlconf: no rule decodes a " + v.Type().String())
	}
}

// mapping decodes a map of scalars, of lists or maps of scalars, or of pointers to structs.
func (d *decoder) mapping(p Path, n *yaml.Node, v reflect.Value) {
	d.inMap++
	defer func() { d.inMap-- }()
	entries := d.entries(p, n)
	if entries != nil && len(p) == 1 && n.Anchor == "" {
		// Free the nodes: for thousands of tenants they need more memory than the tenants, and nothing else refers to
		// them.
		n.Content = nil
	}
	var empty Path // the last entry, if it has no value
	for i, e := range entries {
		entries[i].value = nil
		key := reflect.New(v.Type().Key()).Elem()
		if err := setScalar(key, e.key); err != nil {
			if names, ok := key.Interface().(Enum); ok {
				words := names.Values()
				err = errors.New("unknown key: " + Suggest(e.key, words, "write "+OneOf(words)))
			}
			d.report(p.Child(e.key), e.at, "%v", err)
			continue
		}
		child := p.Child(fmt.Sprint(key))
		before := v.MapIndex(key)
		first, decoded := d.positions[child.key()]
		if before.IsValid() && decoded && (first.defaults == nil || d.filling != nil) {
			d.report(child, e.at, "is already set at %s: remove one", first)
			continue
		}
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		if empty != nil && d.belongsBelow(e, v.Type().Elem()) {
			at := d.positions[empty.key()]
			at.broken = true // its keys may be among the following entries
			d.positions[empty.key()] = at
			d.report(child, e.at, "is indented too little: it belongs below %s", empty)
			continue
		}
		if empty = nil; !e.isSet() {
			empty = child
		}
		value := reflect.New(v.Type().Elem()).Elem()
		if e.empty && value.Kind() != reflect.Pointer {
			d.report(child, e.at, noValue)
			continue
		}
		switch value.Kind() {
		case reflect.Pointer:
			d.positions[child.key()] = e.at
			if before.IsValid() {
				value.Set(before)
			} else {
				value.Set(reflect.New(value.Type().Elem()))
				d.fill(p, child, value.Elem())
			}
			d.structure(child, e.value, value.Elem())
		case reflect.Map:
			d.positions[child.key()] = e.at
			if before.IsValid() {
				value.Set(before)
			}
			d.mapping(child, e.value, value)
		case reflect.Slice:
			d.positions[child.key()] = e.at
			d.list(child, e.value, value)
		default:
			d.scalar(child, e, entry{}, false, value)
		}
		v.SetMapIndex(key, value)
	}
}

// belongsBelow reports whether an entry of a map looks like a key of the map's elements, with a value of the right
// kind.
func (d *decoder) belongsBelow(e entry, held reflect.Type) bool {
	return held.Kind() == reflect.Pointer && e.isSet() &&
		slices.ContainsFunc(d.fieldsOf(held.Elem()), func(f reflect.StructField) bool {
			return e.key == f.Tag.Get("yaml") && IsScalar(f.Type) == (e.value.Kind == yaml.ScalarNode)
		})
}

// OneOrMore is a list of strings. A list of one string can be written as a string, and can be set by an environment
// variable.
type OneOrMore []string

// list decodes a list of scalars or structs.
func (d *decoder) list(p Path, n *yaml.Node, v reflect.Value) {
	n = d.resolve(n)
	oneOrMore := v.Type() == reflect.TypeFor[OneOrMore]()
	if oneOrMore && d.oneFromEnvironment(p, v) || n == nil {
		return
	}
	if text, isScalar := scalarText(n); isScalar && oneOrMore {
		v.Set(reflect.ValueOf(OneOrMore{text}))
		d.positions[p.Child("0").key()] = d.at(n)
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.report(p, d.at(n), "must be a list ([a, b]), not %s", describe(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		child := p.Child(strconv.Itoa(i))
		d.positions[child.key()] = d.at(item)
		if v.Index(i).Kind() == reflect.Struct && !IsScalar(v.Index(i).Type()) {
			d.inMap++
			d.structure(child, item, v.Index(i))
			d.inMap--
			continue
		}
		// Keep invalid items, so that the index of the others is unchanged.
		if text, isScalar := scalarText(d.resolve(item)); !isScalar {
			d.report(child, d.at(item), "must be a single value")
		} else if err := setScalar(v.Index(i), text); err != nil {
			d.report(child, d.at(item), "%v", err)
		}
	}
}

// oneFromEnvironment decodes a list of one string from its environment variable. It reports whether the variable is
// set.
func (d *decoder) oneFromEnvironment(p Path, v reflect.Value) bool {
	one := make(OneOrMore, 1)
	if !d.fromEnvironment(p, false, reflect.ValueOf(one).Index(0)) {
		return false
	}
	v.Set(reflect.ValueOf(one))
	d.positions[p.Child("0").key()] = d.positions[p.key()]
	return true
}

// scalar decodes a scalar from the environment, from the entry, or from the file that inFile names.
func (d *decoder) scalar(p Path, e, inFile entry, withFile bool, v reflect.Value) {
	if d.fromEnvironment(p, withFile, v) {
		return
	}
	switch {
	case e.isSet() && inFile.isSet():
		d.report(p, inFile.at, "%s and %s are both given: remove one", e.key, inFile.key)
	case e.isSet():
		text, isScalar := scalarText(e.value)
		object, canBeObject := v.Addr().Interface().(json.Unmarshaler)
		list, canBeList := v.Addr().Interface().(ListUnmarshaler)
		switch {
		case isScalar:
			d.set(p, d.position(e), v, text)
		case canBeList && d.resolve(e.value).Kind == yaml.SequenceNode:
			d.texts(p, e, list)
		case canBeObject && v.Kind() == reflect.Struct:
			d.object(p, e, object)
		default:
			d.report(p, e.at, "must be a single value, not %s", describe(e.value))
		}
	case inFile.isSet():
		name, isScalar := scalarText(inFile.value)
		if !isScalar {
			d.report(p, inFile.at, "%s must be the name of a file, not %s", inFile.key, describe(inFile.value))
			return
		}
		d.setFromFile(p, d.position(inFile), v, name)
	}
}

// A ListUnmarshaler is a scalar that can also be written as a list of strings.
type ListUnmarshaler interface {
	UnmarshalList(texts []string) error
}

// texts decodes a list into a scalar that supports it.
func (d *decoder) texts(p Path, e entry, v ListUnmarshaler) {
	var texts []string
	for _, item := range d.resolve(e.value).Content {
		text, isScalar := scalarText(d.resolve(item))
		if !isScalar {
			d.report(p, d.at(item), "must be a single value, not %s", describe(item))
			return
		}
		texts = append(texts, text)
	}
	d.positions[p.key()] = d.position(e)
	if err := v.UnmarshalList(texts); err != nil {
		d.report(p, d.position(e), "%v", err)
	}
}

// object decodes a mapping into a scalar that is an object in JSON.
func (d *decoder) object(p Path, e entry, v json.Unmarshaler) {
	at, before := e.at, len(d.problems)
	text, err := json.Marshal(d.jsonOf(p, e.value, maxTextLevels))
	if at.broken = len(d.problems) > before; !at.broken && err == nil {
		err = v.UnmarshalJSON(text)
	}
	d.positions[p.key()] = at
	if err != nil {
		d.report(p, at, "cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
}

// maxTextLevels is more than the nesting of a text with plural forms.
const maxTextLevels = 8

// jsonOf converts a node with mappings and strings for encoding/json. levels limits the nesting, because a node can
// contain itself (&a {b: *a}).
func (d *decoder) jsonOf(p Path, n *yaml.Node, levels int) any {
	if text, isScalar := scalarText(n); isScalar {
		return text
	}
	if levels == 0 {
		d.report(p, d.at(n), "is nested too deeply: remove some levels")
		return nil
	}
	object := map[string]any{}
	for _, e := range d.entries(p, n) {
		if e.isSet() {
			object[e.key] = d.jsonOf(p, e.value, levels-1)
		}
	}
	return object
}

// set decodes text into v and records its position.
func (d *decoder) set(p Path, at position, v reflect.Value, text string) {
	d.positions[p.key()] = at
	if err := setScalar(v, text); err != nil {
		d.report(p, at, "%v", err)
	}
}

// setFromFile decodes the content of a file into v. at is the position of the file name.
func (d *decoder) setFromFile(p Path, at position, v reflect.Value, name string) {
	name = ResolvePath(filepath.Dir(d.file), name)
	text, err := d.sources.readValue(name)
	if err != nil {
		d.report(p, at, "cannot read the value from %s: %v", name, WithoutPath(err))
		return
	}
	d.set(p, at, v, strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"))
}

// StandardOutput means standard output instead of a file.
const StandardOutput = "-"

// ResolvePath returns the path of a file that is relative to the folder dir. An empty name stays empty.
func ResolvePath(dir, name string) string {
	if name == "" || name == StandardOutput || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}
