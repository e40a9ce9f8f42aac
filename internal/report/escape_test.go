package report

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
	"time"
)

// Both handlers write the same text: control characters are escaped, and durations look as in the configuration.
func TestEscape(t *testing.T) {
	var text, json bytes.Buffer
	opts := &slog.HandlerOptions{ReplaceAttr: Escape}
	for _, h := range []slog.Handler{slog.NewTextHandler(&text, opts), slog.NewJSONHandler(&json, opts)} {
		slog.New(h).Info(
			"message", "name", "a\u202eb", "err", errors.New("c\u202ed"), "drain_timeout", 25*time.Second, "kept", "é")
	}
	for line, want := range map[string]string{
		text.String(): `msg=message name=a\u{202E}b err=c\u{202E}d drain_timeout=25s kept=é` + "\n",
		json.String(): `"msg":"message","name":"a\\u{202E}b","err":"c\\u{202E}d","drain_timeout":"25s","kept":"é"}` +
			"\n",
	} {
		if !bytes.HasSuffix([]byte(line), []byte(want)) {
			t.Errorf("got %s, want the end %s", line, want)
		}
	}
}
