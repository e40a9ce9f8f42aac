package acceptance_test

import (
	"fmt"
	"strings"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
)

// dialAlice logs alice of acme in. It returns errors, for clients that work at the same time.
func (s *site) dialAlice() (*ftptest.Conn, error) {
	c, err := ftptest.Open(s.address)
	if err != nil {
		return nil, err
	}
	if greeting, err := c.Reply(); err != nil || !strings.HasPrefix(greeting, "220") {
		return nil, fmt.Errorf("greeting %q: %w", greeting, err)
	}
	for _, step := range []struct{ line, code string }{
		{"USER alice@acme", "331"}, {"PASS " + password, "230"}, {"TYPE I", "200"},
	} {
		if reply, err := c.Send(step.line); err != nil || !strings.HasPrefix(reply, step.code) {
			return nil, fmt.Errorf("%s: %q, %w", step.line, reply, err)
		}
	}
	return c, nil
}
