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

// report adds a problem with what p leads to.
func (d *decoder) report(p Path, at position, format string, args ...any) {
	d.problems = append(d.problems, at.problem(p, fmt.Sprintf(format, args...)))
	if len(p) > 0 {
		at.broken = true
		d.positions[p.key()] = at
	}
}

// An entry is a key of a mapping with its value. The zero value is no entry.
type entry struct {
	key   string
	at    position // of the key
	value *yaml.Node
	empty bool // the key is there, and has no value
}

func (e entry) given() bool { return e.value != nil }

// noValue refuses a key without a value. A missing value often means that the program or template that wrote the
// document lost it, and the default of many keys allows everything.
const noValue = "has no value: write one, or remove the key"

// position is where the value stands, or where its key does when it is of many lines.
func (d *decoder) position(e entry) position {
	if e.value.Kind == yaml.ScalarNode {
		return d.at(e.value)
	}
	return e.at
}

// entries returns the keys and values of the mapping n, which may be nil.
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
			d.report(p.Child(e.key), e.at, "the key is given twice: remove this one or that of line %d", first.line)
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
			d.readDefaults(p.Child(key), p.Child(f.Tag.Get("yaml")), take(key), naming.Type)
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
		case d.inMap > 0 && !e.given() && !inFile.given(): // and no variable gives it
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
		if meant != nil && !d.positions.Given(meant) { // so that nothing says that it is missing
			d.positions[meant.key()] = position{source: e.at.source, line: e.at.line, column: e.at.column, broken: true}
		}
	}
	if d.reading == nil && d.filling == nil {
		d.include(p, v)
		d.folders(p, v)
	}
}

// emptyTag is the tag of a text that may be empty. It says what an empty one means.
const emptyTag = "empty"

// isEmptyText reports whether an entry is an empty text.
func (e entry) isEmptyText() bool {
	text, isScalar := scalarText(e.value)
	return isScalar && text == ""
}

// pathTag is the tag of a text, or of a list of texts, that is the path of a file or folder. A relative one starts at
// the folder of the document.
const pathTag = "path"

// fieldsOf are the fields that are part of the file, those of embedded structs too.
func (d *decoder) fieldsOf(t reflect.Type) []reflect.StructField {
	fields, known := d.fields[t]
	if !known {
		fields = fieldsOf(t)
		d.fields[t] = fields
	}
	return fields
}

func fieldsOf(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		return f.Tag.Get("yaml") == ""
	})
}

// FileSuffix makes the key of a value the key of a file that holds the value.
const FileSuffix = "_file"

// HasFileForm reports whether the value of a field can come from a file, named under its key with [FileSuffix]. That is
// for secrets, and for what has a tag `file:"true"` because it is kept with one.
func HasFileForm(f reflect.StructField) bool {
	_, secret := reflect.Zero(f.Type).Interface().(contract.Secret)
	return secret || f.Tag.Get("file") == "true"
}

// unknownKey returns advice on the unknown key at p, whose section has the known keys, and the key that was probably
// meant, or nil.
func (d *decoder) unknownKey(p Path, value *yaml.Node, known []string) (advice string, meant Path) {
	key, section := p[len(p)-1], p[:len(p)-1]
	if key == "<<" {
		return "merge keys are not supported: write the keys out, or refer to the whole mapping with an alias", nil
	}
	if plain, ok := strings.CutSuffix(key, FileSuffix); ok && !d.noFiles && slices.Contains(known, plain) {
		return "only secrets come from files: write " + plain, section.Child(plain)
	}
	if near, ok := nearest(key, known); ok {
		return "unknown key: did you mean " + near + "?", section.Child(near)
	}
	advice, meant = d.elsewhere(p, value)
	return "unknown key: " + cmp.Or(advice, "correct its name or remove it"), meant
}

