package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/server"
	"github.com/babelftp/babelftp/internal/server/serve"
	"github.com/babelftp/babelftp/internal/storage/mojibake"
	"github.com/babelftp/babelftp/internal/storage/s3client"
)

// A namesRun is one run of the names command.
type namesRun struct {
	cmd           *cobra.Command
	config, apply string
	charset       string
	dryRun, yes   bool
	trust         bool
}

func newNamesCommand() *cobra.Command {
	var r namesRun
	cmd := &cobra.Command{
		Use:   "names TENANT [--dry-run]",
		Short: "Rename files whose names were read in the wrong charset",
		Long: "Find files and directories of a tenant whose names a device sent in a configured charset, but which were " +
			"read as UTF-8,\nsuch as Ŀ¼ for 目录 in GBK. The command shows the list, asks for confirmation, and renames them.\n\n" +
			"Names that may be correct as they are have the state unsure and are not renamed. Nothing is overwritten: a file whose new " +
			"name exists\nkeeps its name and is reported, and the exit code is 1. Ctrl-C stops the command between two objects, and the next " +
			"run continues.\n\n" +
			"To review the list, write it to a file with --dry-run, edit the states, and pass it to --apply.",
		Example: "  babelftp names acme --dry-run\n" +
			"  babelftp names acme\n" +
			"  babelftp names acme --dry-run > names.tsv && editor names.tsv && babelftp names acme --apply names.tsv\n" +
			"  babelftp names acme --yes        # in a script",
		Args: exactly(1, "one TENANT"),
	}
	file := addConfigFlag(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&r.dryRun, "dry-run", false, "show the list without renaming anything")
	flags.BoolVar(&r.yes, "yes", false, "do not ask for confirmation")
	flags.StringVar(&r.apply, "apply", "", "apply the list in this `FILE` instead of searching for names")
	flags.BoolVar(&r.trust, "unsure", false, "also rename unsure names with a single reading; only if no client uses UTF-8")
	flags.StringVar(&r.charset, "charset", "", "the `CHARSET` of the devices, instead of the configured charsets")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r.cmd, r.config = cmd, *file
		return r.run(args[0])
	}
	return cmd
}

// check rejects conflicting flags, and a run that has to ask without a terminal.
func (r *namesRun) check() error {
	_, isTerminal := terminal(r.cmd.InOrStdin())
	switch {
	case r.dryRun && r.yes:
		return newUsageError(r.cmd, "--dry-run and --yes cannot be combined")
	case r.apply != "" && (r.trust || r.charset != ""):
		return newUsageError(r.cmd, "--apply cannot be combined with --unsure or --charset")
	case !r.dryRun && !r.yes && (!isTerminal || r.apply == "-"):
		return newUsageError(r.cmd, "cannot ask for confirmation because standard input is not a terminal: use --dry-run or --yes")
	}
	return nil
}

func (r *namesRun) run(tenant string) error {
	if err := r.check(); err != nil {
		return err
	}
	// The first signal lets the moves in flight finish. The second one cancels them.
	ctx, now, stop := serve.Signals(r.cmd.Context())
	defer stop()
	lines, t, err := r.list(ctx, now, tenant)
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted: nothing was renamed")
		}
		return err
	}
	if err := mojibake.Write(r.cmd.OutOrStdout(), lines); err != nil {
		return err
	}
	wanted, refused := countLines(lines)
	fmt.Fprintf(r.cmd.ErrOrStderr(), "%s to rename, with %s; %s\n", count(len(wanted), "name"),
		count(int(mojibake.Objects(lines)), "object"), otherStates(lines))
	if r.dryRun || len(wanted) == 0 {
		return nil
	}
	if !r.yes {
		answer, err := r.ask(ctx, fmt.Sprintf("Rename %s? [y/N] ", count(len(wanted), "name")))
		if err != nil || !answer {
			return errors.Join(err, errors.New("nothing was renamed"))
		}
	}
	return r.rename(ctx, now, t, lines, refused)
}

// list returns the misread names of the tenant, or the names in the file of --apply, checked against the buckets.
func (r *namesRun) list(ctx, now context.Context, name string) ([]mojibake.Line, *mojibake.Tenant, error) {
	var charset *pathname.Encoding
	if r.charset != "" {
		var err error
		if charset, err = pathname.ParseEncoding(r.charset); err != nil {
			return nil, nil, newUsageError(r.cmd, "--charset: %w", err)
		}
		if charset.UTF8() || charset.Raw() {
			return nil, nil, newUsageError(r.cmd, "invalid --charset %s: want a legacy charset such as gbk", charset)
		}
	}
	var lines []mojibake.Line
	if r.apply != "" {
		text, err := readInput(r.cmd.InOrStdin(), r.apply)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot read --apply %s: %w", r.apply, yamlconf.WithoutPath(err))
		}
		if lines, err = mojibake.Read(text); err != nil {
			return nil, nil, fmt.Errorf("--apply %s: %w", r.apply, err)
		}
	}
	cfg, err := loadConfig(r.cmd, r.config)
	if err != nil {
		return nil, nil, err
	}
	t, err := r.open(ctx, now, cfg, name, charset)
	if err != nil {
		return nil, nil, err
	}
	if r.apply == "" {
		var seen atomic.Int64
		done := r.progress(func() string { return count(int(seen.Load()), "name") + " read" })
		lines, err = mojibake.Scan(ctx, t, &seen)
		done()
		if err != nil {
			return nil, nil, fmt.Errorf("tenant %s: %w", name, err)
		}
	}
	if r.trust {
		mojibake.Trust(lines)
	}
	return lines, t, mojibake.Check(ctx, t, lines)
}

