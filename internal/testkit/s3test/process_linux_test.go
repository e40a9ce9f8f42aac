package s3test

import (
	"io"
	"os"
	"os/exec"
	"testing"
)

// orphanVariable tells a test process to start a process as servers are and to wait.
const orphanVariable = "BABELFTP_TEST_ORPHAN"

func TestMain(m *testing.M) {
	if os.Getenv(orphanVariable) == "" {
		os.Exit(m.Run())
	}
	cmd := exec.Command("sleep", "600")
	cmd.Stdout = os.Stdout // open until both have ended
	cmd.SysProcAttr = dieWithParent()
	if p, err := run(cmd); err == nil {
		_, _ = os.Stdout.WriteString("started\n")
		<-p.done
	}
	os.Exit(1)
}

func TestServersDieWithTheTestProcess(t *testing.T) {
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), executable)
	cmd.Env = append(os.Environ(), orphanVariable+"=1")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, len("started\n"))); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The pipe ends when the process that was started has ended too, which otherwise lasts as long as the test may.
	if _, err := io.Copy(io.Discard, stdout); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the test process was not killed")
	}
}
