package panics

import (
	"log/slog"
	"strings"
	"testing"
)

// TestGuard checks that a panic ends a function but not its caller, and that it is logged with its stack and counted.
func TestGuard(t *testing.T) {
	var log strings.Builder
	g := NewGuard(slog.New(slog.NewTextHandler(&log, nil)))
	cleaned := false
	work := func(value any) {
		defer g.Recover("relay")
		defer func() { cleaned = true }()
		if value != nil {
			panic(value)
		}
	}
	work(nil)
	if g.Count() != 0 || log.Len() > 0 {
		t.Errorf("without a panic, the count is %d and the log is %s", g.Count(), &log)
	}
	work("a bug")
	for _, want := range []string{"ended by a panic", "ended=relay", "a bug", "TestGuard"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log is %s, want %q", &log, want)
		}
	}
	if g.Count() != 1 || !cleaned {
		t.Errorf("count %d, want 1; the function has cleaned up: %v", g.Count(), cleaned)
	}
	defer func() {
		if value := recover(); value != "a bug" {
			t.Errorf("without a guard, recover returns %v", value)
		}
	}()
	var none *Guard
	defer none.Recover("relay")
	panic("a bug")
}
