package deploy

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// unitValues returns the values in a unit by key.
func unitValues(t *testing.T, file string) map[string]string {
	t.Helper()
	text := must.ReadFile(t, file)
	values := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			values[key] = value
		}
	}
	return values
}

// mode parses a file mode in a unit.
func mode(t *testing.T, text string) os.FileMode {
	t.Helper()
	bits, err := strconv.ParseUint(text, 8, 32)
	must.OK(t, err)
	return os.FileMode(bits)
}

// TestServiceObtainsACertificate checks the guide's configuration as root and then starts the service with
// the user, directories and umask of the unit. The service stores its certificates and the audit log in these
// directories. Its group may read the audit log.
func TestServiceObtainsACertificate(t *testing.T) {
	authority := servicetest.StartAuthority(t, time.Hour)
	unit := unitValues(t, "systemd/babelftp.service")
	words := strings.Fields(unit["ExecStart"])
	image := image{programs: map[string]string{words[0]: "babelftp"}}
	root := image.unpack(t, binary(t, "-tags", "nodemo"))
	address, storage := loopback(), closedPort(t)
	ca, err := os.ReadFile(authority.CAFile)
	must.OK(t, err)
	writeFile(t, filepath.Join(root, "etc/babelftp/ca.crt"), string(ca))
	text, err := os.ReadFile("../docs/guides/single-machine.md")
	must.OK(t, err)
	block := yamlBlock.FindSubmatch(text) // the first block is for systemd
	if block == nil {
		t.Fatal("the guide has no configuration")
	}
	writeFile(t, filepath.Join(root, configFile), strings.NewReplacer(
		`":21"`, `"`+address+`:21"`, `":990"`, `"`+address+`:990"`,
		`http_listen: ":80"`, fmt.Sprintf("http_listen: %q\n    directory: %q",
			authority.HTTPAddress, authority.Directory),
		"$argon2id$...", servicetest.PasswordHash().Reveal()).Replace(string(block[1]))+
		"metrics_listen: "+address+":9121\nca_file: ca.crt\naudit: {file: /var/log/babelftp/audit.log}\n")
	for _, name := range []string{"s3.id", "s3.key"} {
		writeFile(t, filepath.Join(root, "etc/babelftp", name), "x")
	}
	give(t, filepath.Join(root, "etc"))

	command := func(user int, words ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
		cmd.Env = []string{"PATH=/usr/local/bin", "AWS_ENDPOINT_URL=http://" + storage}
		confine(cmd, root, user)
		return cmd
	}
	check := func(user int, want string) {
		t.Helper()
		out, err := command(user, words[0], "check", "--config", configFile).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("user %d checks the configuration: %v\n%s\nwant %s", user, err, out, want)
		}
	}
	check(0, "tls.acme.folder: /var/lib/babelftp/acme does not exist yet: the server creates it")
	for kind, folder := range map[string]string{"Runtime": "run", "State": "var/lib", "Logs": "var/log"} {
		dir := filepath.Join(root, folder, unit[kind+"Directory"])
		must.OK(t, os.MkdirAll(dir, 0o755))
		must.OK(t, os.Chmod(dir, mode(t, unit[kind+"DirectoryMode"])))
		give(t, dir)
	}

	cmd := command(serviceUser, words...)
	cmd.SysProcAttr.AmbientCaps = []uintptr{10} // CAP_NET_BIND_SERVICE
	log, err := cmd.StderrPipe()
	must.OK(t, err)
	before := syscall.Umask(int(mode(t, unit["UMask"])))
	err = cmd.Start()
	syscall.Umask(before)
	must.OK(t, err)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	waitForLines(t, log, "ACME certificate obtained")
	check(serviceUser, "tls.acme: the certificate for ftp.acme.example")
	for file, want := range map[string]os.FileMode{
		"var/log/babelftp/audit.log": 0o640, "var/lib/babelftp/acme": os.ModeDir | 0o700,
		"run/babelftp/admin/admin.sock": os.ModeSocket | 0o600,
	} {
		if info, err := os.Stat(filepath.Join(root, file)); err != nil || info.Mode() != want {
			t.Errorf("%s: got %v, %v, want %v", file, info.Mode(), err, want)
		}
	}
	folder := filepath.Join(root, "var/lib/babelftp/acme")
	must.OK(t, os.Chmod(folder, 0o500))
	out, err := command(serviceUser, words[0], "check", "--config", configFile).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "tls.acme.folder: the user who runs this check cannot write here") {
		t.Errorf("the check of a folder that the service cannot write: %v\n%s", err, out)
	}
	if out, err := command(serviceUser, words[0], "sessions").CombinedOutput(); err != nil {
		t.Errorf("babelftp sessions: %v\n%s", err, out)
	}
}

// waitForLines reads a log until it contains text.
func waitForLines(t *testing.T, log io.Reader, text string) {
	t.Helper()
	var all strings.Builder
	found := make(chan bool, 1)
	go func() {
		part := make([]byte, 4096)
		for {
			n, err := log.Read(part)
			all.Write(part[:n])
			if strings.Contains(all.String(), text) || err != nil {
				found <- err == nil
				_, _ = io.Copy(io.Discard, log)
				return
			}
		}
	}()
	select {
	case ok := <-found:
		if !ok {
			t.Fatalf("the server exited:\n%s", &all)
		}
	case <-time.After(waitTimeout):
		t.Fatalf("the log has no line %q", text)
	}
}
