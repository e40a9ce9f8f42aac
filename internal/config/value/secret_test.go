package value

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// The string must never be printed, no matter how a secret is formatted or embedded.
func TestSecretIsNeverShown(t *testing.T) {
	const text = "correct horse"
	s := NewSecret(text)
	if s.Reveal() != text || s.Empty() || NewSecret("").String() != "" || !NewSecret("").Empty() {
		t.Fatalf("Reveal() = %q", s.Reveal())
	}
	type section struct {
		ID  string
		Key Secret
	}
	type hidden struct{ secret Secret } // fmt does not call methods of unexported fields
	formats := map[string]func(any) string{
		"json": func(v any) string { b, _ := json.Marshal(v); return string(b) },
		"yaml": func(v any) string { b, _ := yaml.Dump(v); return string(b) },
		"slog-text": func(v any) string {
			var b bytes.Buffer
			slog.New(slog.NewTextHandler(&b, nil)).Info("message", "value", v)
			return b.String()
		},
		"slog-json": func(v any) string {
			var b bytes.Buffer
			slog.New(slog.NewJSONHandler(&b, nil)).Info("message", "value", v)
			return b.String()
		},
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		formats[verb] = func(v any) string { return fmt.Sprintf(verb, v) }
	}
	for _, v := range []any{
		s, &s, section{"id", s}, hidden{s}, []Secret{s}, map[string]Secret{"key": s}, map[string]*section{"a": {"id", s}},
	} {
		for format, show := range formats {
			shown := show(v)
			if shown == "" || strings.Contains(shown, text) || strings.Contains(shown, fmt.Sprintf("%x", text)) {
				t.Errorf("%T formatted with %s: got %s", v, format, shown)
			}
		}
	}
}
