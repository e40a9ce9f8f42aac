package yamlconf

import (
	"reflect"

	"go.yaml.in/yaml/v4"
)

// A Loader decodes a document into a struct.
type Loader struct {
	Environ []string // in the format of os.Environ
	Prefix  string   // prefix of the variables that set values, such as BABELFTP_

	// NoFiles disables values from files, for documents that were written by another program.
	NoFiles bool

	// Sources records the files that are read, unless it is nil.
	Sources *Sources
}

// Decode decodes text, the content of file, and the environment into target, a pointer to a struct. It returns the
// positions of all values, or nil if text is not a YAML mapping, and all problems.
func (l Loader) Decode(file string, text []byte, target any) (Positions, Problems) {
	d := l.decoder(file, reflect.TypeOf(target).Elem())
	body, ok := d.parse(text)
	if !ok {
		return nil, d.problems
	}
	v := reflect.ValueOf(target).Elem()
	d.positions[Path(nil).key()] = position{source: file, line: 1, column: 1}
	d.structure(nil, body, v)
	d.unknownVariables(v.Type())
	return d.positions, d.problems
}

// An EntryDecoder decodes entries of maps that are not in a document. It reads no files and no environment.
type EntryDecoder struct{ d *decoder }

// NewEntryDecoder returns a decoder for entries of maps in a struct of type root.
func NewEntryDecoder(root reflect.Type) *EntryDecoder {
	return &EntryDecoder{Loader{NoFiles: true}.decoder("", root)}
}

// Decode decodes the entry at p, which may have defaults already, from a node without aliases. target is a pointer to a
// struct. It must not be called concurrently.
func (e *EntryDecoder) Decode(p Path, node *yaml.Node, target any) (Positions, Problems) {
	d := *e.d
	d.positions = Positions{}
	d.inMap++
	d.structure(p, node, reflect.ValueOf(target).Elem())
	return d.positions, d.problems
}

func (l Loader) decoder(file string, root reflect.Type) *decoder {
	d := &decoder{
		file:      file,
		root:      root,
		noFiles:   l.NoFiles,
		sources:   l.Sources,
		env:       newEnvironment(l.Environ, l.Prefix),
		fields:    map[reflect.Type][]reflect.StructField{},
		sizes:     map[*yaml.Node]int{},
		defaults:  map[string]*defaults{},
		positions: Positions{},
	}
	if d.sources == nil {
		d.sources = NewSources()
	}
	return d
}

// A decoder decodes the nodes of a document and the environment into a struct. The decoder of package yaml is not
// used, because it stops at the first problem and does not record positions.
type decoder struct {
	file    string // the file that is being decoded
	root    reflect.Type
	noFiles bool // values cannot be read from files
	sources *Sources
	env     environment
	inMap   int // number of maps around the current value, which therefore has no variable
	fields  map[reflect.Type][]reflect.StructField

	expanded int                // number of nodes that aliases have expanded to
	sizes    map[*yaml.Node]int // number of nodes in the targets of aliases

	// The defaults, by the path of the map. reading are the defaults that are being checked for problems, and filling
	// are the defaults that are being decoded into an entry.
	defaults         map[string]*defaults
	reading, filling *defaults

	positions Positions
	problems  Problems
}
