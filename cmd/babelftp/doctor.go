package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/doctor"
)

// errWrong makes the command exit with 1 if doctor found a problem. It is not printed, because the findings
// are.
var errWrong = errors.New("doctor found a problem")

// doctorPassword is the environment variable with the password.
const doctorPassword = "BABELFTP_DOCTOR_PASSWORD"

// doctorFlags are the flags of the doctor command.
type doctorFlags struct {
	log, address, passwordFile, caFile string
	since                              time.Duration
	admin                              adminFlags
	asJSON                             *bool
	verbose                            bool
	options                            doctor.Options
}

func newDoctorCommand() *cobra.Command {
	f := &doctorFlags{}
	cmd := &cobra.Command{
		Use:   "doctor URL | doctor --log FILE | doctor --address ADDRESS",
		Short: "Find out why FTP does not work, and what to change",
		Long: "Find out why FTP does not work, and what to change. The output is in the language of LC_ALL, LC_MESSAGES or LANG.\nThe exit code is 1 if " +
			"there is a problem.\n\n" +
			"With a URL, the command tests any FTP server like a client. It creates a directory with a few files and " +
			"removes them at the end, even after Ctrl-C.\n" +
			"The password comes from --password-file, from " + doctorPassword + " or from the terminal. Without a user in the " +
			"URL, the login\nis anonymous. ftp uses TLS if the server offers it, ftps starts with TLS.\n\n" +
			"With --log or --address, it reads the log of a server. A running server keeps the last 4 MiB. For more details, turn\n" +
			"on debug logging: see babelftp debug.",
		Example: "  babelftp doctor ftp://alice@ftp.example.com\n" +
			"  babelftp doctor ftps://alice@ftp.example.com --password-file password --json\n" +
			"  babelftp doctor ftp://alice@192.0.2.1:2121 --insecure --idle 10m --samples 100\n" +
			"  babelftp doctor --address 192.0.2.7 --since 30m\n" +
			"  journalctl --unit babelftp --since -2h | babelftp doctor --log -\n" +
			"  kubectl logs babelftp-0 --since=2h | babelftp doctor --log - --json",
		Args: func(cmd *cobra.Command, args []string) error {
			given := len(args)
			for _, text := range []string{f.log, f.address} {
				if text != "" {
					given++
				}
			}
			if given != 1 {
				return newUsageError(cmd, "expected one URL such as ftp://alice@ftp.example.com, --log FILE, or --address ADDRESS")
			}
			return nil
		},
	}
	const idle, samples, logins, since = time.Minute, 12, 4, 2 * time.Hour
	flags := cmd.Flags()
	flags.StringVar(&f.log, "log", "", "read the log of a server from `FILE`, or from standard input for -")
	flags.StringVar(&f.address, "address", "", "read the log of a running server about clients at this `ADDRESS` or network")
	flags.DurationVar(&f.since, "since", since, "with --address: the `TIME` to look back")
	f.admin.add(flags)
	flags.StringVar(&f.passwordFile, "password-file", "", "the `FILE` with the password")
	flags.StringVar(&f.caFile, "ca-file", "", "a PEM `FILE` with the CAs to trust (default system CAs)")
	flags.BoolVar(&f.options.Insecure, "insecure", false, "send the password even without TLS or with an invalid certificate")
	flags.DurationVar(&f.options.Idle, "idle", idle, "leave a connection idle for this `TIME`; 0 skips the test")
	flags.IntVar(&f.options.Samples, "samples", samples, "test this `NUMBER` of passive ports")
	flags.IntVar(&f.options.Logins, "logins", logins, "log in this `NUMBER` of times, to compare the servers behind an address")
	flags.BoolVar(&f.verbose, "verbose", false, "write a line for each step to standard error")
	f.asJSON = addJSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		texts, err := localizer()
		if err != nil {
			return err
		}
		if f.address != "" {
			shown, err := f.ask(cmd)
			if err != nil {
				return err
			}
			for i := range shown { // a newer server may have texts that this program lacks
				shown[i].Cause, shown[i].Change = visible(shown[i].Cause), visible(shown[i].Change)
			}
			doctor.Render(shown, f.render(texts))
			return showFindings(cmd.OutOrStdout(), shown, *f.asJSON, texts)
		}
		var found *doctor.Findings
		if f.log != "" {
			found, err = readLog(cmd, f.log)
		} else {
			found, err = f.examine(cmd, args[0], texts)
		}
		if found == nil {
			return err
		}
		if found.Skipped > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "%d lines longer than 1 MiB were skipped\n", found.Skipped)
		}
		return cmp.Or(err, showFindings(cmd.OutOrStdout(), found.Shown(f.render(texts)), *f.asJSON, texts))
	}
	return cmd
}

// ask fetches the findings about a client from a running server.
func (f *doctorFlags) ask(cmd *cobra.Command) ([]doctor.Finding, error) {
	f.admin.passwordFile, f.admin.caFile = f.passwordFile, f.caFile
	client, err := f.admin.client(cmd)
	if err != nil {
		return nil, err
	}
	return client.Findings(cmd.Context(), f.address, f.since)
}

// render returns a function that renders the texts of findings. Arguments may come from a client or a server. For a
// terminal they are escaped, and isolated in right-to-left text. JSON gets them unchanged.
func (f *doctorFlags) render(texts *i18n.Localizer) func(i18n.ID, ...string) string {
	if *f.asJSON {
		return texts.Text
	}
	return func(id i18n.ID, args ...string) string {
		shown := make([]string, len(args))
		for i, arg := range args {
			shown[i] = texts.Isolate(visible(arg))
		}
		return texts.Text(id, shown...)
	}
}

