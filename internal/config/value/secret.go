package value

import (
	"log/slog"

	"github.com/babelftp/babelftp/internal/base/contract"
)

// redacted is printed instead of a secret.
const redacted = "[redacted]"

// A Secret is a string that must not be printed. Formatting, encoding or logging it gives [redacted], or nothing if
// it is empty. Only Reveal returns the string.
type Secret struct {
	// A pointer, because fmt prints unexported fields without calling their methods. For a pointer it prints only the
	// address.
	text *string
}

// NewSecret returns a secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

var _ contract.Secret = Secret{}

// Reveal returns the string.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Empty reports whether the string is empty.
func (s Secret) Empty() bool { return s.text == nil }

// String implements [fmt.Stringer].
func (s Secret) String() string {
	if s.Empty() {
		return ""
	}
	return redacted
}

// GoString implements [fmt.GoStringer].
func (s Secret) GoString() string { return `value.Secret("` + s.String() + `")` }

// LogValue implements [slog.LogValuer].
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements [encoding.TextMarshaler], which JSON and YAML encoders use.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}
