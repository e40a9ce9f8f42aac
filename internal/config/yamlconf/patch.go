package yamlconf

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// ParsePatch returns the changes that a JSON Merge Patch (RFC 7396) makes to a section whose struct is t. Numbers in
// the patch must be of type [json.Number]. Only keys are checked; the values are checked when the section is decoded.
// Problems have a path that begins at the section.
func ParsePatch(t reflect.Type, patch map[string]any) ([]Setting, Problems) {
	return parsePatch(t, t, nil, patch)
}

// parsePatch returns the changes in a part of the patch for a value of type t at path, in a section of type root.
func parsePatch(root, t reflect.Type, path Path, patch map[string]any) (changes []Setting, problems Problems) {
	for _, key := range slices.Sorted(maps.Keys(patch)) {
		at := path.Child(key)
		first, inner := findKey(t, key)
		if len(first) != 1 {
			problems = append(problems, &Problem{Path: at.String(), Message: unknownSetting(root, at.String()).Error()})
			continue
		}
		value := patch[key]
		if object, ok := value.(map[string]any); ok && !IsScalar(inner) && inner.Kind() != reflect.Slice {
			more, wrong := parsePatch(root, inner, at, object)
			changes, problems = append(changes, more...), append(problems, wrong...)
			continue
		}
		s := Setting{Key: at.String(), Path: at}
		if value != nil {
			var err error
			if s.Value, err = encoded(plain(value)); err != nil {
				problems = append(problems, &Problem{Path: at.String(), Message: err.Error()})
				continue
			}
		}
		changes = append(changes, s)
	}
	return changes, problems
}

// plain replaces the numbers in a JSON value by values that YAML writes without quotes.
func plain(value any) any {
	switch value := value.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(value.String(), 10, 64); err == nil {
			return n
		}
		if n, err := value.Float64(); err == nil {
			return n
		}
		return value.String()
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = plain(item)
		}
		return list
	}
	return value
}
