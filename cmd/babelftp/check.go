package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/admin/oidc"
	"github.com/babelftp/babelftp/internal/certs"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/server"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	accounts "github.com/babelftp/babelftp/internal/users/account"
	"github.com/babelftp/babelftp/internal/users/auth"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

func newCheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [--config FILE]",
		Short: "Check a configuration and show every problem",
		Long: "Check a configuration. Every problem is shown with its file, line and column, and the exit code is 1 " +
			"if there is one.\n" +
			"Run the check as the user of the server, so that it has the same file permissions. Custom resources of Kubernetes " +
			"are not checked, because their status has the problems.\n\n" +
			"With --probe, it also lists, reads, stores, copies and deletes test objects in the bucket of each tenant and " +
			"folder, as far as users may do so,\n" +
			"and names the actions that the IAM policy lacks. It connects to the services of auth, binds to an LDAP " +
			"directory as bind_dn, reads the configuration of the OpenID Connect provider of admin.oidc,\n" +
			"sends a small file to the inspector of each tenant, and writes and deletes an item of the shared state.",
		Example: "  babelftp check --config babelftp.yaml\n" +
			"  babelftp check --config babelftp.yaml --probe",
		Args: noArguments,
	}
	file := addConfigFlag(cmd)
	probe := cmd.Flags().Bool("probe", false,
		"test the buckets, auth services and inspectors of all tenants, the shared state and admin.oidc")
	asJSON := cmd.Flags().Bool("json", false, "with --probe: print a line of JSON for each bucket")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *asJSON && !*probe {
			return newUsageError(cmd, "--json requires --probe")
		}
		cfg, err := loadConfig(cmd, *file)
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		if *asJSON {
			out = io.Discard // only the JSON lines are printed
		}
		if err := checkFiles(cmd, cfg, out); err != nil {
			return err
		}
		if *probe {
			err := errors.Join(probeBuckets(cmd, cfg, *asJSON), probeState(cmd, cfg, out),
				probeAuth(cmd.Context(), cfg, out), probeInspectors(cmd.Context(), cfg, out),
				probeOIDC(cmd.Context(), &cfg.Admin.OIDC, out))
			if err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(out, "configuration ok: %s, %s\n",
			count(len(cfg.Tenants), "tenant"), count(cfg.UsersCount(), "user"))
		return err
	}
	return cmd
}

// checkFiles checks the parts of a valid configuration that may still be wrong: its texts, its certificates
// and the files that the server writes. Notes about correct settings go to out.
func checkFiles(cmd *cobra.Command, cfg *config.Config, out io.Writer) error {
	warn := func(warnings []string) {
		for _, warning := range warnings {
			fmt.Fprintln(cmd.ErrOrStderr(), "warning:", warning)
		}
	}
	warn(cfg.Warnings())
	shown, err := certs.Open(cfg, nil, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Tenants)) {
		t := cfg.Tenants[name]
		if t.UsersStore == config.StateStore {
			fmt.Fprintf(out, "tenant %s: users in the shared state\n", name)
		} else if t.Auth.UsesFTP() {
			if err := usersfile.Writable(t.UsersFile); err != nil {
				return fmt.Errorf("tenants.%s.auth.ftp stores users in users_file: %w", name, err)
			}
		}
	}
	if namespaces := cfg.Kubernetes.Namespaces; namespaces[config.OtherNamespaces] != nil {
		fmt.Fprintln(out, "kubernetes: custom resources of all namespaces")
	} else if cfg.Kubernetes.IsSet() {
		fmt.Fprintf(out, "kubernetes: custom resources of %s\n", count(len(namespaces), "namespace"))
	}
	if err := accounts.CheckDropBoxes(cfg); err != nil {
		return err
	}
	if refused := cfg.RefusedTexts(); len(refused) > 0 {
		return refused
	}
	ended, warnings := shown.Problems(time.Now())
	warn(warnings)
	if len(ended) > 0 {
		return errors.New(strings.Join(ended, "\n"))
	}
	notes, warnings, err := server.CheckACME(cmd.Context(), cfg)
	warn(warnings)
	if err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintln(out, note)
	}
	return nil
}

