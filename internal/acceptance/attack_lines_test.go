package acceptance_test

import (
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/configtest"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestLinesThatAreOdd sends what clients type and broken ones send: arguments as long as a line, spaces at the end, and
// copies into what is copied. Each gets its own reply, and no session ends.
func TestLinesThatAreOdd(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"), mallory())
	stranger := ftptest.Dial(t, s.address)
	stranger.Command(331, "USER "+strings.Repeat("u", 4090))
	stranger.Command(200, "CLNT "+strings.Repeat("\x10", 2100))
	stranger.Command(200, "NOOP")

	c := ftptest.Dial(t, s.address)
	c.Command(200, "LANG en")
	c.Login("mallory@acme", configtest.Password)
	for _, line := range []struct {
		code int
		text string
	}{
		{200, "CLNT " + strings.Repeat("\x10", 2100)},
		{226, "ABOR "},
		{229, "EPSV "},
		{200, "PORT 127,0,0,1,200,1 "},
		{257, "MKD d"},
		{350, "SITE CPFR /"},
	} {
		c.Command(line.code, line.text)
	}
	const intoItself = "cannot be moved or copied into itself"
	if text := c.Command(550, "SITE CPTO /d/x"); !strings.Contains(text, intoItself) {
		t.Errorf("a copy of / into itself is refused by %q", text)
	}
	if text := c.Command(502, "SITE HELP ?!?"); strings.Contains(text, "CPFR") {
		t.Errorf("SITE HELP of no command lists all: %q", text)
	}

	// An ABOR with a space stops the transfer, and does not wait for its end.
	c.Command(200, "TYPE I")
	data := c.Data()
	defer data.Close()
	c.Command(150, "STOR /endless")
	c.Command(426, "ABOR ")
	c.Reply(226)
}
