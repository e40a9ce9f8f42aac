package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// paths are the paths of all keys, sections too, with * for names.
func paths() []string {
	found := map[string]bool{}
	var add func(prefix string, t reflect.Type)
	add = func(prefix string, t reflect.Type) {
		for _, f := range reflect.VisibleFields(t) {
			key := f.Tag.Get("yaml")
			if key == "" {
				continue
			}
			found[prefix+key] = true
			switch {
			case yamlconf.IsScalar(f.Type):
			case f.Type.Kind() == reflect.Struct:
				add(prefix+key+".", f.Type)
			case f.Type.Kind() == reflect.Map && f.Type.Elem().Kind() == reflect.Pointer:
				add(prefix+key+".*.", f.Type.Elem().Elem())
			}
		}
	}
	add("", reflect.TypeFor[Config]())
	return slices.Sorted(maps.Keys(found))
}

// An old key is none any more, and what stands in its place is one.
func TestOldKeys(t *testing.T) {
	known := paths()
	seen := map[string]bool{}
	for _, old := range oldKeys() {
		if slices.Contains(known, old.Key) {
			t.Errorf("%s is a key", old.Key)
		}
		if seen[old.Key] {
			t.Errorf("%s is there twice", old.Key)
		}
		seen[old.Key] = true
		if old.New != "" && !slices.Contains(known, old.New) {
			t.Errorf("%s has moved to %s, which is no key", old.Key, old.New)
		}
		if strings.Count(old.Key, "*") < strings.Count(old.New, "*") {
			t.Errorf("%s does not say which names %s has", old.Key, old.New)
		}
		if (old.New == "") == (old.Advice == "") {
			t.Errorf("%s needs a place or advice, and not both", old.Key)
		}
	}
}
