package kubernetes

import (
	"context"
	"fmt"
	"log/slog"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/server"
)

// Options holds the settings of a [Source] that are not in the configuration.
type Options struct {
	// Namespace is the namespace of the release, which has the Lease of the leader.
	Namespace string

	// Identity is the name of this replica among those that want to be the leader: the name of its pod.
	Identity string

	// Logger is the log. The default discards everything.
	Logger *slog.Logger
}

// A Source follows the custom resources of the watched namespaces. It implements [server.ResourceSource].
type Source struct {
	opts   Options
	log    *slog.Logger
	client clientset.Interface // Secrets, ConfigMaps, Leases and Events
	custom rest.Interface      // FTPTenants and FTPUsers

	known   chan struct{}
	changed chan struct{}
}

var _ server.ResourceSource = (*Source)(nil)

// New returns a Source that connects to the API server of rc.
func New(rc *rest.Config, opts Options) (*Source, error) {
	rc = rest.CopyConfig(rc)
	if rc.QPS == 0 {
		rc.QPS = -1 // the API server limits requests fairly itself, and the leader limits its writes
	}
	client, err := clientset.NewForConfig(rc)
	if err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	gv := groupVersion()
	rc.GroupVersion, rc.APIPath = &gv, "/apis"
	rc.NegotiatedSerializer = serializer.NewCodecFactory(newScheme()).WithoutConversion()
	custom, err := rest.RESTClientFor(rc)
	if err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	s := &Source{
		opts: opts, log: opts.Logger, client: client, custom: custom,
		known: make(chan struct{}), changed: make(chan struct{}, 1),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s, nil
}

// Configure implements [server.ResourceSource].
func (s *Source) Configure(*config.Kubernetes) {}

// Run implements [server.ResourceSource].
func (s *Source) Run(ctx context.Context, _ *server.Server) { <-ctx.Done() }

// Known implements [server.ResourceSource].
func (s *Source) Known() <-chan struct{} { return s.known }

// Changed implements [server.ResourceSource].
func (s *Source) Changed() <-chan struct{} { return s.changed }

// Current implements [server.ResourceSource].
func (s *Source) Current() *config.Resources { return &config.Resources{} }

// status returns the status of a resource as the API server has it, or nil.
func (s *Source) status(config.ResourceKind, string, string) *Status { return nil }

// Applied implements [server.ResourceSource].
func (s *Source) Applied(*config.ResourceMerge) {}
