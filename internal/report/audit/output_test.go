package audit_test

import (
	"bytes"
	"io"
	"log/slog"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report/audit"
)

// The file "-" is standard output, and no file of that name.
func TestStandardOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	var stdout bytes.Buffer
	o, err := audit.NewOutput(t.Context(), config.Audit{File: "-"}, &stdout,
		func(string) func(int) { return func(int) {} }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Open(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(o, "{}\n"); err != nil {
		t.Fatal(err)
	}
	o.Close(t.Context())
	if got := stdout.String(); got != "{}\n" {
		t.Errorf("standard output has %q", got)
	}
}