// examine tests the server at a URL. A signal ends the test.
func (f *doctorFlags) examine(cmd *cobra.Command, address string, texts *i18n.Localizer) (*doctor.Findings, error) {
	target, err := doctor.ParseTarget(address)
	switch {
	case err != nil:
		return nil, newUsageError(cmd, "%w", err)
	case f.options.Idle < 0 || f.options.Samples < 0:
		return nil, newUsageError(cmd, "--idle and --samples must be at least 0")
	case f.options.Logins < 1:
		return nil, newUsageError(cmd, "--logins must be at least 1")
	}
	if f.options.Authorities, err = config.Authorities(f.caFile); err != nil {
		return nil, fmt.Errorf("--ca-file: %w", err)
	}
	if target.Password == "" {
		target.Password, err = f.password(cmd, target.User, texts)
		if errors.Is(err, errPasswordEmpty) {
			return nil, fmt.Errorf("%s (--password-file, %s)",
				texts.Text(i18n.PasswordRequired, texts.Isolate(visible(target.User))), doctorPassword)
		}
		if err != nil {
			return nil, err
		}
	}
	var done func()
	f.options.Progress, done = progress(cmd.ErrOrStderr(), f.verbose)
	defer done()
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return doctor.Examine(ctx, target, f.options)
}

// progress returns a function that shows the current step of an examination, and another one that removes it
// at the end. On a terminal, the progress is a single line that is rewritten. Elsewhere nothing is shown,
// unless verbose asks for a line for each step.
func progress(out io.Writer, verbose bool) (show func(step string), done func()) {
	if verbose {
		return func(step string) { fmt.Fprintln(out, visible(step)) }, func() {}
	}
	fd, ok := terminal(out)
	if !ok {
		return func(string) {}, func() {}
	}
	const clearLine = "\r\x1b[K"
	return func(step string) {
			text := []rune("… " + visible(step))
			if width, _, err := term.GetSize(fd); err == nil && width > 1 && len(text) >= width {
				text = text[:width-1] // a wrapped line could not be cleared
			}
			fmt.Fprint(out, clearLine+string(text))
		}, func() {
			fmt.Fprint(out, clearLine)
		}
}

// password returns the password of the user from the first available source.
func (f *doctorFlags) password(cmd *cobra.Command, user string, texts *i18n.Localizer) (string, error) {
	if f.passwordFile != "" {
		return passwordInFile(f.passwordFile)
	}
	if text := os.Getenv(doctorPassword); text != "" {
		return checkPassword([]byte(text))
	}
	if fd, ok := terminal(cmd.InOrStdin()); ok {
		return askPassword(fd, cmd.ErrOrStderr(), texts.Prompt(i18n.PasswordRequired, texts.Isolate(visible(user))))
	}
	return passwordIn(cmd.InOrStdin())
}

// readLog reads the log in a file, or from standard input for "-".
func readLog(cmd *cobra.Command, name string) (*doctor.Findings, error) {
	if name == "-" {
		return doctor.ReadLog(cmd.Context(), cmd.InOrStdin(), doctor.Filter{})
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read --log %s: %w", name, yamlconf.WithoutPath(err))
	}
	defer file.Close()
	return doctor.ReadLog(cmd.Context(), file, doctor.Filter{})
}

// showFindings prints the findings, and returns an error if one of them is a problem.
func showFindings(out io.Writer, found []doctor.Finding, asJSON bool, texts *i18n.Localizer) error {
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
			writeFinding(out, f, texts)
		}
		if !wrong {
			fmt.Fprintln(out, texts.Text(doctor.NothingFound))
		}
	}
	if wrong {
		return errWrong
	}
	return nil
}

// localizer returns the texts in the language of the environment, or in English.
func localizer() (*i18n.Localizer, error) {
	bundle, err := i18n.Load()
	if err != nil {
		return nil, err
	}
	locale, _, _ := strings.Cut(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG")), ".")
	want, err := language.Parse(locale) // fails for C and POSIX
	if tag, ok := bundle.Match(want); err == nil && ok {
		return bundle.Localizer(tag), nil
	}
	return bundle.Localizer(language.English), nil
}

// writeFinding prints a finding with marks that need no translation: ! for a problem, > for evidence, = for
// what to change, and @ for the configuration keys to check. The cause and the change come from the catalogs or
// from a newer server, and their arguments are safe to show.
func writeFinding(out io.Writer, f doctor.Finding, texts *i18n.Localizer) {
	mark := "!"
	if f.Level == doctor.Note {
		mark = "-"
	}
	cause := f.Cause
	if f.Client != "" || f.User != "" {
		who := visible(cmp.Or(f.User, "?") + " (" + cmp.Or(f.Client, "?") + ")")
		cause = texts.Isolate(who) + texts.Colon() + cause
	}
	if f.Times > 1 {
		cause += fmt.Sprintf(" (%d ×)", f.Times)
	}
	fmt.Fprintf(out, "%s %s\n", mark, texts.IsolateLine(cause))
	for _, seen := range f.Evidence {
		fmt.Fprintf(out, "    > %s\n", visible(seen))
	}
	fmt.Fprintf(out, "    = %s\n", texts.IsolateLine(f.Change))
	if len(f.Keys) > 0 {
		fmt.Fprintf(out, "    @ babelftp.yaml: %s\n", strings.Join(f.Keys, ", "))
	}
	fmt.Fprintln(out)
}
