package yamlconf

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// A Loader decodes a document into a struct. The fields of the struct that belong to the document have a tag
// `yaml:"key"`.
type Loader struct {
	Environ []string // as os.Environ gives it
	Prefix  string   // of the variables in Environ that give values, like BABELFTP_

	// NoFiles says that no value may come from a file, because another program wrote the document.
	NoFiles bool

	// Advice says what to write in the place of some unknown keys, by the key, or by the last keys of its path with
	// dots between them.
	Advice map[string]string

	// Section is the key of a map of pointers to structs that may have many entries. They are decoded one after
	// another, and those in Cache not again. Without it the whole document is decoded at once.
	Section string
	// Cache is used and filled, unless it is nil.
	Cache *Cache
	// Sources notes the files that are read, unless it is nil.
	Sources *Sources
}

// Decode decodes text, the content of file, and the environment into target, a pointer to a struct. It returns where
// each value was given, or nil when text is no YAML mapping, and every problem that it found.
func (l Loader) Decode(file string, text []byte, target any) (Positions, Problems) {
	d := l.decoder(file)
	if !d.document(text, reflect.ValueOf(target).Elem()) {
		return nil, d.problems
	}
	for _, name := range d.env.unknown() {
		known := l.variables(file, text, target)
		advice := Suggest(name, known, "correct its name or remove it")
		if value, ok := strings.CutSuffix(name, environmentFile); ok && slices.Contains(known, value) {
			advice = "only secrets come from files, set " + value
		}
		d.report(nil, position{source: environmentSource(name)}, "is no setting: %s", advice)
	}
	return d.positions, d.problems
}

func (l Loader) decoder(file string) *decoder {
	cache, sources := l.Cache, l.Sources
	if cache == nil {
		cache = &Cache{}
	}
	if sources == nil {
		sources = NewSources()
	}
	cache.used = false
	return &decoder{
		file:      file,
		noFiles:   l.NoFiles,
		advice:    l.Advice,
		section:   l.Section,
		cache:     cache,
		sources:   sources,
		env:       newEnvironment(l.Environ, l.Prefix),
		fields:    map[reflect.Type][]reflect.StructField{},
		anchors:   map[string]ast.Node{},
		aliases:   &expansions{sizes: map[ast.Node]int{}},
		positions: Positions{},
	}
}

// variables are the names of all variables that give a value.
func (l Loader) variables(file string, text []byte, target any) []string {
	l.Cache, l.Sources = nil, nil
	d := l.decoder(file)
	d.env.all = true
	d.document(text, reflect.New(reflect.TypeOf(target).Elem()).Elem())
	return d.env.known()
}

// A decoder fills a struct from the syntax tree of a document and from the environment. go-yaml's own decoder would
// stop at the first problem and forget where each value stood.
type decoder struct {
	file      string
	noFiles   bool // no value comes from a file
	advice    map[string]string
	section   string
	cut       *section // nil if the document is decoded at once
	cache     *Cache
	sources   *Sources
	env       environment
	noEnv     bool // no variable gives a value of what is decoded
	lines     int  // before the text that is parsed
	fields    map[reflect.Type][]reflect.StructField
	anchors   map[string]ast.Node
	aliases   *expansions
	positions Positions
	problems  Problems
}

// expansions count the nodes that aliases have stood for.
type expansions struct {
	nodes int
	sizes map[ast.Node]int // of what anchors name
}

// maxExpanded is how many nodes all aliases of a configuration may stand for, keys and values. Ten thousand users may
// share a list of twenty. A small document in which long values are repeated by aliases, or aliases are within
// aliases, would take all memory.
const maxExpanded = 250_000

// expand counts what an alias stands for, and reports whether that is still allowed.
func (d *decoder) expand(alias *ast.AliasNode, n ast.Node) bool {
	if d.aliases.nodes > maxExpanded {
		return false // which was reported
	}
	size, known := d.aliases.sizes[n]
	if !known {
		counter := nodeCounter(0)
		ast.Walk(&counter, n)
		size = int(counter)
		d.aliases.sizes[n] = size
	}
	if d.aliases.nodes += size; d.aliases.nodes > maxExpanded {
		d.report(
			nil, d.positionOf(alias.GetToken()),
			"aliases stand for more than %d values up to here: write fewer aliases, or of shorter values", maxExpanded)
		return false
	}
	return true
}

// A nodeCounter counts the nodes of a tree, in which an alias is one.
type nodeCounter int

// Visit implements [ast.Visitor].
func (c *nodeCounter) Visit(ast.Node) ast.Visitor {
	*c++
	return c
}

