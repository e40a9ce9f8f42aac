package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/configtest"
)

// tool runs a program and returns what it printed.
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

// systemd takes each line of the unit, and counts it among the services that are well confined.
func TestSystemdUnit(t *testing.T) {
	const unit, program = "systemd/babelftp.service", "/usr/local/bin/babelftp"
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(t.TempDir(), "babelftp.service")
	if err := os.WriteFile(there, []byte(strings.ReplaceAll(string(text), program, "/bin/true")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := tool(t, "systemd-analyze", "verify", "--man=no", there); out != "" {
		t.Error(out)
	}
	tool(t, "systemd-analyze", "security", "--offline=yes", "--threshold=20", there) // of 100, where 0 is the best
	if !strings.Contains(string(text), "="+program+" serve --config /etc/babelftp/babelftp.yaml\n") {
		t.Error("the unit does not call babelftp serve")
	}
}

// systemd takes each line of the socket unit, whose socket has the name of a key.
func TestSystemdSocket(t *testing.T) {
	dir := t.TempDir()
	for _, unit := range []string{"babelftp.service", "babelftp.socket"} {
		text, err := os.ReadFile("systemd/" + unit)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte("/usr/local/bin/babelftp"), []byte("/bin/true"))
		if err := os.WriteFile(filepath.Join(dir, unit), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if unit == "babelftp.socket" && !bytes.Contains(text, []byte("\nFileDescriptorName=listen\n")) {
			t.Error("the socket does not have the name of the key listen")
		}
	}
	if out := tool(t, "systemd-analyze", "verify", "--man=no", filepath.Join(dir, "babelftp.socket")); out != "" {
		t.Error(out)
	}
}

// The compose file has the form of one, and fits to its configuration.
func TestCompose(t *testing.T) {
	var project struct {
		Services map[string]struct {
			Command     []string          `json:"command"`
			Environment map[string]string `json:"environment"`
			Ports       []struct {
				Target    int    `json:"target"`
				Published string `json:"published"`
			} `json:"ports"`
			Secrets []struct {
				Source string `json:"source"`
			} `json:"secrets"`
			ReadOnly bool     `json:"read_only"`
			CapDrop  []string `json:"cap_drop"`
		} `json:"services"`
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
	var env []string
	for key, value := range service.Environment {
		env = append(env, key+"="+value)
	}
	dir := t.TempDir()
	for _, secret := range service.Secrets {
		hash := []byte(configtest.PasswordHash().Reveal() + "\n")
		if err := os.WriteFile(filepath.Join(dir, secret.Source), hash, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("compose/babelftp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "babelftp.yaml")
	if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte("/run/secrets"), []byte(dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, env)
	if err != nil {
		t.Fatal(err)
	}
	published := map[string]bool{}
	for _, port := range service.Ports {
		published[fmt.Sprintf("%s:%d", port.Published, port.Target)] = true
	}
	for _, port := range []int{2121, 9121, int(cfg.Passive.Ports.First), int(cfg.Passive.Ports.Last)} {
		if !published[fmt.Sprintf("%d:%[1]d", port)] {
			t.Errorf("port %d is not published", port)
		}
	}
	if made := project.Services["bucket"].Command; len(made) != 1 ||
		!strings.HasSuffix(made[0], "/"+cfg.Tenants["acme"].Bucket) {
		t.Errorf("the bucket %s is not made: %q", cfg.Tenants["acme"].Bucket, made)
	}
}
