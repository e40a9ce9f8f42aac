package yamlconf

import "reflect"

// Clone returns a copy of a section that shares no map, list or section with it.
func Clone[T any](section *T) *T {
	return clone(reflect.ValueOf(section)).Interface().(*T)
}

func clone(v reflect.Value) reflect.Value {
	switch t := v.Type(); {
	case IsScalar(t), v.Kind() != reflect.Struct && v.IsNil(): // values are replaced and never changed
		return v
	case v.Kind() == reflect.Pointer:
		c := reflect.New(t.Elem())
		c.Elem().Set(clone(v.Elem()))
		return c
	case v.Kind() == reflect.Map:
		c := reflect.MakeMapWithSize(t, v.Len())
		for key, value := range v.Seq2() {
			c.SetMapIndex(key, clone(value))
		}
		return c
	case v.Kind() == reflect.Slice:
		c := reflect.MakeSlice(t, v.Len(), v.Len())
		for i := range v.Len() {
			c.Index(i).Set(clone(v.Index(i)))
		}
		return c
	}
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	for _, f := range FieldsOf(v.Type()) {
		c.FieldByIndex(f.Index).Set(clone(v.FieldByIndex(f.Index)))
	}
	return c
}
