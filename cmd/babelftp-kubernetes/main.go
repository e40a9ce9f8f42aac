// FTP opens a port for each transfer. By default, Go also listens for Multipath TCP, which costs more and
// which no FTP client uses.
//
//go:debug multipathtcp=0

// Command babelftp-kubernetes is babelftp serve with tenants and users that are custom resources of Kubernetes.
//
// It is a command of its own because nobody without Kubernetes needs the large client of the API server. The exit codes
// are the same as for babelftp.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/kubernetes"
	"github.com/babelftp/babelftp/internal/server"
	"github.com/babelftp/babelftp/internal/server/serve"
)

// version and commit are set by the linker, as for babelftp.
var (
	version string
	commit  string //nolint:gochecknoglobals // only a variable can be set by the linker
)

// The exit codes.
const (
	exitOK = iota
	exitFailure
	exitUsage
)

// namespaceFile has the namespace of a pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// build returns the description of this program.
func build() serve.Build {
	return serve.Build{Program: "babelftp-kubernetes", Version: version, Commit: commit}
}

// run executes a command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	build().PrintError(stderr, err)
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	return exitFailure
}

// A usageError is an invalid command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() + " (see babelftp-kubernetes --help)" }

func (e *usageError) Unwrap() error { return e.err }

// A command holds the flags.
type command struct{ config, kubeconfig, namespace string }

func newCommand() *cobra.Command {
	var c command
	cmd := &cobra.Command{
		Use:   "babelftp-kubernetes [--config FILE]",
		Short: "Serve tenants and users that are custom resources of Kubernetes",
		Long: "Serve the tenants of a configuration, and those that are custom resources (FTPTenant and FTPUser) in the\n" +
			"namespaces of its kubernetes section. Everything else is the same as with babelftp serve.\n\n" +
			"The API server is the one of --kubeconfig, of $KUBECONFIG, or of the cluster in which the program runs.\n" +
			"The name of this replica is $POD_NAME, or else the name of the host.",
		Example: "  babelftp-kubernetes --config /etc/babelftp/babelftp.yaml\n" +
			"  babelftp-kubernetes --config babelftp.yaml --kubeconfig ~/.kube/config --namespace ftp",
		Version:       build().Text(),
		Args:          noArguments,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	cmd.SetVersionTemplate("{{.Version}}")
	flags := cmd.Flags()
	flags.StringVarP(&c.config, "config", "c", config.DefaultFile, "the configuration `FILE`")
	flags.StringVar(&c.kubeconfig, "kubeconfig", "",
		"the kubeconfig `FILE` (default $KUBECONFIG, or else the service account of the pod)")
	flags.StringVar(&c.namespace, "namespace", "",
		"the `NAMESPACE` of the Lease (default $POD_NAMESPACE, or else the namespace of the service account)")
	return cmd
}

func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Errorf("unexpected argument %q", args[0])}
	}
	return nil
}

func (c command) run(cmd *cobra.Command) error {
	if c.config == "" {
		return &usageError{errors.New("--config must not be empty")}
	}
	return serve.File(cmd.Context(), c.config, serve.Options{
		Version: build().VersionOrModule(), Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr(),
		Accept: accept, Resources: c.resources,
	})
}

// accept refuses a configuration without namespaces, with which this command would do the same as babelftp serve.
func accept(cfg *config.Config) error {
	if cfg.Kubernetes.IsSet() {
		return nil
	}
	return errors.New("the configuration has no kubernetes section, which says where the custom resources are: add " +
		"kubernetes.namespaces, or use babelftp serve")
}

// resources connects to the API server.
func (c command) resources(_ *config.Config, log *slog.Logger) (server.ResourceSource, error) {
	rc, err := c.connection()
	if err != nil {
		return nil, err
	}
	namespace, err := c.ownNamespace()
	if err != nil {
		return nil, err
	}
	identity := os.Getenv("POD_NAME")
	if identity == "" {
		if identity, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("name of this replica: %w: set POD_NAME", err)
		}
	}
	klog.SetSlogLogger(log) // client-go logs there
	rc.UserAgent = build().Program + "/" + build().VersionOrModule()
	return kubernetes.New(rc, kubernetes.Options{Namespace: namespace, Identity: identity, Logger: log})
}

// connection returns how to connect to the API server.
func (c command) connection() (*rest.Config, error) {
	if file := cmp.Or(c.kubeconfig, os.Getenv("KUBECONFIG")); file != "" {
		rc, err := clientcmd.BuildConfigFromFlags("", file)
		if err != nil {
			return nil, fmt.Errorf("kubeconfig %s: %w", file, err)
		}
		return rc, nil
	}
	rc, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, errors.New("this is not a pod with a service account, so the API server is unknown: set --kubeconfig " +
			"or KUBECONFIG, or automountServiceAccountToken: true in the pod")
	}
	if err != nil {
		return nil, fmt.Errorf("service account of the pod: %w: set automountServiceAccountToken: true in the pod", err)
	}
	return rc, nil
}

// ownNamespace returns the namespace of the Lease.
func (c command) ownNamespace() (string, error) {
	if name := cmp.Or(c.namespace, os.Getenv("POD_NAMESPACE")); name != "" {
		return name, nil
	}
	text, err := os.ReadFile(namespaceFile)
	if err != nil {
		return "", fmt.Errorf("the namespace of this program is unknown: set --namespace or POD_NAMESPACE: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