// document decodes text into target, and reports whether it is YAML at all.
func (d *decoder) document(text []byte, target reflect.Value) bool {
	if utf8.Valid(text) {
		text = plainText(text)
		d.cache.rest, d.cache.next = sha256.Sum256(text), nil
		if d.cut = cut(text, d.section); d.cut != nil {
			d.cache.rest, text = sha256.Sum256(d.cut.outside), d.cut.rest
		}
	}
	body, ok := d.parse(text)
	if !ok {
		return false
	}
	d.positions[Path(nil).key()] = position{source: d.file, line: 1, column: 1}
	d.structure(nil, body, target)
	return true
}

// plainText is a text without a byte order mark, and with LF for CR LF. As YAML has it, the one is nothing and the
// other is one line break; the parser counts two.
func plainText(text []byte) []byte {
	return bytes.ReplaceAll(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
}

// inner is a decoder for a part of the configuration, which notes its own problems and sources.
func (d *decoder) inner(file string) *decoder {
	return &decoder{
		file: file, noFiles: d.noFiles, advice: d.advice, sources: NewSources(), env: d.env, fields: d.fields,
		anchors: map[string]ast.Node{}, aliases: d.aliases,
		positions: d.positions,
	}
}

// parse returns the mapping that text is, nil for an empty text. It reports whether text is YAML at all.
func (d *decoder) parse(text []byte) (body ast.Node, ok bool) {
	if !utf8.Valid(text) {
		d.report(nil, d.invalidUTF8(text), "this is not UTF-8: save the file in that encoding")
		return nil, false
	}
	tokens := lexer.Tokenize(string(plainText(text)))
	if deep := tooDeep(tokens); deep != nil {
		d.report(nil, d.positionOf(deep), "has values in more than %d others: write it in fewer levels", maxDepth)
		return nil, false
	}
	// Duplicate keys are found below, all of them rather than the first.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.syntax(err)
		return nil, false
	}
	if len(file.Docs) > 0 {
		body = file.Docs[0].Body
	}
	for _, doc := range file.Docs[min(1, len(file.Docs)):] {
		if doc.Body != nil {
			d.report(
				nil, d.positionOf(doc.Body.GetToken()),
				"a second document begins here: write everything in one document, without ---")
		}
	}
	if body != nil {
		ast.Walk(d, body)
		if _, ok := d.resolve(body).(ast.MapNode); !ok && d.resolve(body) != nil {
			d.report(nil, d.positionOf(body.GetToken()), "must be a mapping (key: value), not %s", describe(body))
			return nil, false
		}
	}
	return body, true
}

// maxDepth is how many values may be within each other. A configuration has less than half of that. The parser takes
// memory by the square of it.
const maxDepth = 50

// tooDeep returns the first token that is in too many others, or nil. What is indented is never so deep in a text
// that is not large.
func tooDeep(tokens token.Tokens) *token.Token {
	inBrackets, onLine := 0, 0 // the second are those that a line begins, as in "- - a"
	for i, t := range tokens {
		if i == 0 || t.Position.Line != tokens[i-1].Position.Line {
			onLine = 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			inBrackets++
		case token.SequenceEndType, token.MappingEndType:
			inBrackets--
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType, token.AnchorType, token.TagType:
			onLine++
		case token.CollectEntryType:
			onLine = 0
		}
		if inBrackets+onLine > maxDepth {
			return t
		}
	}
	return nil
}

// syntax reports what the parser found.
func (d *decoder) syntax(err error) {
	var found yaml.Error
	if errors.As(err, &found) && found.GetToken() != nil {
		d.report(nil, d.positionOf(found.GetToken()), "this is not YAML: %s", found.GetMessage())
		return
	}
	d.report(nil, position{source: d.file, line: d.lines + 1, column: 1}, "this is not YAML: %v", err)
}

// invalidUTF8 is the position of the first byte that is not UTF-8.
func (d *decoder) invalidUTF8(text []byte) position {
	at := position{source: d.file, line: 1, column: 1}
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size <= 1 {
			break
		}
		at.column++
		if r == '\n' {
			at.line, at.column = at.line+1, 1
		}
		text = text[size:]
	}
	return at
}

// Visit implements [ast.Visitor]: it remembers the anchors.
func (d *decoder) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok && a.Name != nil {
		d.anchors[a.Name.GetToken().Value] = a.Value
	}
	return d
}

// positionOf is the position of a token.
func (d *decoder) positionOf(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{source: d.file, line: d.lines + 1, column: 1}
	}
	return position{source: d.file, line: d.lines + t.Position.Line, column: t.Position.Column}
}

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
	value ast.Node
}

func (e entry) given() bool { return e.value != nil }

