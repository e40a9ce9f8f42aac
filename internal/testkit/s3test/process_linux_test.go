package s3test

import (
	"io"
	"os"
	"os/exec"
	"testing"
)

func TestServersDieWithTheTestProcess(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), executable(t))
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
