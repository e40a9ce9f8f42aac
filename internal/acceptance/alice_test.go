package acceptance_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
)

// dialAlice logs in as alice of acme. It returns errors instead of failing the test, for use in goroutines.
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

// alice logs in as alice of acme.
func (s *site) alice(t *testing.T) *ftptest.Client {
	t.Helper()
	c := ftptest.Dial(t, s.address)
	c.Login("alice@acme", password)
	c.Command(200, "TYPE I")
	return c
}

// uploading sends size bytes of a file as alice and leaves the data connection open until the end of the test.
func (s *site) uploading(t *testing.T, name string, size int) (*ftptest.Client, net.Conn) {
	t.Helper()
	c := s.alice(t)
	data := c.Data()
	t.Cleanup(func() { _ = data.Close() })
	c.Command(150, "STOR "+name)
	if _, err := data.Write(content(size)); err != nil {
		t.Fatal(err)
	}
	return c, data
}