// position is where the value stands, or where its key does when it is of many lines.
func (d *decoder) position(e entry) position {
	if _, isScalar := e.value.(ast.ScalarNode); isScalar {
		return d.positionOf(e.value.GetToken())
	}
	return e.at
}

// entries is what the mapping n holds; a key without a value counts as absent. n may be nil.
func (d *decoder) entries(p Path, n ast.Node) []entry {
	n = d.resolve(n)
	if n == nil {
		return nil
	}
	mapping, ok := n.(ast.MapNode)
	if !ok {
		d.report(p, d.positionOf(n.GetToken()), "must be a mapping (key: value), not %s", describe(n))
		return nil
	}
	var found []entry
	seen := map[string]position{}
	for i := mapping.MapRange(); i.Next(); {
		e := entry{key: i.Key().GetToken().Value, at: d.positionOf(i.Key().GetToken()), value: d.resolve(i.Value())}
		if text, isScalar := scalarText(keyNode(i.Key())); isScalar {
			e.key = text
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

// keyNode is the key itself where it is written in the long form ("? key").
func keyNode(n ast.Node) ast.Node {
	if long, ok := n.(*ast.MappingKeyNode); ok {
		return long.Value
	}
	return n
}

// resolve is the node behind tags, anchors and aliases, and nil for null.
func (d *decoder) resolve(n ast.Node) ast.Node {
	for range maxIndirections {
		switch v := n.(type) {
		case *ast.TagNode:
			n = v.Value
		case *ast.AnchorNode:
			n = v.Value
		case *ast.AliasNode:
			n = d.anchors[v.Value.GetToken().Value]
			if n != nil && !d.expand(v, n) {
				return nil
			}
			if n == nil {
				d.report(
					nil, d.positionOf(v.GetToken()), "no anchor is called %s: define it with &%[1]s before",
					v.Value.GetToken().Value)
			}
		case *ast.NullNode:
			return nil
		default:
			return n
		}
	}
	return nil
}

// maxIndirections ends what refers to itself (&a *a); more than a tag, an anchor and an alias make no sense.
const maxIndirections = 8

// structure decodes the mapping n, which may be nil, into the struct v.
func (d *decoder) structure(p Path, n ast.Node, v reflect.Value) {
	defer func(before bool) { d.noEnv = before }(d.noEnv)
	d.noEnv = d.noEnv || !d.env.below(p)
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
	for _, f := range d.fieldsOf(v.Type()) {
		key := f.Tag.Get("yaml")
		keys = append(keys, key)
		field, child, e := v.FieldByIndex(f.Index), p.Child(key), take(key)
		if !IsScalar(field.Type()) {
			if d.cut != nil && len(p) == 0 && key == d.section {
				d.sectionEntries(child, d.cut, field)
				continue
			}
			d.collection(child, e, field)
			continue
		}
		var inFile entry
		withFile := HasFileForm(f)
		if withFile && !d.noFiles {
			inFile = take(key + FileSuffix)
		}
		d.scalar(child, e, inFile, withFile, field)
	}
	for _, e := range entries {
		d.report(p.Child(e.key), e.at, "%s", d.unknownKey(p.Child(e.key), keys))
	}
	d.include(p, v)
}

// fieldsOf are the fields that are part of the file, those of embedded structs too.
func (d *decoder) fieldsOf(t reflect.Type) []reflect.StructField {
	fields, known := d.fields[t]
	if !known {
		fields = slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
			return f.Tag.Get("yaml") == ""
		})
		d.fields[t] = fields
	}
	return fields
}

// FileSuffix makes the key of a value the key of a file that holds the value.
const FileSuffix = "_file"

// HasFileForm reports whether the value of a field can come from a file, named under its key with [FileSuffix]. That is
// for secrets, and for what has a tag `file:"true"` because it is kept with one.
func HasFileForm(f reflect.StructField) bool {
	_, secret := reflect.Zero(f.Type).Interface().(interface{ Reveal() string })
	return secret || f.Tag.Get("file") == "true"
}

// unknownKey says what to do about the key that p leads to, which is none of known.
func (d *decoder) unknownKey(p Path, known []string) string {
	for i := range p {
		if advice := d.advice[strings.Join(p[i:], ".")]; advice != "" {
			return advice
		}
	}
	key := p[len(p)-1]
	if key == "<<" {
		return "merge keys are not supported: write the keys out, or refer to the whole mapping with an alias"
	}
	if value, ok := strings.CutSuffix(key, FileSuffix); ok && !d.noFiles && slices.Contains(known, value) {
		return "this key has gone: only secrets come from files, write " + value
	}
	return "unknown key: " + Suggest(key, known, "correct its name or remove it")
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
func (d *decoder) mapping(p Path, n ast.Node, v reflect.Value) {
	for _, e := range d.entries(p, n) {
		key := reflect.New(v.Type().Key()).Elem()
		if err := setScalar(key, e.key); err != nil {
			d.report(p.Child(e.key), e.at, "%v", err)
			continue
		}
		child := p.Child(fmt.Sprint(key))
		if v.MapIndex(key).IsValid() {
			d.report(child, e.at, "is given at %s too: remove one", d.positions[child.key()])
			continue
		}
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		value := reflect.New(v.Type().Elem()).Elem()
		switch value.Kind() {
		case reflect.Pointer:
			d.positions[child.key()] = e.at
			value.Set(reflect.New(value.Type().Elem()))
			d.structure(child, e.value, value.Elem())
		case reflect.Map:
			d.positions[child.key()] = e.at
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

// OneOrMore is a list of texts. A list of one may be written as the text, and come from the environment.
type OneOrMore []string

// list decodes a list of single values.
func (d *decoder) list(p Path, n ast.Node, v reflect.Value) {
	n = d.resolve(n)
	oneOrMore := v.Type() == reflect.TypeFor[OneOrMore]()
	if oneOrMore && d.oneFromEnvironment(p, v) || n == nil {
		return
	}
	if text, isScalar := scalarText(n); isScalar && oneOrMore {
		v.Set(reflect.ValueOf(OneOrMore{text}))
		d.positions[p.Child("0").key()] = d.positionOf(n.GetToken())
		return
	}
	sequence, ok := n.(*ast.SequenceNode)
	if !ok {
		d.report(p, d.positionOf(n.GetToken()), "must be a list ([a, b]), not %s", describe(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, len(sequence.Values)))
	for i, item := range sequence.Values {
		child := p.Child(fmt.Sprint(i))
		d.positions[child.key()] = d.positionOf(item.GetToken())
		text, isScalar := scalarText(d.resolve(item))
		value := reflect.New(v.Type().Elem()).Elem()
		if !isScalar {
			d.report(child, d.positionOf(item.GetToken()), "must be a single value")
		} else if err := setScalar(value, text); err != nil {
			d.report(child, d.positionOf(item.GetToken()), "%v", err)
		}
		v.Set(reflect.Append(v, value)) // a broken one too, so that the others keep their numbers
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
		switch {
		case isScalar:
			d.set(p, d.position(e), v, text)
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

// object decodes a mapping into a value that is one in JSON too.
func (d *decoder) object(p Path, e entry, v json.Unmarshaler) {
	at, before := e.at, len(d.problems)
	text, err := json.Marshal(d.jsonOf(p, e.value, maxIndirections))
	if at.broken = len(d.problems) > before; !at.broken && err == nil {
		err = v.UnmarshalJSON(text)
	}
	d.positions[p.key()] = at
	if err != nil {
		d.report(p, at, "cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
}

// jsonOf is a node of mappings and texts as encoding/json takes it. A node may have so many levels, because one can
// hold itself (&a {b: *a}).
func (d *decoder) jsonOf(p Path, n ast.Node, levels int) any {
	if text, isScalar := scalarText(n); isScalar {
		return text
	}
	if levels == 0 {
		d.report(p, d.positionOf(n.GetToken()), "has too many levels: take some out")
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

// fromEnvironment decodes a single value from its variable, and reports whether there was one.
func (d *decoder) fromEnvironment(p Path, withFile bool, v reflect.Value) bool {
	if d.noEnv {
		return false
	}
	given := d.env.take(p, withFile)
	at := position{source: environmentSource(given.name)}
	switch {
	case given.conflict != "":
		d.report(p, at, "%s", given.conflict)
	case given.isFile:
		d.setFromFile(p, at, v, given.value)
	case given.name != "":
		d.set(p, at, v, given.value)
	}
	return given.name != ""
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
	text, err := readValue(name)
	d.sources.Note(name, text)
	if err != nil {
		d.report(p, at, "cannot read the value from %s: %v", name, WithoutPath(err))
		return
	}
	d.set(p, at, v, strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"))
}

// maxValue is more bytes than any value has: a longer file is a mistake, like the name of a device.
const maxValue = 64 << 10

// readValue is the content of the file name.
func readValue(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxValue+1))
	if err == nil && len(content) > maxValue {
		err = fmt.Errorf("it is longer than %d bytes", maxValue)
	}
	return content, err
}

// ResolvePath is where the file name is, which is relative to the folder dir. An empty name stays empty.
func ResolvePath(dir, name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}
