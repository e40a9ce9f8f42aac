package yamlconf

import (
	"reflect"
)

// defaultsTag is the tag of a map of pointers to structs with the name of another field, a struct of the same type.
// What the document gives to that field is given to each entry of the map first. Then the entry replaces single values
// and lists, and adds to sections and maps.
const defaultsTag = "defaults"

// isDefaults reports whether a field of the struct t has the defaults of a map.
func isDefaults(t reflect.Type, f reflect.StructField) bool {
	for _, other := range fieldsOf(t) {
		if other.Tag.Get(defaultsTag) == f.Name {
			return true
		}
	}
	return false
}

// defaults are what entries of a map have in common.
type defaults struct {
	path    Path   // of the defaults
	entries Path   // of the map
	file    string // that has them
	entry   entry
}

// readDefaults notes the defaults e for the map that entries leads to, and reports what is wrong with them: once, not
// with each entry.
func (d *decoder) readDefaults(p, entries Path, e entry, t reflect.Type) {
	if !e.given() {
		return
	}
	of := &defaults{path: p, entries: entries, file: d.file, entry: e}
	d.positions[p.key()] = e.at
	d.reading = of
	d.inMap++
	d.structure(p, e.value, reflect.New(t).Elem())
	d.inMap--
	d.reading = nil
	d.defaults[entries.key()] = of
}

// fill gives v, an entry of the map that p leads to, the defaults of the map. What is wrong with them was reported.
func (d *decoder) fill(p, entry Path, v reflect.Value) {
	of := d.defaults[p.key()]
	if of == nil {
		return
	}
	file, found, expanded := d.file, len(d.problems), d.expanded
	d.file, d.filling = of.file, of
	d.structure(entry, of.entry.value, v)
	d.file, d.filling, d.problems, d.expanded = file, nil, d.problems[:found], expanded
}
