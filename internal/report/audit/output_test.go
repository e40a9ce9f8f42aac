package audit_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report/audit"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// The file "-" is standard output, and no file of that name.
func TestStandardOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	var stdout bytes.Buffer
	o, err := audit.NewOutput(t.Context(), config.Audit{File: "-"}, &stdout,
		func(string) func(int) { return func(int) {} }, slog.New(slog.DiscardHandler))
	must.OK(t, err)
	must.OK(t, o.Open())
	must.Write(t, o, "{}\n")
	o.Close(t.Context())
	if got := stdout.String(); got != "{}\n" {
		t.Errorf("standard output has %q", got)
	}
}
