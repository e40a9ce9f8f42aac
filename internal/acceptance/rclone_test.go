package acceptance_test

import (
	"strings"
	"testing"
)

// An rclone runs rclone(1) with a remote "acme:".
type rclone struct {
	t      *testing.T
	config string // file
	args   []string
}

func newRclone(t *testing.T, c connection) *rclone {
	t.Helper()
	r := &rclone{t: t}
	hidden := strings.TrimSpace(launchWith(t, c.password, command(t, "rclone"), "obscure", "-").succeed())
	r.config = newFolder(t).write("rclone.conf", []byte(strings.Join([]string{
		"[acme]", "type = ftp", "host = " + c.host, "port = " + c.port, "user = " + c.user, "pass = " + hidden,
		"explicit_tls = true",
		"no_check_certificate = true", "encoding = Slash,Del,Ctl,RightSpace,Dot,InvalidUtf8", "",
	}, "\n")))
	r.args = []string{"--config", r.config, "--retries", "1"}
	return r
}

// run runs a command, and returns what it logged.
func (r *rclone) run(args ...string) string {
	r.t.Helper()
	p := launch(r.t, command(r.t, "rclone"), append(r.args, args...)...)
	p.succeed()
	return p.stderr.String()
}
