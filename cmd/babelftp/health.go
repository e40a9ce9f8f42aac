package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/config"
)

const (
	// healthAddress is where a server answers whose configuration names no other address.
	healthAddress = config.DefaultMetricsListen
	// healthTimeout is how long the server may take to answer.
	healthTimeout = 5 * time.Second
	// maxHealthText is how many bytes of an answer are shown.
	maxHealthText = 1 << 10
)

var errNoMetricsListen = errors.New(
	"metrics_listen is empty, so the server answers no probes: remove the key, or set it, like " + healthAddress)

func newHealthCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health [--address HOST:PORT | --config FILE]",
		Short: "Ask a running server whether it is healthy",
		Long: "Ask a running server for /healthz at its metrics_listen, and exit with 0 if it answers 200, else with 1: for " +
			"Docker's HEALTHCHECK.",
		Example: "  babelftp health --config /etc/babelftp/babelftp.yaml\n" +
			"  babelftp health --address 127.0.0.1:9121",
		Args: noArguments,
	}
	address := cmd.Flags().String("address", "", "the `HOST:PORT` of metrics_listen (default "+healthAddress+")")
	file := cmd.Flags().StringP("config", "c", "", "the configuration `FILE` to read metrics_listen from")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asked := cmp.Or(*address, healthAddress)
		if *file != "" {
			if *address != "" {
				return newUsageError(cmd, "--address and --config do not go together")
			}
			cfg, err := loadConfig(cmd, *file)
			if err != nil {
				return err
			}
			if asked = cfg.MetricsListen; asked == "" {
				return errNoMetricsListen
			}
		}
		text, err := askHealth(cmd.Context(), asked)
		if err == nil {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
		}
		return err
	}
	return cmd
}

// askHealth asks the server whose metrics_listen is address, and returns what it says when it is healthy.
func askHealth(ctx context.Context, address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("%q is not an address: write it like %s", address, healthAddress)
	}
	if host == "" || net.ParseIP(host).IsUnspecified() { // the server listens on all of them
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(
		ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		err = web.WithoutURL(err)
		if of, ok := errors.AsType[*net.OpError](err); ok {
			err = of.Err // without the address
		}
		return "", fmt.Errorf("no server answers /healthz at %s: %w: see the log of the server, or name its "+
			"metrics_listen by --address or --config", request.URL.Host, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxHealthText))
	if err != nil {
		return "", fmt.Errorf("not healthy: %w", err)
	}
	text := strings.TrimSpace(string(body))
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("not healthy: %s: %s", response.Status, text)
	}
	return text, nil
}