// probeBuckets prints a line for each usable bucket, in order, as soon as it and its predecessors have been
// tested. The error has a line for each other bucket.
func probeBuckets(cmd *cobra.Command, cfg *config.Config, asJSON bool) error {
	// After the first signal, the probe deletes its objects. A second signal ends the process.
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // restores the default handling of signals
	srv, err := server.New(ctx, cfg, server.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	var problems []error
	srv.ProbeBuckets(ctx, func(r *s3client.Report) {
		if !r.OK() {
			problems = append(problems, errors.New(r.String()))
		}
		switch {
		case asJSON:
			err = errors.Join(err, json.NewEncoder(cmd.OutOrStdout()).Encode(r))
		case r.OK():
			_, printErr := fmt.Fprintln(cmd.OutOrStdout(), r)
			err = errors.Join(err, printErr)
		}
	})
	return errors.Join(append(problems, err)...)
}

// probeState tests the shared state, and prints a line if it works, and what it has: users and certificates.
func probeState(cmd *cobra.Command, cfg *config.Config, out io.Writer) error {
	ctx := cmd.Context()
	srv, err := server.New(ctx, cfg, server.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil // probeBuckets has returned it
	}
	place, err := srv.ProbeState(ctx)
	if place == "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("state %s: %w", place, err)
	}
	fmt.Fprintf(out, "state %s: ok\n", place)
	shared, err := server.OpenState(ctx, cfg)
	if err != nil {
		return err
	}
	if err := shared.Sync(ctx); err != nil {
		return fmt.Errorf("state %s: %w", place, err)
	}
	merged := mergeStoredUsers(cmd, cfg, shared)
	for _, name := range slices.Sorted(maps.Keys(cfg.Tenants)) {
		if cfg.Tenants[name].UsersStore == config.StateStore {
			n := len(merged.Tenants[name].Users) - len(cfg.Tenants[name].Users)
			fmt.Fprintf(out, "tenant %s: %s in the shared state\n", name, count(n, "user"))
		}
	}
	notes, warnings, err := server.CheckStateACME(ctx, cfg, shared)
	for _, warning := range warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", warning)
	}
	for _, note := range notes {
		fmt.Fprintln(out, note)
	}
	return err
}

// probeAuth tests the services of auth. It prints a line for each that works, and the error has a line for
// each other.
func probeAuth(ctx context.Context, cfg *config.Config, out io.Writer) error {
	var problems []error
	probe := func(name string, service *config.Auth) {
		if !service.IsSet() {
			return
		}
		if err := auth.Probe(ctx, service); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
			return
		}
		fmt.Fprintln(out, name+": ok")
	}
	probe("auth", &cfg.Auth)
	for _, tenant := range slices.Sorted(maps.Keys(cfg.Tenants)) {
		probe("tenant "+tenant+": auth", &cfg.Tenants[tenant].Auth)
	}
	return errors.Join(problems...)
}

// probeOIDC reads the configuration of the provider at which administrators log in, and prints what it found.
func probeOIDC(ctx context.Context, cfg *config.OIDC, out io.Writer) error {
	if !cfg.IsSet() {
		return nil
	}
	client, err := oidc.New(*cfg)
	var found string
	if err == nil {
		found, err = client.Probe(ctx)
	}
	if err != nil {
		return fmt.Errorf("admin.oidc: %w", err)
	}
	_, err = fmt.Fprintln(out, "admin.oidc: ok: "+found)
	return err
}

// probeInspectors tests the inspectors of all tenants with a small file. It prints a line for each that
// works, and the error has a line for each other.
func probeInspectors(ctx context.Context, cfg *config.Config, out io.Writer) error {
	var problems []error
	for _, tenant := range slices.Sorted(maps.Keys(cfg.Tenants)) {
		i, err := cfg.Tenants[tenant].Inspect.New()
		if i == nil && err == nil {
			continue
		}
		if err == nil {
			err = i.Probe(ctx)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("tenant %s: inspect: %w", tenant, err))
		} else {
			fmt.Fprintln(out, "tenant "+tenant+": inspect: ok")
		}
	}
	return errors.Join(problems...)
}

// count formats a number with its noun, such as "2 users".
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
