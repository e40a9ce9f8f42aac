package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
)

// maxPassword is more bytes than an FTP client can send in one command.
const maxPassword = 4096

func newHashPasswordCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "hash-password",
		Short: "Hash a password for the configuration",
		Long: "Read a password from standard input and print its argon2id hash, which is a user's password_hash in " +
			"the configuration.\n" +
			"On a terminal the password is asked for twice and not shown.",
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
	errPasswordEmpty = errors.New("the password is empty: type one, or send one line to standard input")
	errPasswordLines = errors.New("the password is more than one line: send one line to standard input")
	errPasswordLong  = fmt.Errorf("the password is longer than %d bytes: choose a shorter one", maxPassword)
	errPasswordDiffs = errors.New("the two passwords differ: try again")
)

// readPassword asks for a password on a terminal, or reads the one line of another input.
func readPassword(in io.Reader, prompt io.Writer) (string, error) {
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return askPassword(int(f.Fd()), prompt)
	}
	input, err := io.ReadAll(io.LimitReader(in, maxPassword+2)) // and its line break
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return checkPassword(bytes.TrimSuffix(bytes.TrimSuffix(input, []byte("\n")), []byte("\r")))
}

func askPassword(fd int, prompt io.Writer) (string, error) {
	var answers [2][]byte
	for i, question := range []string{"Password: ", "Once more: "} {
		fmt.Fprint(prompt, question)
		answer, err := term.ReadPassword(fd)
		fmt.Fprintln(prompt)
		if err != nil {
			return "", fmt.Errorf("read the password: %w", err)
		}
		answers[i] = answer
	}
	if !bytes.Equal(answers[0], answers[1]) {
		return "", errPasswordDiffs
	}
	return checkPassword(answers[0])
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
