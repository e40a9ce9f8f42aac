package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestNamesPrompt answers the question on a terminal.
func TestNamesPrompt(t *testing.T) {
	for name, tc := range map[string]struct {
		typed string // empty for Ctrl-C
		code  int
		want  []string
		end   string
	}{
		"yes":       {"y\n", exitOK, []string{"inbox/目录"}, "1 object renamed\n"},
		"no":        {"n\n", exitFailure, []string{"inbox/Ŀ¼"}, "nothing was renamed\n"},
		"enter":     {"\n", exitFailure, []string{"inbox/Ŀ¼"}, "nothing was renamed\n"},
		"interrupt": {"", exitFailure, []string{"inbox/Ŀ¼"}, "nothing was renamed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNamesWorld(t, s3test.Start(t, "sim-aws"), "inbox/Ŀ¼")
			in, person := openTerminal(t)
			cmd := program(t, "names", "acme", "--config", w.config)
			cmd.Stdin = in
			stderr, err := cmd.StderrPipe()
			must.OK(t, err)
			must.OK(t, cmd.Start())
			said, reader := new(bytes.Buffer), bufio.NewReader(stderr)
			for !strings.HasSuffix(said.String(), "[y/N] ") {
				b, err := reader.ReadByte()
				must.OK(t, err)
				said.WriteByte(b)
			}
			if tc.typed == "" {
				must.OK(t, cmd.Process.Signal(os.Interrupt))
			} else {
				_, err = person.WriteString(tc.typed)
				must.OK(t, err)
			}
			_, err = io.Copy(said, reader)
			must.OK(t, err)
			_ = cmd.Wait() // the test checks the exit code
			if code := cmd.ProcessState.ExitCode(); code != tc.code || !strings.HasSuffix(said.String(), tc.end) {
				t.Errorf("exit code %d, output %s", code, said)
			}
			if got := s3test.Objects(t, w.server.Client(), w.bucket); !slices.Equal(got, tc.want) {
				t.Errorf("the bucket has %q, want %q", got, tc.want)
			}
		})
	}
}
