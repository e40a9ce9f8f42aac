package yamlconf

import (
	"reflect"
	"slices"

	"go.yaml.in/yaml/v4"
)

// elsewhere looks for the last key of p in other sections of the document, with a value of the same kind. It prefers
// a section with the same name, and then the least nested one. It returns advice and the path, or an empty string if
// the key is unknown everywhere.
func (d *decoder) elsewhere(p Path, value *yaml.Node) (advice string, place Path) {
	type section struct {
		at Path
		t  reflect.Type
	}
	key, holder := p[len(p)-1], ""
	if len(p) > 1 {
		holder = p[len(p)-2]
	}
	single, seen := value == nil || value.Kind == yaml.ScalarNode, map[reflect.Type]bool{}
	var found []Path
	for next := []section{{t: d.root}}; len(next) > 0; next = next[1:] {
		at, t := next[0].at, next[0].t
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			if t.Kind() == reflect.Map {
				name := "NAME"
				if len(p) > len(at)+1 && slices.Equal(at, p[:len(at)]) {
					name = p[len(at)]
				}
				at = at.Child(name)
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
				next = append(next, section{at.Child(name), f.Type})
			case holder != "" && len(at) > 0 && at[len(at)-1] == holder:
				return "did you mean " + at.Child(key).String() + "?", at.Child(key)
			default:
				found = append(found, at.Child(key))
			}
		}
	}
	switch {
	case len(found) == 0:
		return "", nil
	case len(found[0]) == 1:
		return "it belongs to the top level", found[0]
	}
	return "did you mean " + found[0].String() + "?", found[0]
}
