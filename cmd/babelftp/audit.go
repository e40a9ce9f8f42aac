package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/report/audit"
)

// auditFlags are the flags of the audit command.
type auditFlags struct {
	path, since, tenant, config string
	asJSON                      *bool
}

func newAuditCommand() *cobra.Command {
	f := &auditFlags{}
	cmd := &cobra.Command{
		Use:   "audit --path PATH [FILE...]",
		Short: "Show what happened to a file, from the audit log",
		Long: "Show what happened to a file, from the audit log. The command follows the file through renames, including\n" +
			"renames of its parent directories, copies and restores, forward and backward in time.\n\n" +
			"PATH is the pathname as a user sees it, or the URI of the object. A directory includes everything below it.\n\n" +
			"FILE is an audit log, plain or compressed (.gz), or - for standard input. Pass the logs of all replicas. Without a\n" +
			"FILE, the command reads audit.file of the configuration and its files rotated by logrotate.",
		Example: "  babelftp audit --path /in/a.csv --since 1d\n" +
			"  babelftp audit --path /in/a.csv --since 2026-11-01 --tenant acme --json\n" +
			"  babelftp audit --path s3://acme-data/inbox/in/a.csv replica-*/audit.log*\n" +
			"  kubectl logs --selector app.kubernetes.io/name=babelftp --tail=-1 --since=24h | babelftp audit --path /in/a.csv -",
		Args: func(cmd *cobra.Command, _ []string) error {
			if f.path == "" {
				return newUsageError(cmd, "missing --path, such as --path /in/a.csv")
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.path, "path", "", "the `PATH` of a file or a directory, or the URI of an object")
	flags.StringVar(&f.since, "since", "", "only read lines since this `TIME`: an age (30m, 12h, 1d, 2w), a date or a time "+
		"(2026-11-01, 2026-11-01T12:00:00Z) (default all lines)")
	flags.StringVar(&f.tenant, "tenant", "", "only read lines of this `TENANT`")
	f.asJSON = addJSONFlag(cmd)
	file := addConfigFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		f.config = *file
		return f.run(cmd, names)
	}
	return cmd
}

func (f *auditFlags) run(cmd *cobra.Command, names []string) error {
	since, err := parseSince(f.since, time.Now())
	if err != nil {
		return newUsageError(cmd, "--since %q: %w", f.since, err)
	}
	if len(names) == 0 {
		if names, err = f.configured(cmd); err != nil {
			return err
		}
	}
	var entries []audit.Entry
	skipped := 0
	for _, name := range names {
		read, notLines, err := readAudit(cmd.InOrStdin(), name, since)
		if err != nil {
			return fmt.Errorf("cannot read the audit log %s: %w", name, yamlconf.WithoutPath(err))
		}
		entries, skipped = append(entries, read...), skipped+notLines
	}
	if skipped > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "skipped %s not from an audit log\n", count(skipped, "line"))
	}
	if f.tenant != "" {
		entries = slices.DeleteFunc(entries, func(e audit.Entry) bool { return e.Tenant != f.tenant })
	}
	found := audit.Follow(entries, f.path)
	if len(found) == 0 {
		return fmt.Errorf("%s not found in the %s about files in %s: correct --path, or choose an earlier --since",
			f.path, count(len(entries), "line"), strings.Join(names, ", "))
	}
	if *f.asJSON {
		lines := make([]json.RawMessage, len(found))
		for i, e := range found {
			lines[i] = e.Line
		}
		return writeJSON(cmd.OutOrStdout(), lines)
	}
	t := newTable(cmd.OutOrStdout(), strings.Fields("TIME EVENT OUTCOME USER CLIENT PATH TO")...)
	for _, e := range found {
		t.row(e.Time.UTC().Format(time.RFC3339), e.Event, e.Outcome, e.User+"@"+e.Tenant, e.Client, e.Path, e.ToPath)
	}
	return t.flush()
}

// configured returns the audit log of the configuration and its rotated files, such as audit.log.1,
// audit.log.2.gz or audit.log-20261101.
func (f *auditFlags) configured(cmd *cobra.Command) ([]string, error) {
	cfg, err := loadConfig(cmd, f.config)
	if err != nil {
		return nil, err
	}
	switch {
	case cfg.Audit.Stdout():
		return nil, errors.New("audit.file is standard output: pipe the collected log into babelftp audit --path PATH -")
	case cfg.Audit.File == "":
		return nil, errors.New("the configuration has no audit.file: name the files of the audit log")
	}
	names, err := audit.Files(cfg.Audit.File)
	if err != nil {
		return nil, fmt.Errorf("audit.file: %w", err)
	}
	return names, nil
}

// readAudit reads a plain or compressed file, or standard input for "-".
func readAudit(stdin io.Reader, name string, since time.Time) (entries []audit.Entry, skipped int, err error) {
	in := stdin
	if name != "-" {
		file, err := audit.OpenFile(name)
		if err != nil {
			return nil, 0, err
		}
		defer file.Close()
		in = file
	}
	return audit.ReadEntries(in, since)
}

// parseSince parses a time, a date in UTC, or an age: a duration that [time.ParseDuration] accepts, or a
// number of days (d) or weeks (w). It returns the zero time for an empty text.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	ago, err := time.ParseDuration(text)
	for unit, days := range map[string]int{"d": 1, "w": 7} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			var n int
			if n, err = strconv.Atoi(number); err == nil && n < 100_000/days {
				ago = time.Duration(n*days) * 24 * time.Hour
			}
		}
	}
	if err != nil || ago <= 0 {
		return time.Time{}, errors.New("want a time such as 30m, 12h, 1d, 2w, 2026-11-01 or 2026-11-01T12:00:00Z")
	}
	return now.Add(-ago), nil
}
