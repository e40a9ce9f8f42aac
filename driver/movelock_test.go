package driver

import (
	"context"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// TestMoveLock checks which renames and copies wait for a running rename or copy.
func TestMoveLock(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		from, to      string
		first, second bool // whether they are copies
		waits         bool
	}{
		{from: "b/a", to: "b/c", waits: true},
		{from: "b/x", to: "b/a", waits: true},
		{from: "b/a/sub", to: "b/x", waits: true},
		{from: "b", to: "b/x", waits: true},
		{from: "b/a", to: "b/c", second: true, waits: true},
		{from: "b/a", to: "b/c", first: true, waits: true},
		{from: "b/a", to: "b/c", first: true, second: true},
		{from: "b/ab", to: "b/c"},
		{from: "c/a", to: "c/b"},
	} {
		var m moveLock
		end, err := m.begin(t.Context(), [2]string{"b/a", "b/b"}, test.first)
		must.OK(t, err)
		endNext, err := m.begin(ended, [2]string{test.from, test.to}, test.second)
		if (err != nil) != test.waits {
			t.Errorf("%+v: %v", test, err)
		}
		if err == nil {
			endNext()
		}
		end()
		if len(m.running) > 0 {
			t.Errorf("%+v: operations are running after their end", test)
		}
	}
}
