package server

import (
	"context"

	"github.com/babelftp/babelftp/internal/config"
)

// A ResourceSource reads tenants and users that are custom resources of Kubernetes. The server adds them to the tenants
// of its files.
type ResourceSource interface {
	// Configure sets the namespaces to follow. The server calls it before Run, and after each reload of its files.
	Configure(k *config.Kubernetes)
	// Run follows the resources until ctx ends. It writes their status with what it learns from s.
	Run(ctx context.Context, s *Server)
	// Known returns a channel that is closed when all resources were read, or a copy of them was loaded.
	Known() <-chan struct{}
	// Changed returns a channel that receives a value after a change.
	Changed() <-chan struct{}
	// Current returns the resources. The result is immutable.
	Current() *config.Resources
	// Applied is called when the outcome of a merge is in use. It must not block.
	Applied(m *config.ResourceMerge)
}
