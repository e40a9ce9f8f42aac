package acceptance_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// An rclone runs rclone(1) with a remote "acme:".
type rclone struct {
	t      *testing.T
	config string // file
	args   []string
}

func newRclone(t *testing.T, s *site) *rclone {
	t.Helper()
	r := &rclone{t: t}
	host, port, _ := strings.Cut(s.address, ":")
	hidden := strings.TrimSpace(launchWith(t, password, command(t, "rclone"), "obscure", "-").succeed())
	r.config = newFolder(t).write("rclone.conf", []byte(strings.Join([]string{
		"[acme]", "type = ftp", "host = " + host, "port = " + port, "user = alice@acme", "pass = " + hidden,
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

// testItself runs rclone's integration tests, from the module of tools/rclone.mod: those of its FTP backend, and of what
// it does with each remote.
func (r *rclone) testItself() {
	const rclone = "github.com/rclone/rclone/"
	cmd := exec.CommandContext(
		r.t.Context(), "go", "test", "-modfile", "../../tools/rclone.mod", "-count", "1", "-timeout", "30m", "-vet", "off",
		rclone+"backend/ftp", rclone+"fs/operations", rclone+"fs/sync", "-remote", "acme:")
	cmd.Env = append(os.Environ(), "RCLONE_CONFIG="+r.config)
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Errorf("%v: %v\n%s", cmd, err, out)
	}
}
