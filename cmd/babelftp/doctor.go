package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/doctor"
)

// errWrong makes the exit code tell that doctor has found something.
var errWrong = errors.New("something is wrong: see above")

func newDoctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor --log FILE",
		Short: "Say why FTP does not work, and what to change",
		Long: "Say why FTP does not work, and what to change. Each finding has its cause, what was seen, and what to " +
			"change, in the language of\n" +
			"LC_ALL, LC_MESSAGES or LANG. The exit code is 1 if something is wrong.\n\n" +
			"With --log read lines of the log of a server: which passive ports a client never reached, why it was " +
			"refused, whether S3 was slow.\n" +
			"Debug lines tell more: see babelftp debug.",
		Example: "  babelftp doctor --log /var/log/babelftp.log\n" +
			"  journalctl --unit babelftp --since -2h | babelftp doctor --log -\n" +
			"  kubectl logs babelftp-0 --since=2h | grep 192.0.2.7 | babelftp doctor --log - --json",
		Args: noArguments,
	}
	log := cmd.Flags().String("log", "", "read the lines of a server's log from `FILE`, or from standard input for -")
	asJSON := addJSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *log == "" {
			return newUsageError(cmd, "--log names no file")
		}
		found, err := readLog(cmd, *log)
		if err != nil {
			return err
		}
		return showFindings(cmd.OutOrStdout(), found.Shown(doctor.English), *asJSON)
	}
	return cmd
}

// readLog reads a file, or standard input.
func readLog(cmd *cobra.Command, name string) (*doctor.Findings, error) {
	if name == "-" {
		return doctor.ReadLog(cmd.Context(), cmd.InOrStdin())
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return doctor.ReadLog(cmd.Context(), file)
}

// showFindings writes the findings, and returns an error if one of them is wrong.
func showFindings(out io.Writer, found []doctor.Finding, asJSON bool) error {
	wrong := false
	for _, f := range found {
		wrong = wrong || f.Level == doctor.Wrong
	}
	if asJSON {
		if err := writeJSON(out, found); err != nil {
			return err
		}
	} else {
		for _, f := range found {
			writeFinding(out, f)
		}
		if !wrong {
			fmt.Fprintln(out, doctor.English(doctor.NothingFound))
		}
	}
	if wrong {
		return errWrong
	}
	return nil
}

// writeFinding writes a finding for people. The marks need no translation: ! is wrong, > was seen, and = is to be done.
func writeFinding(out io.Writer, f doctor.Finding) {
	mark := "!"
	if f.Level == doctor.Note {
		mark = "-"
	}
	who := ""
	if f.Client != "" || f.User != "" {
		who = cmp.Or(f.User, "?") + " (" + cmp.Or(f.Client, "?") + "): "
	}
	times := ""
	if f.Times > 1 {
		times = fmt.Sprintf(" (%d ×)", f.Times)
	}
	fmt.Fprintf(out, "%s %s%s%s\n", mark, visible(who), visible(f.Cause), times)
	for _, seen := range f.Evidence {
		fmt.Fprintf(out, "    > %s\n", visible(seen))
	}
	fmt.Fprintf(out, "    = %s\n\n", visible(f.Change))
}