// open opens the buckets of a tenant. now cancels all requests, while ctx only cancels the verification of
// the buckets.
func (r *namesRun) open(
	ctx, now context.Context, cfg *config.Config, name string, charset *pathname.Encoding,
) (*mojibake.Tenant, error) {
	srv, err := server.New(now, cfg, server.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	var all []*s3client.Bucket
	for _, tenant := range slices.Sorted(maps.Keys(cfg.Tenants)) {
		if b, ok := srv.Bucket(tenant); ok {
			all = append(append(all, b), b.Folders...)
		}
	}
	bucket, ok := srv.Bucket(name)
	if !ok {
		return nil, errNoTenant(cfg, name)
	}
	t, err := mojibake.Open(ctx, cfg.Tenants[name], bucket, all, charset)
	if errors.Is(err, mojibake.ErrNoCharset) && r.apply != "" {
		t, err = mojibake.Open(ctx, cfg.Tenants[name], bucket, all, &pathname.Encoding{})
	}
	if errors.Is(err, mojibake.ErrNoCharset) {
		return nil, fmt.Errorf("tenants.%s: %w: set compatibility.charset, or use --charset, for example --charset gbk", name, err)
	}
	return t, err
}

// rename applies lines and prints each name that could not be changed.
func (r *namesRun) rename(ctx, now context.Context, t *mojibake.Tenant, lines []mojibake.Line, refused int) error {
	var moved atomic.Int64
	total := mojibake.Objects(lines)
	done := r.progress(func() string { return fmt.Sprintf("%d of %s renamed", moved.Load(), count(int(total), "object")) })
	problems, err := mojibake.Apply(ctx, now, t, lines, &moved)
	done()
	errOut := r.cmd.ErrOrStderr()
	for _, p := range problems {
		fmt.Fprintf(errOut, "%s not renamed because %s: %s\n", visible(p.Path), p.Reason, visible(p.Target))
	}
	fmt.Fprintf(errOut, "%s renamed\n", count(int(moved.Load()), "object"))
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted: run the command again to rename the rest")
	case err != nil:
		return fmt.Errorf("%w: fix it, and run the command again to rename the rest", err)
	case len(problems)+refused > 0:
		return fmt.Errorf("%s not renamed", count(len(problems)+refused, "name"))
	}
	return nil
}

// ask asks a question on the terminal, and reports whether the answer is yes.
func (r *namesRun) ask(ctx context.Context, question string) (bool, error) {
	fmt.Fprint(r.cmd.ErrOrStderr(), question)
	answer := make(chan string, 1)
	panics.Go(func() {
		line, _ := bufio.NewReader(r.cmd.InOrStdin()).ReadString('\n') // no input means no
		answer <- strings.ToLower(strings.TrimSpace(line))
	})
	select {
	case text := <-answer:
		return text == "y" || text == "yes", nil
	case <-ctx.Done():
		fmt.Fprintln(r.cmd.ErrOrStderr())
		return false, errors.New("interrupted")
	}
}

// progress shows the progress of a long task until the returned function is called: every second on a
// terminal, and every 30 seconds in a log.
func (r *namesRun) progress(text func() string) (done func()) {
	out, interval := r.cmd.ErrOrStderr(), 30*time.Second
	before, after, end := "", "\n", ""
	if in, ok := out.(io.Reader); ok {
		if _, isTerminal := terminal(in); isTerminal {
			interval, before, after, end = time.Second, "\r\x1b[K", "", "\r\x1b[K"
		}
	}
	ticker, stop, stopped := time.NewTicker(interval), make(chan struct{}), make(chan struct{})
	panics.Go(func() {
		defer close(stopped)
		for {
			select {
			case <-ticker.C:
				fmt.Fprint(out, before+text()+after)
			case <-stop:
				fmt.Fprint(out, end)
				return
			}
		}
	})
	return func() {
		ticker.Stop()
		close(stop)
		<-stopped
	}
}

// countLines returns the lines that rename something, and the number of lines whose rename is impossible.
func countLines(lines []mojibake.Line) (wanted []mojibake.Line, refused int) {
	for _, l := range lines {
		switch l.State {
		case mojibake.Rename:
			wanted = append(wanted, l)
		case mojibake.Exists, mojibake.Long:
			refused++
		case mojibake.Unsure, mojibake.Gone:
		}
	}
	return wanted, refused
}

// otherStates summarizes the lines that are not renamed.
func otherStates(lines []mojibake.Line) string {
	var parts []string
	for _, s := range []struct {
		state mojibake.State
		text  string
	}{
		{mojibake.Unsure, "unsure"}, {mojibake.Exists, "whose new name exists"}, {mojibake.Long, "too long"},
		{mojibake.Gone, "gone"},
	} {
		n := 0
		for _, l := range lines {
			if l.State == s.state {
				n++
			}
		}
		if n > 0 || s.state == mojibake.Unsure {
			parts = append(parts, fmt.Sprintf("%d %s", n, s.text))
		}
	}
	return strings.Join(parts, ", ")
}
