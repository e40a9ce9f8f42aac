package serve

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
)

// Texts from clients are escaped in the log, so that they have no effect on a terminal.
func TestLogEscapes(t *testing.T) {
	const hostile, want = "a\u202eb\u009b31m\x1b[31m\r\n\u65e5\u672c",
		`a\u{202E}b\u{9B}31m` + "\x1b[31m\r\n\u65e5\u672c"
	for _, format := range []config.LogFormat{config.LogJSON, ""} {
		var out strings.Builder
		NewLogger(&out, format, slog.LevelInfo).Info("event", "text", hostile, "err", errors.New(hostile))
		if strings.ContainsAny(out.String(), "\u202e\u009b\x1b\r") || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%s: %q", format, out.String())
		}
		if format != config.LogJSON {
			continue
		}
		var line struct{ Text, Err string }
		if err := json.Unmarshal([]byte(out.String()), &line); err != nil || line.Text != want || line.Err != want {
			t.Errorf("got %+q, %+q, %v; want %+q", line.Text, line.Err, err, want)
		}
	}
}
