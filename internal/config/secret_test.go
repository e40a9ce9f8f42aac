package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/config/value"
)

// However a configuration is shown, its secrets are not.
func TestSecretIsNeverShown(t *testing.T) {
	const text = "correct horse"
	type hidden struct{ secret value.Secret } // fmt does not ask the methods of what an unexported field holds
	cfg := Default()
	cfg.S3.SecretAccessKey = value.NewSecret(text)
	values := map[string]any{
		"secret":           cfg.S3.SecretAccessKey,
		"pointer":          &cfg.S3.SecretAccessKey,
		"config":           cfg,
		"section":          cfg.S3,
		"unexported-field": hidden{cfg.S3.SecretAccessKey},
		"list":             []value.Secret{cfg.S3.SecretAccessKey},
		"map":              map[string]value.Secret{"key": cfg.S3.SecretAccessKey},
	}
	formats := map[string]func(any) string{
		"json": func(v any) string { b, _ := json.Marshal(v); return string(b) },
		"yaml": func(v any) string { b, _ := yaml.Marshal(v); return string(b) },
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
	for name, v := range values {
		for format, show := range formats {
			t.Run(name+"-"+format, func(t *testing.T) {
				shown := show(v)
				if shown == "" || strings.Contains(shown, text) || strings.Contains(shown, fmt.Sprintf("%x", text)) {
					t.Errorf("shown as %s", shown)
				}
			})
		}
	}
}
