package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/alexedwards/argon2id"
	"github.com/spf13/pflag"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

const (
	// runProgram is an environment variable that turns the test binary into the program. Tests run it as a
	// process of its own, because signals, exit codes and the environment belong to a process. This way the
	// race detector covers it too.
	runProgram  = "RUN_PROGRAM_UNDER_TEST"
	testVersion = "v0.0.0-test"
)

func TestMain(m *testing.M) {
	if os.Getenv(runProgram) != "" {
		version = testVersion
		main()
	}
	s3test.Main(m)
}

// program returns a command that runs the program with these arguments.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must.OK(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), runProgram+"=1")
	return cmd
}

// output runs the program and waits for its end.
func output(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := program(t, args...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

func TestExitCodes(t *testing.T) {
	for _, tc := range []struct {
		name   string
		args   []string
		code   int
		stderr string
	}{
		{"no-command", nil, 2, "babelftp: missing command (see babelftp --help)\n"},
		{"unknown-command", []string{"peanuts"}, 2, "babelftp: unknown command \"peanuts\" (see babelftp --help)\n"},
		{"similar-command", []string{"serv"}, 2,
			"babelftp: unknown command \"serv\", did you mean serve or users? (see babelftp --help)\n"},
		{"unknown-flag", []string{"serve", "--port", "21"}, 2,
			"babelftp: unknown flag: --port (see babelftp serve --help)\n"},
		{"flag-without-value", []string{"check", "--config"}, 2,
			"babelftp: flag needs an argument: --config (see babelftp check --help)\n"},
		{"no-file", []string{"serve", "--config", ""}, 2, "babelftp: --config must not be empty (see babelftp serve --help)\n"},
		{"argument", []string{"languages", "fr"}, 2,
			"babelftp: unexpected argument \"fr\" (see babelftp languages --help)\n"},
		{"lint-no-folder", []string{"languages", "--lint", "nowhere"}, 2,
			"babelftp: invalid --lint \"nowhere\": want a directory with a subdirectory for each language (see " +
				"babelftp languages --help)\n"},
		{"format-no-folder", []string{"languages", "--format", "nowhere"}, 2,
			"babelftp: invalid --format \"nowhere\": want a directory with a subdirectory for each language (see " +
				"babelftp languages --help)\n"},
		{"lint-and-format", []string{"languages", "--lint", ".", "--format", "."}, 2,
			"babelftp: --lint and --format cannot be combined (see babelftp languages --help)\n"},
		{"lint-and-locales", []string{"languages", "--lint", ".", "--locales", "."}, 2,
			"babelftp: --lint and --locales cannot be combined (see babelftp languages --help)\n"},
		{"users-no-command", []string{"users"}, 2, "babelftp: missing command (see babelftp users --help)\n"},
		{"users-import-no-file", []string{"users", "import", "sftpgo"}, 2,
			"babelftp: expected the kind of server and one FILE (see babelftp users import --help)\n"},
		{"users-import-unknown", []string{"users", "import", "vms", "x"}, 2,
			"babelftp: unknown kind of server \"vms\": want sftpgo, proftpd, pureftpd or vsftpd (see babelftp users import --help)\n"},
		{"users-import-missing-file", []string{"users", "import", "sftpgo", "nowhere.json"}, 1,
			"babelftp: cannot read nowhere.json: no such file or directory\n"},
		{"users-import-nobody", []string{"users", "import", "proftpd", "/dev/null"}, 1,
			"babelftp: no users to import in /dev/null\n"},
		{"users-import-standard-input", []string{"users", "import", "sftpgo", "-"}, 1,
			"babelftp: standard input: this is not a dump of SFTPGo in JSON: unexpected end of JSON input\n"},
		{"users-import-other-kind", []string{"users", "import", "pureftpd", "../../internal/users/usersfile/testdata/sftpgo.json"}, 1,
			"babelftp: ../../internal/users/usersfile/testdata/sftpgo.json: this is a dump of SFTPGo: import it with `babelftp users " +
				"import sftpgo`\n"},
		{"users-typo", []string{"users", "addd"}, 2,
			"babelftp: unknown command \"addd\", did you mean add? (see babelftp users --help)\n"},
		{"bans-typo", []string{"bans", "lst"}, 2,
			"babelftp: unknown command \"lst\", did you mean list? (see babelftp bans --help)\n"},
		{"locales-no-folder", []string{"languages", "--locales", "nowhere"}, 2,
			"babelftp: invalid --locales \"nowhere\": want a directory with a subdirectory for each language (see " +
				"babelftp languages --help)\n"},
		{"doctor-no-log", []string{"doctor", "--log", "nowhere"}, 1,
			"babelftp: cannot read --log nowhere: no such file or directory\n"},
		{"doctor-samples", []string{"doctor", "ftp://127.0.0.1", "--samples", "-1"}, 2,
			"babelftp: --idle and --samples must be at least 0 (see babelftp doctor --help)\n"},
		{"doctor-logins", []string{"doctor", "ftp://127.0.0.1", "--logins", "0"}, 2,
			"babelftp: --logins must be at least 1 (see babelftp doctor --help)\n"},
		{"unknown-help-of-a-command", []string{"help", "users", "peanuts"}, 2,
			"babelftp: unknown command \"peanuts\" (see babelftp users --help)\n"},
		{"unknown-help", []string{"help", "peanuts"}, 2,
			"babelftp: unknown command \"peanuts\" (see babelftp --help)\n"},
		{"missing-file", []string{"serve", "--config", "nowhere.yaml"}, 1,
			"babelftp: cannot read the configuration nowhere.yaml: no such file or directory\n"},
		{"completion-no-shell", []string{"completion"}, 2,
			"babelftp: missing command (see babelftp completion --help)\n"},
		{"completion-unknown-shell", []string{"completion", "zhs"}, 2,
			"babelftp: unknown command \"zhs\", did you mean zsh? (see babelftp completion --help)\n"},
		{"completion-argument", []string{"completion", "bash", "extra"}, 2,
			"babelftp: unexpected argument \"extra\" (see babelftp completion bash --help)\n"},
		{"completion-bash", []string{"completion", "bash"}, 0, ""},
		{"completion-fish", []string{"completion", "fish"}, 0, ""},
		{"completion-powershell", []string{"completion", "powershell"}, 0, ""},
		{"completion-zsh", []string{"completion", "zsh"}, 0, ""},
		{"help", []string{"--help"}, 0, ""},
		{"help-of-a-command", []string{"help", "serve"}, 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, stdout, stderr := output(t, "", tc.args...)
			if code != tc.code || stderr != tc.stderr {
				t.Errorf("exit code %d, want %d; standard error:\n%s\nwant:\n%s", code, tc.code, stderr, tc.stderr)
			}
			if (stdout != "") != (tc.code == 0) {
				t.Errorf("standard output: %s", stdout)
			}
		})
	}
}

// Every command has a description, an example, and a usage text for each flag.
func TestHelp(t *testing.T) {
	for _, cmd := range newRootCommand().Commands() {
		t.Run(cmd.Name(), func(t *testing.T) {
			if cmd.Short == "" || cmd.Long == "" || !strings.Contains(cmd.Example, "babelftp "+cmd.Name()) {
				t.Error("help lacks a description or an example")
			}
			cmd.Flags().VisitAll(func(f *pflag.Flag) {
				if f.Usage == "" {
					t.Errorf("--%s lacks a description", f.Name)
				}
			})
		})
	}
}

func TestVersion(t *testing.T) {
	for _, argument := range []string{"version", "--version"} {
		code, stdout, _ := output(t, "", argument)
		if code != 0 || !strings.HasPrefix(stdout, "babelftp "+testVersion+"\ncommit ") ||
			!strings.Contains(stdout, "\ngo1.") {
			t.Errorf("%s: exit code %d: %s", argument, code, stdout)
		}
	}
}

func TestSchema(t *testing.T) {
	code, stdout, stderr := output(t, "", "schema")
	var schema struct {
		Properties map[string]any
	}
	if err := json.Unmarshal([]byte(stdout), &schema); err != nil || code != 0 || stderr != "" ||
		schema.Properties["listen"] == nil {
		t.Errorf("exit code %d, %v: %s", code, err, stderr)
	}
}

func TestHelpCommand(t *testing.T) {
	for _, command := range []string{"", "serve"} {
		arguments := strings.Fields(command)
		_, byFlag, _ := output(t, "", append(arguments, "--help")...)
		if _, byCommand, _ := output(t, "", append([]string{"help"}, arguments...)...); byCommand != byFlag {
			t.Errorf("help %s shows %s, and --help %s", command, byCommand, byFlag)
		}
	}
}

func TestLanguages(t *testing.T) {
	code, stdout, _ := output(t, "", "languages")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if code != 0 || len(lines) < 9 {
		t.Fatalf("exit code %d: %s", code, stdout)
	}
	for _, line := range lines {
		if fields := strings.Fields(line); len(fields) < 5 || fields[2] != "100" || fields[3] != "%" {
			t.Errorf("a built-in language is not complete: %s", line)
		}
	}
	code, _, stderr := output(t, "", "languages", "--locales", t.TempDir())
	if code != 1 || strings.Count(stderr, "\n") != 1 {
		t.Errorf("empty folder: exit code %d: %s", code, stderr)
	}
}

func TestHashPassword(t *testing.T) {
	for _, tc := range []struct{ name, stdin, password string }{
		{"line", "correct horse\n", "correct horse"},
		{"no-line-break", "correct horse", "correct horse"},
		{"crlf", "correct horse\r\n", "correct horse"},
		{"spaces-count", " correct horse \n", " correct horse "},
		{"unicode", "motdepassé\n", "motdepassé"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, stdout, stderr := output(t, tc.stdin, "hash-password")
			if code != 0 || stderr != "" {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			match, err := argon2id.ComparePasswordAndHash(tc.password, strings.TrimSuffix(stdout, "\n"))
			if err != nil || !match {
				t.Errorf("the hash %s does not match the password: %v", stdout, err)
			}
		})
	}
	for _, tc := range []struct{ name, stdin, stderr string }{
		{"nothing", "", errPasswordEmpty.Error()},
		{"empty-line", "\n", errPasswordEmpty.Error()},
		{"two-lines", "correct\nhorse\n", errPasswordLines.Error()},
		{"too-long", strings.Repeat("x", maxPassword+1), errPasswordLong.Error()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, stdout, stderr := output(t, tc.stdin, "hash-password")
			if code != 1 || stdout != "" || stderr != "babelftp: "+tc.stderr+"\n" {
				t.Errorf("exit code %d: %s%s", code, stdout, stderr)
			}
		})
	}
}
