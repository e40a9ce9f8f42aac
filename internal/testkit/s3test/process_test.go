package s3test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// orphanVariable tells a test process to start a process as servers are and to wait.
const orphanVariable = "BABELFTP_TEST_ORPHAN"

func TestMain(m *testing.M) {
	if os.Getenv(orphanVariable) != "" {
		cmd := exec.Command("sleep", "600")
		cmd.Stdout = os.Stdout // open until both have ended
		cmd.SysProcAttr = dieWithParent()
		p, err := run(cmd)
		if err != nil {
			os.Exit(1)
		}
		if _, err := os.Stdout.WriteString("started\n"); err != nil {
			os.Exit(1)
		}
		<-p.done
		os.Exit(1)
	}
	Main(m)
}

func TestMissingBinaryTellsWhatToDo(t *testing.T) {
	_, _, err := startProcess(t.Context(), descriptor{}, workspace{binary: filepath.Join(t.TempDir(), "minio")})
	if err == nil || !strings.HasSuffix(err.Error(), "run: make tools") {
		t.Errorf("error is %v", err)
	}
}

func TestProcessThatEnds(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "server")
	script := "#!/bin/sh\necho $1: cannot listen\necho >> " + binary + ".starts\nexit 3\n"
	if err := os.WriteFile(binary, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	d := descriptor{command: func(_, address string, _ login) (args, env []string) { return []string{address}, nil }}
	_, _, err := startProcess(t.Context(), d, workspace{binary: binary, data: t.TempDir()})
	if !errors.Is(err, errEnded) || !strings.Contains(err.Error(), "cannot listen") ||
		!strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error is %v", err)
	}
	if starts, err := os.ReadFile(binary + ".starts"); err != nil || len(starts) != portAttempts {
		t.Errorf("%d starts, %v; want %d", len(starts), err, portAttempts)
	}
}

func TestMainLeavesNothing(t *testing.T) {
	temporary := t.TempDir()
	cmd := exec.CommandContext(
		t.Context(), executable(t), "-test.run=^TestRunOnEveryServer$", fmt.Sprintf("-test.short=%t", testing.Short()))
	cmd.Dir = shared.root
	cmd.Env = append(os.Environ(), "TMPDIR="+temporary)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Fatalf("%v:\n%s", err, out)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
}

// executable is the test binary. Its name in os.Args may be relative to the working directory of this process.
func executable(t *testing.T) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}
