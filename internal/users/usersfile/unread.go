package usersfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// unread calls report for each nonzero value of a JSON document for which t has no field. The path has the keys that
// lead to the value, and "[]" for elements of a list. An import that decodes a document into t reports everything
// that it ignores this way, including fields of future versions of the other server.
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

// fieldOf returns the type of the field with this JSON key. Keys are case-sensitive.
func fieldOf(t reflect.Type, key string) (reflect.Type, bool) {
	for field := range t.Fields() {
		if field.Tag.Get("json") == key {
			return field.Type, true
		}
	}
	return nil, false
}

// leaves calls report for each nonzero value in an object, or for v itself if it is not an object.
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

// isZero reports whether a JSON value is null, false, 0, empty, or has only such elements.
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

// shown formats a JSON value for a comment. It omits values that may be secret, and truncates long values.
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
