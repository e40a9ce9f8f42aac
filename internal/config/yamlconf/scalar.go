package yamlconf

import (
	"encoding"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"
	"golang.org/x/text/language"
)

// IsScalar reports whether values of type t are written as a single word or string.
func IsScalar(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return true
	}
	return t.Kind() != reflect.Struct && t.Kind() != reflect.Map && t.Kind() != reflect.Slice
}

// setScalar decodes text into v.
func setScalar(v reflect.Value, text string) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch target := v.Addr().Interface().(type) {
	case *time.Duration:
		return setDuration(target, text)
	case *netip.Addr:
		if target.UnmarshalText([]byte(text)) != nil {
			return fmt.Errorf("%q is not an IP address: write it like 203.0.113.7", text)
		}
		return nil
	case *language.Tag:
		if target.UnmarshalText([]byte(text)) != nil {
			return fmt.Errorf("%q is not a language tag: write it like en or pt-BR", text)
		}
		return nil
	case *slog.Level:
		if target.UnmarshalText([]byte(text)) != nil {
			return fmt.Errorf("%q is not a log level: write debug, info, warn or error", text)
		}
		return nil
	case encoding.TextUnmarshaler: // its errors explain how to write the value
		return target.UnmarshalText([]byte(text))
	case *bool:
		return setBool(target, text)
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number: write it like 10", text)
		}
		*target = n
		return nil
	}
	if v.Kind() == reflect.String {
		if e, ok := v.Interface().(Enum); ok {
			if err := checkEnum(e, text); err != nil {
				return err
			}
		}
		v.SetString(text)
		return nil
	}
	panic("yamlconf: no rule decodes a " + v.Type().String())
}

func setDuration(target *time.Duration, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration: write it like 30s, 5m or 1h30m", text)
	}
	*target = d
	return nil
}

func setBool(target *bool, text string) error {
	switch text {
	case "true":
		*target = true
	case "false":
		*target = false
	default:
		return fmt.Errorf("%q is not a boolean: write true or false", text)
	}
	return nil
}

// scalarText returns the text of a scalar as it is in the file, so that 0123 and yes are strings. n may be nil.
func scalarText(n *yaml.Node) (string, bool) {
	if n == nil || n.Kind != yaml.ScalarNode {
		return "", false
	}
	return n.Value, true
}
