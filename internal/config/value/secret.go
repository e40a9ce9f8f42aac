package value

import (
	"log/slog"

	"github.com/babelftp/babelftp/internal/base/contract"
)

// redacted is shown in the place of a secret.
const redacted = "[redacted]"

// A Secret is a text that must not be printed. Every way of formatting, encoding or logging it gives [redacted], or
// nothing when it is empty; only Reveal gives the text.
type Secret struct {
	// A pointer, because fmt prints what an unexported field holds without asking its methods: of a pointer it prints
	// the address.
	text *string
}

// NewSecret makes a secret of text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

var _ contract.Secret = Secret{}

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Empty reports whether there is no text.
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

// MarshalText implements [encoding.TextMarshaler], which encoders of JSON and YAML ask.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}
