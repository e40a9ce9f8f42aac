package yamlconf

import (
	"reflect"

	"go.yaml.in/yaml/v4"
)

// elsewhere says where the configuration has the last key of p, which is unknown there, for a value of the same kind.
// Of several places it is one in a section of the same name, else the one below the fewest keys. It is empty where
// there is none.
func (d *decoder) elsewhere(p Path, value *yaml.Node) string {
	type place struct {
		at Path
		t  reflect.Type
	}
	key, section := p[len(p)-1], ""
	if len(p) > 1 {
		section = p[len(p)-2]
	}
	single, seen := value == nil || value.Kind == yaml.ScalarNode, map[reflect.Type]bool{}
	var found []Path
	for next := []place{{t: d.root}}; len(next) > 0; next = next[1:] {
		at, t := next[0].at, next[0].t
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			if t.Kind() == reflect.Map {
				at = at.Child("NAME")
			}
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || IsScalar(t) || seen[t] {
			continue
		}
		seen[t] = true
		for _, f := range d.fieldsOf(t) {
			name := f.Tag.Get("yaml")
			same := key == name || key == name+FileSuffix && HasFileForm(f)
			switch {
			case isDefaults(t, f): // has the same keys as the entries
			case !same || single != IsScalar(f.Type):
				next = append(next, place{at.Child(name), f.Type})
			case section != "" && len(at) > 0 && at[len(at)-1] == section:
				return "did you mean " + at.Child(key).String() + "?"
			default:
				found = append(found, at.Child(key))
			}
		}
	}
	switch {
	case len(found) == 0:
		return ""
	case len(found[0]) == 1:
		return "it belongs to the top level"
	}
	return "did you mean " + found[0].String() + "?"
}
