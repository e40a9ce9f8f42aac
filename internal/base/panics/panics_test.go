package panics

import (
	"errors"
	"io"
	"testing"
)

// TestResult checks that Result returns the result of the work, or its panic as an error.
func TestResult(t *testing.T) {
	if n, err := Result(func() (int, error) { return 3, io.EOF }); n != 3 || !errors.Is(err, io.EOF) {
		t.Errorf("got %d, %v; want 3 and io.EOF", n, err)
	}
	n, err := Result(func() (int, error) { panic("a bug") })
	if p, ok := errors.AsType[*Error](err); n != 0 || !ok || p.Value != "a bug" || len(p.Stack) == 0 {
		t.Errorf("got %d, %v; want the panic", n, err)
	}
}