// collection decodes a struct, a map or a list.
func (d *decoder) collection(p Path, e entry, v reflect.Value) {
	if e.given() {
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

// mapping decodes a map of single values, of lists or maps of them, or of pointers to structs.
func (d *decoder) mapping(p Path, n *yaml.Node, v reflect.Value) {
	d.inMap++
	defer func() { d.inMap-- }()
	entries := d.entries(p, n)
	if entries != nil && len(p) == 1 && n.Anchor == "" {
		// The nodes of thousands of tenants take more memory than the tenants: nothing else refers to these.
		n.Content = nil
	}
	var empty Path // the last entry, if it is without a value
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
		if first := d.positions[child.key()]; before.IsValid() && (first.defaults == nil || d.filling != nil) {
			d.report(child, e.at, "is given at %s too: remove one", first)
			continue
		}
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		if empty != nil && d.belongsBelow(e, v.Type().Elem()) {
			at := d.positions[empty.key()]
			at.broken = true // what it lacks may stand here
			d.positions[empty.key()] = at
			d.report(child, e.at, "is indented too little: it belongs below %s", empty)
			continue
		}
		if empty = nil; !e.given() {
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

// belongsBelow reports whether an entry of a map has the name of a key of what the map holds, and a value of its kind.
func (d *decoder) belongsBelow(e entry, held reflect.Type) bool {
	return held.Kind() == reflect.Pointer && e.given() &&
		slices.ContainsFunc(d.fieldsOf(held.Elem()), func(f reflect.StructField) bool {
			return e.key == f.Tag.Get("yaml") && IsScalar(f.Type) == (e.value.Kind == yaml.ScalarNode)
		})
}

// OneOrMore is a list of texts. A list of one may be written as the text, and come from the environment.
type OneOrMore []string

// list decodes a list of single values.
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
		// a broken one stays too, so that the others keep their numbers
		if text, isScalar := scalarText(d.resolve(item)); !isScalar {
			d.report(child, d.at(item), "must be a single value")
		} else if err := setScalar(v.Index(i), text); err != nil {
			d.report(child, d.at(item), "%v", err)
		}
	}
}

// oneFromEnvironment decodes a list of one text from its variable, and reports whether there was one.
func (d *decoder) oneFromEnvironment(p Path, v reflect.Value) bool {
	one := make(OneOrMore, 1)
	if !d.fromEnvironment(p, false, reflect.ValueOf(one).Index(0)) {
		return false
	}
	v.Set(reflect.ValueOf(one))
	d.positions[p.Child("0").key()] = d.positions[p.key()]
	return true
}

// scalar decodes a single value from the environment, from the entry, or from the file that the entry inFile names.
func (d *decoder) scalar(p Path, e, inFile entry, withFile bool, v reflect.Value) {
	if d.fromEnvironment(p, withFile, v) {
		return
	}
	switch {
	case e.given() && inFile.given():
		d.report(p, inFile.at, "%s and %s are both given: remove one", e.key, inFile.key)
	case e.given():
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
	case inFile.given():
		name, isScalar := scalarText(inFile.value)
		if !isScalar {
			d.report(p, inFile.at, "%s must be the name of a file, not %s", inFile.key, describe(inFile.value))
			return
		}
		d.setFromFile(p, d.position(inFile), v, name)
	}
}

// A ListUnmarshaler is a single value that may be written as a list of texts too.
type ListUnmarshaler interface {
	UnmarshalList(texts []string) error
}

// texts decodes a list into a value that may be written so.
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

// object decodes a mapping into a value that is one in JSON too.
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

// maxTextLevels is more than a text with plural forms has.
const maxTextLevels = 8

// jsonOf is a node of mappings and texts as encoding/json takes it. A node may have so many levels, because one can
// hold itself (&a {b: *a}).
func (d *decoder) jsonOf(p Path, n *yaml.Node, levels int) any {
	if text, isScalar := scalarText(n); isScalar {
		return text
	}
	if levels == 0 {
		d.report(p, d.at(n), "has too many levels: take some out")
		return nil
	}
	object := map[string]any{}
	for _, e := range d.entries(p, n) {
		if e.given() {
			object[e.key] = d.jsonOf(p, e.value, levels-1)
		}
	}
	return object
}

// set decodes text, which stands at a place, into v.
func (d *decoder) set(p Path, at position, v reflect.Value, text string) {
	d.positions[p.key()] = at
	if err := setScalar(v, text); err != nil {
		d.report(p, at, "%v", err)
	}
}

// setFromFile decodes the content of a file, which is named at a place, into v.
func (d *decoder) setFromFile(p Path, at position, v reflect.Value, name string) {
	name = ResolvePath(filepath.Dir(d.file), name)
	text, err := d.sources.readValue(name)
	if err != nil {
		d.report(p, at, "cannot read the value from %s: %v", name, WithoutPath(err))
		return
	}
	d.set(p, at, v, strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"))
}

// StandardOutput stands for standard output in the place of a file.
const StandardOutput = "-"

// ResolvePath is where the file name is, which is relative to the folder dir. An empty name stays empty.
func ResolvePath(dir, name string) string {
	if name == "" || name == StandardOutput || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}
