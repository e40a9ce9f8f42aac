package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// maxPassword limits the length of a password in bytes. It is more than an FTP client can send in one
// command.
const maxPassword = 4096

func newHashPasswordCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "hash-password",
		Short: "Hash a password for the configuration",
		Long: "Read a password from standard input and print its argon2id hash, for password_hash in " +
			"the configuration.\n" +
			"On a terminal, the command asks for the password twice and does not show it.",
		Example: "  babelftp hash-password\n" +
			"  openssl rand -base64 18 | tee password | babelftp hash-password > hash",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			password, err := readPassword(cmd.InOrStdin(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			hash, err := passwordhash.New(password)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), hash)
			return err
		},
	}
}

var (
	errPasswordEmpty = errors.New("the password is empty: enter one line")
	errPasswordLines = errors.New("the password has more than one line: enter one line")
	errPasswordLong  = fmt.Errorf("the password is longer than %d bytes: choose a shorter one", maxPassword)
	errPasswordDiffs = errors.New("the two passwords differ: try again")
	errInterrupted   = errors.New("interrupted")
)

// readPassword asks for a new password on a terminal. From other inputs it reads a single line.
func readPassword(in io.Reader, prompt io.Writer) (string, error) {
	if fd, ok := terminal(in); ok {
		return askPassword(fd, prompt, "Password: ", "Repeat password: ")
	}
	return passwordIn(in)
}

// passwordIn reads a password from an input that must have a single line.
func passwordIn(in io.Reader) (string, error) {
	input, err := io.ReadAll(io.LimitReader(in, maxPassword+2)) // leaves room for a line break
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return checkPassword(bytes.TrimSuffix(bytes.TrimSuffix(input, []byte("\n")), []byte("\r")))
}

// passwordInFile reads the password from the file of --password-file.
func passwordInFile(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("cannot read --password-file %s: %w", name, yamlconf.WithoutPath(err))
	}
	defer file.Close()
	password, err := passwordIn(file)
	if err != nil {
		return "", fmt.Errorf("--password-file %s: %w", name, err)
	}
	return password, nil
}

// terminal returns the file descriptor of a stream, and reports whether it is a terminal.
func terminal(stream any) (fd int, ok bool) {
	file, ok := stream.(*os.File)
	if !ok {
		return 0, false
	}
	return int(file.Fd()), term.IsTerminal(int(file.Fd()))
}

// askPassword asks each question on a terminal. All answers must be equal.
func askPassword(fd int, prompt io.Writer, questions ...string) (string, error) {
	var password []byte
	for i, question := range questions {
		fmt.Fprint(prompt, question)
		answer, err := readHidden(fd)
		fmt.Fprintln(prompt)
		if err != nil {
			return "", fmt.Errorf("read the password: %w", err)
		}
		if i > 0 && !bytes.Equal(answer, password) {
			return "", errPasswordDiffs
		}
		password = answer
	}
	return checkPassword(password)
}

// readHidden reads a line from a terminal without echo. If a signal such as Ctrl-C interrupts it, it restores
// the echo.
func readHidden(fd int) ([]byte, error) {
	shown, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(interrupted)
	type result struct {
		line []byte
		err  error
	}
	typed := make(chan result, 1)
	panics.Go(func() {
		line, err := term.ReadPassword(fd)
		typed <- result{line, err}
	})
	select {
	case r := <-typed:
		return r.line, r.err
	case <-interrupted:
		_ = term.Restore(fd, shown)
		return nil, errInterrupted
	}
}

func checkPassword(password []byte) (string, error) {
	switch {
	case len(password) == 0:
		return "", errPasswordEmpty
	case bytes.ContainsAny(password, "\r\n"):
		return "", errPasswordLines
	case len(password) > maxPassword:
		return "", errPasswordLong
	}
	return string(password), nil
}
