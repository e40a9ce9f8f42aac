package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

var update = flag.Bool("update", false, "write docs/command-line.md")

// TestCommandLine compares docs/command-line.md with the help of each command. With -update, it writes the
// page.
func TestCommandLine(t *testing.T) {
	const page = "../../docs/command-line.md"
	want := commandLinePage(newRootCommand())
	if *update {
		must.OK(t, os.WriteFile(page, []byte(want), 0o644))
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != want {
		t.Errorf("docs/command-line.md is not up to date (%v): run go test ./cmd/babelftp -run TestCommandLine -update", err)
	}
}

// commandLinePage renders the page: exit codes, the flags that many commands share, and each command by name.
func commandLinePage(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("<!-- Written by go test ./cmd/babelftp -run TestCommandLine -update. -->\n\n# Command line\n\n[Documentation](README.md)\n\n" +
		"`babelftp COMMAND --help` shows the same. Commands that read the configuration have `-c, --config FILE` " +
		"(default `/etc/babelftp/babelftp.yaml`), and those that show a list have `--json` for scripts.\n\n" +
		"| exit code | meaning |\n| --- | --- |\n")
	fmt.Fprintf(&b, "| %d | success |\n", exitOK)
	fmt.Fprintf(&b, "| %d | an invalid configuration, or a failure |\n", exitFailure)
	fmt.Fprintf(&b, "| %d | an invalid command line |\n\n", exitUsage)
	var all []*cobra.Command
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			continue
		}
		if len(all) > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, "[`%s`](#babelftp-%[1]s)", cmd.Name())
		all = append(all, cmd)
		if cmd.Name() != "completion" { // cobra's completion commands have long help texts
			all = append(all, cmd.Commands()...)
		}
	}
	b.WriteString("\n\n## Connect to a server\n\n" + strings.ReplaceAll(howToConnect, "\n", " ") +
		" On Kubernetes: `kubectl exec babelftp-0 -- babelftp sessions`.\n\n")
	connecting := &cobra.Command{}
	addAdminFlags(connecting)
	writeFlags(&b, connecting.PersistentFlags(), &pflag.FlagSet{})
	for _, cmd := range all {
		level, text := "##", cmp.Or(cmd.Long, cmd.Short)
		if cmd.Parent() != root {
			level = "###"
		}
		text, connects := strings.CutSuffix(text, howToConnect)
		text = strings.TrimSuffix(text, howToEdit)
		fmt.Fprintf(&b, "\n%s %s\n\n%s\n\n", level, cmd.CommandPath(), strings.TrimSpace(unwrapped(text)))
		if connects {
			b.WriteString("It connects to [a running server](#connect-to-a-server).\n\n")
		}
		edits := func(c *cobra.Command) bool { return strings.HasSuffix(c.Long, howToEdit) }
		if slices.ContainsFunc(cmd.Commands(), edits) {
			b.WriteString(unwrapped(howToEdit) + "\n\n")
		}
		example := exampleOf(cmd)
		usage := strings.ReplaceAll(strings.TrimSuffix(cmd.UseLine(), " [flags]"), " [--config FILE]", "")
		if usage != example && usage != cmd.CommandPath() && (example == "" || strings.ContainsAny(usage, "|[{")) {
			fmt.Fprintf(&b, "```text\n%s\n```\n\n", usage)
		}
		writeFlags(&b, cmd.NonInheritedFlags(), connecting.PersistentFlags())
		if example != "" {
			fmt.Fprintf(&b, "```sh\n%s\n```\n", example)
		}
	}
	return strings.TrimRight(strings.ReplaceAll(b.String(), "\n\n\n", "\n\n"), "\n") + "\n"
}

// exampleOf returns the example of a command. It leaves out the parts that its subcommands show, the lines with kubectl
// exec, and the use of --json, which the top of the page explains.
func exampleOf(cmd *cobra.Command) string {
	var kept []string
	for line := range strings.SplitSeq(cmd.Example, "\n") {
		shown := func(c *cobra.Command) bool { return strings.Contains(c.Example+"\n", line+"\n") }
		line = strings.TrimPrefix(line, "  ")
		if !strings.Contains(line, "kubectl exec") && line != cmd.CommandPath()+" --json" &&
			!slices.ContainsFunc(cmd.Commands(), shown) {
			kept = append(kept, line)
		}
	}
	if len(kept) == 1 && kept[0] == cmd.CommandPath() {
		return ""
	}
	return strings.Join(kept, "\n")
}

// unwrapped joins the lines of each paragraph.
func unwrapped(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.ReplaceAll(p, "\n", " ")
	}
	return strings.Join(paragraphs, "\n\n")
}

// shared returns the usage texts of flags that the top of the page explains.
var shared = []string{"the configuration `FILE`", "write JSON, for scripts"}

// writeFlags writes a table of the flags that are not shared, if there are any.
func writeFlags(b *strings.Builder, flags, others *pflag.FlagSet) {
	rows := 0
	flags.VisitAll(func(f *pflag.Flag) {
		other := others.Lookup(f.Name)
		if f.Hidden || f.Name == "help" || other != nil && other.Usage == f.Usage || slices.Contains(shared, f.Usage) {
			return
		}
		if rows++; rows == 1 {
			b.WriteString("| flag | description |\n| --- | --- |\n")
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if shown := f.DefValue; !slices.Contains([]string{"", "false", "0s", "[]"}, shown) && !strings.Contains(usage, "(default") {
			usage += " (default `" + shown + "`)"
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", strings.TrimSpace(name+" "+value), strings.ReplaceAll(usage, "|", `\|`))
	})
	if rows > 0 {
		b.WriteString("\n")
	}
}
