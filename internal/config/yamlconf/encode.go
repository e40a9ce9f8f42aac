package yamlconf

import (
	"encoding"
	"fmt"
	"reflect"

	"github.com/babelftp/babelftp/internal/base/contract"
)

// Encode returns the values of a section that are set, in the form of JSON: objects for sections and maps, arrays for
// lists, booleans, integers and strings. Secrets are omitted. section is a struct or a pointer to a struct.
func Encode(section any) map[string]any {
	return encodeSection(reflect.Indirect(reflect.ValueOf(section)))
}

func encodeSection(v reflect.Value) map[string]any {
	values := map[string]any{}
	for _, f := range FieldsOf(v.Type()) {
		field := v.FieldByIndex(f.Index)
		if _, secret := field.Interface().(contract.Secret); secret || field.IsZero() {
			continue
		}
		value := encodeValue(field)
		if section, ok := value.(map[string]any); ok && len(section) == 0 {
			continue
		}
		values[f.Tag.Get("yaml")] = value
	}
	return values
}

func encodeValue(v reflect.Value) any {
	switch {
	case IsScalar(v.Type()):
		return encodeScalar(reflect.Indirect(v))
	case v.Kind() == reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = encodeValue(v.Index(i))
		}
		return list
	case v.Kind() == reflect.Map:
		object := make(map[string]any, v.Len())
		for key, value := range v.Seq2() {
			object[fmt.Sprint(encodeScalar(key))] = encodeValue(value)
		}
		return object
	}
	return encodeSection(reflect.Indirect(v))
}

func encodeScalar(v reflect.Value) any {
	switch value := v.Interface().(type) {
	case encoding.TextMarshaler:
		text, err := value.MarshalText()
		if err != nil {
			panic(err) // values that were parsed have a text
		}
		return string(text)
	case fmt.Stringer:
		return value.String()
	}
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool()
	case reflect.Int:
		return v.Int()
	case reflect.String:
		return v.String()
	}
	panic("yamlconf: no rule encodes a " + v.Type().String())
}
