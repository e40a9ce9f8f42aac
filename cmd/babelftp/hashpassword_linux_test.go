package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// openTerminal opens a pseudo-terminal. It returns the end for the program, and the end at which a user
// types.
func openTerminal(t *testing.T) (programs, person *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	must.OK(t, err)
	t.Cleanup(func() { _ = person.Close() })
	must.OK(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	must.OK(t, err)
	programs, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	must.OK(t, err)
	t.Cleanup(func() { _ = programs.Close() })
	return programs, person
}

// shows reports whether a terminal echoes its input.
func shows(t *testing.T, terminal *os.File) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	must.OK(t, err)
	return state.Lflag&unix.ECHO != 0
}

// The terminal does not echo a password, and echoes again after Ctrl-C.
func TestInterruptedPassword(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"hash-password", "doctor ftp://alice@127.0.0.1:1"} {
		in, _ := openTerminal(t)
		cmd := program(t, strings.Fields(args)...)
		var errors bytes.Buffer
		cmd.Stdin, cmd.Stderr = in, &errors
		must.OK(t, cmd.Start())
		for shows(t, in) {
			runtime.Gosched()
		}
		must.OK(t, cmd.Process.Signal(os.Interrupt))
		_ = cmd.Wait() // ended reports the exit code
		code, text := cmd.ProcessState.ExitCode(), errors.String()
		if code != exitFailure || !strings.HasSuffix(text, "interrupted\n") {
			t.Errorf("%s: exit code %d, output %q", args, code, text)
		}
		if !shows(t, in) {
			t.Errorf("%s: the terminal does not echo afterward", args)
		}
	}
}
