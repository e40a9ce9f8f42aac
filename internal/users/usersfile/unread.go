package usersfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// unread calls report for each value of a JSON document that is not zero and for which the Go type has no field. The
// path of a value has the keys that lead to it, and [] for each element of a list. An import that decodes the document
// into this type thus reports everything that it does not read, including fields of later versions of the other server.
func unread(v any, t reflect.Type, path string, report func(path string, v any)) {
	switch {
	case t.Kind() == reflect.Struct:
		object, ok := v.(map[string]any)
		if !ok {
			return
		}
		for _, key := range slices.Sorted(maps.Keys(object)) {
			at := strings.TrimPrefix(path+"."+key, ".")
			if field, ok := fieldOf(t, key); ok {
				unread(object[key], field, at, report)
			} else {
				leaves(object[key], at, report)
			}
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		list, _ := v.([]any)
		for _, element := range list {
			unread(element, t.Elem(), path+"[]", report)
		}
	}
}

// fieldOf returns the type of the field that has a JSON key, in the same upper and lower case.
func fieldOf(t reflect.Type, key string) (reflect.Type, bool) {
	for field := range t.Fields() {
		if field.Tag.Get("json") == key {
			return field.Type, true
		}
	}
	return nil, false
}

// leaves calls report for the values in an object that are not zero, or for the value itself.
func leaves(v any, path string, report func(path string, v any)) {
	object, ok := v.(map[string]any)
	if !ok {
		if !isZero(v) {
			report(path, v)
		}
		return
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		leaves(object[key], path+"."+key, report)
	}
}

// isZero reports whether a JSON value is null, false, 0 or empty.
func isZero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case json.Number:
		n, err := v.Float64()
		return err == nil && n == 0
	case []any:
		return !slices.ContainsFunc(v, func(element any) bool { return !isZero(element) })
	case map[string]any:
		for _, value := range v {
			if !isZero(value) {
				return false
			}
		}
		return true
	}
	return false
}

// shown returns a JSON value for a comment, without possible secrets, and shortened if it is long.
func shown(path string, v any) string {
	const most = 80
	key := strings.ToLower(path[strings.LastIndexByte(path, '.')+1:])
	for _, secret := range []string{"secret", "pass", "key", "token", "credential", "payload", "code", "sas"} {
		if strings.Contains(key, secret) && key != "key_prefix" {
			if text, ok := v.(string); ok && text != "" || reflect.ValueOf(v).Kind() == reflect.Slice {
				return ""
			}
		}
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	if runes := []rune(string(text)); len(runes) > most {
		text = []byte(string(runes[:most]) + "…")
	}
	return fmt.Sprintf(" (%s)", text)
}
