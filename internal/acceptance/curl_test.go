package acceptance_test

import (
	"net/url"
	"strings"
	"testing"
)

// A curl runs curl(1). Each run uses one session.
type curl struct {
	t    *testing.T
	base string // URL
	args []string
}

func newCurl(t *testing.T, s *site, w way) *curl {
	c := &curl{t: t, base: "ftp://" + s.address, args: []string{
		"-q", "--silent", "--show-error", "--fail-early", "--cacert", s.ca, "--user", "alice@acme:" + password,
	}}
	switch w.tls {
	case "explicit":
		c.args = append(c.args, "--ssl-reqd")
	case "implicit":
		c.base = "ftps://" + s.implicit
	}
	if w.data == "active" {
		c.args = append(c.args, "--ftp-port", "-")
	}
	return c
}

// url returns the URL of an absolute pathname.
func (c *curl) url(name string) string {
	segments := strings.Split(name, "/")
	for i := range segments {
		segments[i] = url.PathEscape(segments[i])
	}
	return c.base + strings.Join(segments, "/")
}

// run runs curl without URL globbing.
func (c *curl) run(args ...string) {
	c.t.Helper()
	c.start(args...).succeed()
}

func (c *curl) start(args ...string) *process {
	c.t.Helper()
	return launch(c.t, command(c.t, "curl"), append(append([]string{"--globoff"}, c.args...), args...)...)
}

func (c *curl) upload(files ...move) {
	c.t.Helper()
	var args []string
	for _, f := range files {
		args = append(args, "--upload-file", f.from, c.url(f.to))
	}
	c.run(args...)
}
