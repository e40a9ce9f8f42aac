package kubernetes

import (
	"context"
	"encoding/json"
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

	reporter *reporter
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
	s.reporter = newReporter(reporterOptions{
		client: client, namespace: opts.Namespace, identity: opts.Identity, log: s.log,
		object: s.object, put: s.putStatus,
	})
	return s, nil
}

// Configure implements [server.ResourceSource].
func (s *Source) Configure(*config.Kubernetes) {}

// Run implements [server.ResourceSource].
func (s *Source) Run(ctx context.Context, srv *server.Server) { s.reporter.Run(ctx, srv) }

// Known implements [server.ResourceSource].
func (s *Source) Known() <-chan struct{} { return s.known }

// Changed implements [server.ResourceSource].
func (s *Source) Changed() <-chan struct{} { return s.changed }

// Current implements [server.ResourceSource].
func (s *Source) Current() *config.Resources { return &config.Resources{} }

// Applied implements [server.ResourceSource].
func (s *Source) Applied(m *config.ResourceMerge) { s.reporter.Applied(m) }

// object returns a resource as the watch has shown it last, or nil. The object is not to be changed.
func (s *Source) object(config.ResourceKind, string, string) *Object { return nil }

// putStatus replaces the status of a resource.
func (s *Source) putStatus(ctx context.Context, kind config.ResourceKind, o *Object) (*Object, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	plural := Users
	if kind == config.TenantResource {
		plural = Tenants
	}
	text, err = s.custom.Put().Namespace(o.Namespace).Resource(plural).Name(o.Name).SubResource("status").
		SetHeader("Content-Type", "application/json").Body(text).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	result := &Object{}
	return result, json.Unmarshal(text, result)
}
