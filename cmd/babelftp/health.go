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
	// healthAddress is the default metrics_listen.
	healthAddress = config.DefaultMetricsListen
	// healthTimeout limits the time of the request.
	healthTimeout = 5 * time.Second
	// maxHealthText limits the bytes of a response that are shown.
	maxHealthText = 1 << 10
)

var errNoMetricsListen = errors.New(
	"metrics_listen is empty, so the server has no health check: remove the key, or set it to an address such as " +
		healthAddress)

func newHealthCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health [--address HOST:PORT | --config FILE]",
		Short: "Check the health of a running server",
		Long: "Request /healthz from the metrics_listen of a running server, and exit with 0 if the status is 200, else with 1. It is meant for\n" +
			"Docker's HEALTHCHECK.",
		Example: "  babelftp health --config /etc/babelftp/babelftp.yaml\n" +
			"  babelftp health --address 127.0.0.1:9121",
		Args: noArguments,
	}
	address := cmd.Flags().String("address", "", "the `HOST:PORT` of metrics_listen (default "+healthAddress+")")
	file := cmd.Flags().StringP("config", "c", "", "the configuration `FILE` to read metrics_listen from")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		target := cmp.Or(*address, healthAddress)
		if *file != "" {
			if *address != "" {
				return newUsageError(cmd, "--address and --config cannot be combined")
			}
			cfg, err := loadConfig(cmd, *file)
			if err != nil {
				return err
			}
			if target = cfg.MetricsListen; target == "" {
				return errNoMetricsListen
			}
		}
		text, err := checkHealth(cmd.Context(), target)
		if err == nil {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
		}
		return err
	}
	return cmd
}

// checkHealth requests /healthz from the server with this metrics_listen. It returns the response if the
// server is healthy, and an error otherwise.
func checkHealth(ctx context.Context, address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("invalid address %q: want HOST:PORT, such as %s", address, healthAddress)
	}
	if host == "" || net.ParseIP(host).IsUnspecified() { // the server listens on all addresses
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
			err = of.Err // drops the address, which the message already has
		}
		return "", fmt.Errorf("cannot get /healthz from %s: %w: see the log of the server, or pass its "+
			"metrics_listen with --address or --config", request.URL.Host, err)
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
