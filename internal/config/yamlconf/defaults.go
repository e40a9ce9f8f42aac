package yamlconf

import (
	"reflect"
)

// defaultsTag is the tag of a map of pointers to structs. It names another field, a struct of the same type, that has
// the defaults of all entries. Scalars and lists of an entry replace the defaults; sections and maps are merged.
const defaultsTag = "defaults"

// isDefaults reports whether the field f of the struct t has the defaults for a map.
func isDefaults(t reflect.Type, f reflect.StructField) bool {
	for _, other := range FieldsOf(t) {
		if other.Tag.Get(defaultsTag) == f.Name {
			return true
		}
	}
	return false
}

// defaults are the common values of the entries of a map.
type defaults struct {
	path    Path   // path of the defaults
	entries Path   // path of the map
	file    string // the file that contains them
	entry   entry
}

// readDefaults decodes the defaults e for the map at entries into v, and stores them. It reports their problems once,
// instead of for each entry.
func (d *decoder) readDefaults(p, entries Path, e entry, v reflect.Value) {
	if !e.isSet() {
		return
	}
	of := &defaults{path: p, entries: entries, file: d.file, entry: e}
	d.positions[p.key()] = e.at
	d.reading = of
	d.inMap++
	d.structure(p, e.value, v)
	d.inMap--
	d.reading = nil
	d.defaults[entries.key()] = of
}

// fill decodes the defaults of the map at p into v, a new entry of the map. Problems were already reported.
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
