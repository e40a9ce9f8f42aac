package yamlconf

import (
	"reflect"

	"go.yaml.in/yaml/v4"
)

// A Loader decodes a document into a struct. The fields of the struct that belong to the document have a tag
// `yaml:"key"`.
type Loader struct {
	Environ []string // as os.Environ gives it
	Prefix  string   // of the variables in Environ that give values, like BABELFTP_

	// NoFiles says that no value may come from a file, because another program wrote the document.
	NoFiles bool

	// Sources notes the files that are read, unless it is nil.
	Sources *Sources
}

// Decode decodes text, the content of file, and the environment into target, a pointer to a struct. It returns where
// each value was given, or nil when text is no YAML mapping, and every problem that it found.
func (l Loader) Decode(file string, text []byte, target any) (Positions, Problems) {
	d := &decoder{
		file:      file,
		root:      reflect.TypeOf(target).Elem(),
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

// A decoder fills a struct from the nodes of a document and from the environment. The decoder of package yaml would
// stop at the first problem and forget where each value stood.
type decoder struct {
	file    string // whose nodes are decoded
	root    reflect.Type
	noFiles bool // no value comes from a file
	sources *Sources
	env     environment
	inMap   int // how many maps hold what is decoded: no variable gives a value there
	fields  map[reflect.Type][]reflect.StructField

	expanded int                // how many nodes aliases have stood for
	sizes    map[*yaml.Node]int // nodes in what aliases stand for

	// Defaults of entries, by the path of the map. Those of reading are decoded, to find what is wrong with them, and
	// those of filling are given to an entry.
	defaults         map[string]*defaults
	reading, filling *defaults

	positions Positions
	problems  Problems
}
