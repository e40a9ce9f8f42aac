package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// tool runs a program and returns its output.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short runs no tools; this test needs " + name)
	}
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s\nrun make tools packages if it is missing", name, err, out)
	}
	return string(out)
}

// systemd accepts every line of the unit and rates its sandbox as good.
func TestSystemdUnit(t *testing.T) {
	const unit, program = "systemd/babelftp.service", "/usr/local/bin/babelftp"
	text := must.ReadFile(t, unit)
	there := filepath.Join(t.TempDir(), "babelftp.service")
	must.WriteFile(t, there, strings.ReplaceAll(text, program, "/bin/true"))
	if out := tool(t, "systemd-analyze", "verify", "--man=no", there); out != "" {
		t.Error(out)
	}
	tool(t, "systemd-analyze", "security", "--offline=yes", "--threshold=20", there) // out of 100, where 0 is best
	if !strings.Contains(text, "="+program+" serve --config /etc/babelftp/babelftp.yaml\n") {
		t.Error("the unit does not run babelftp serve")
	}
}

// systemd accepts every line of the socket unit. The name of its socket is a configuration key.
func TestSystemdSocket(t *testing.T) {
	dir := t.TempDir()
	for _, unit := range []string{"babelftp.service", "babelftp.socket"} {
		text, err := os.ReadFile("systemd/" + unit)
		must.OK(t, err)
		text = bytes.ReplaceAll(text, []byte("/usr/local/bin/babelftp"), []byte("/bin/true"))
		must.OK(t, os.WriteFile(filepath.Join(dir, unit), text, 0o600))
		if unit == "babelftp.socket" && !bytes.Contains(text, []byte("\nFileDescriptorName=listen\n")) {
			t.Error("the socket is not named after the key listen")
		}
	}
	if out := tool(t, "systemd-analyze", "verify", "--man=no", filepath.Join(dir, "babelftp.socket")); out != "" {
		t.Error(out)
	}
}

// composeService is a service in a compose file.
type composeService struct {
	Entrypoint  []string          `json:"entrypoint"`
	Environment map[string]string `json:"environment"`
	Healthcheck struct {
		Test []string `json:"test"`
	} `json:"healthcheck"`
	Ports []struct {
		HostIP    string `json:"host_ip"`
		Target    int    `json:"target"`
		Published string `json:"published"`
	} `json:"ports"`
	Secrets []struct {
		Source string `json:"source"`
	} `json:"secrets"`
	Volumes []struct {
		Source string `json:"source"`
		Target string `json:"target"`
	} `json:"volumes"`
	ReadOnly bool     `json:"read_only"`
	CapDrop  []string `json:"cap_drop"`
}

// The compose file is valid and matches its configuration. A user of its babelftp stores a file in its S3
// server.
func TestCompose(t *testing.T) {
	var project struct {
		Services map[string]composeService `json:"services"`
	}
	out := tool(t, "../.tools/bin/compose-go", "-no-interpolation", "-format", "json", "compose/compose.yaml")
	if err := json.Unmarshal([]byte(out), &project); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	service := project.Services["babelftp"]
	if !service.ReadOnly || !slices.Equal(service.CapDrop, []string{"ALL"}) {
		t.Errorf(
			"babelftp runs with a root file system that it can write, or with capabilities %v dropped", service.CapDrop)
	}
	dir := t.TempDir()
	for _, secret := range service.Secrets {
		writeFile(t, filepath.Join(dir, secret.Source), servicetest.PasswordHash().Reveal()+"\n")
	}
	if v := service.Volumes; len(v) != 1 || v[0].Target != filepath.Dir(configFile) {
		t.Fatalf("babelftp mounts %v, and an editor that replaces the file reaches a folder only", v)
	}
	// Compose resolves the path relative to the compose file, compose-go relative to the directory of the test.
	folder := filepath.Base(service.Volumes[0].Source)
	text := must.ReadFile(t, filepath.Join("compose", folder, filepath.Base(configFile)))
	storage := startStorage(t, project.Services["versitygw"])
	file, control := filepath.Join(dir, "babelftp.yaml"), loopback()
	writeFile(t, file, strings.NewReplacer("/run/secrets", dir, "versitygw:7070", storage, `":2121"`, control+":2121",
		`":9121"`, control+":9121").Replace(text))
	cfg, err := config.Load(file, nil)
	must.OK(t, err)
	published := map[string]bool{}
	for _, port := range service.Ports {
		published[fmt.Sprintf("%s:%d", port.Published, port.Target)] = true
		if port.HostIP != "127.0.0.1" {
			t.Errorf("port %s is open to other machines, and there is no TLS", port.Published)
		}
	}
	for _, port := range []int{2121, 9121, int(cfg.Passive.Ports.First), int(cfg.Passive.Ports.Last)} {
		if !published[fmt.Sprintf("%d:%[1]d", port)] {
			t.Errorf("port %d is not published", port)
		}
	}
	cmd := exec.CommandContext(t.Context(), binary(t, "-tags", "nodemo"), "serve", "--config", file)
	cmd.Env = interpolated(service.Environment)
	startAndWait(t, cmd, control, 2, io.Discard)
	client := ftptest.Dial(t, control+":2121")
	client.Login("alice", servicetest.Password)
	client.Store("hello.txt", "bonjour")
	client.Want("bonjour", "RETR hello.txt")
}

// interpolated returns the variables of a service, with the values from .env.
func interpolated(environment map[string]string) (env []string) {
	for key, value := range environment {
		if strings.HasPrefix(value, "${S3_SECRET_KEY:?") {
			value = "secretsecret"
		}
		env = append(env, key+"="+value)
	}
	return env
}

// startStorage starts the S3 server of the compose file with a directory as its volume, and returns its
// address when it is healthy.
func startStorage(t *testing.T, service composeService) string {
	t.Helper()
	if len(service.Entrypoint) != 3 || len(service.Volumes) != 1 {
		t.Fatalf("the S3 server runs %q with %v", service.Entrypoint, service.Volumes)
	}
	tools, err := filepath.Abs("../.tools/bin")
	must.OK(t, err)
	words := slices.Clone(service.Entrypoint)
	words[2] = strings.ReplaceAll(words[2], service.Volumes[0].Target, t.TempDir())
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	address := closedPort(t)
	cmd.Env = append(interpolated(service.Environment), "VGW_PORT="+address, "PATH="+tools+":"+os.Getenv("PATH"))
	must.OK(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	health := service.Healthcheck.Test[len(service.Healthcheck.Test)-1]
	path, ours := strings.CutPrefix(health, "http://127.0.0.1:7070")
	if !ours {
		t.Fatalf("unexpected health check %s", health)
	}
	again := time.NewTicker(time.Second / 10)
	defer again.Stop()
	for end := time.Now().Add(waitTimeout); ; <-again.C {
		response, err := http.Get("http://" + address + path)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return address
			}
		}
		if time.Now().After(end) {
			t.Fatalf("the S3 server is not healthy: %v %v", response, err)
		}
	}
}
