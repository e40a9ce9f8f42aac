package server

import (
	"context"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/certs"
	"github.com/babelftp/babelftp/internal/storage/s3client"
)

// TenantHealth is the result of the last checks of the buckets of a tenant.
type TenantHealth struct {
	// Storage identifies the buckets with their settings and credentials, and with what users may do there. It differs
	// after a change that [Server.ProbeTenant] should try. It is nil if the tenant is not in use.
	Storage *s3client.Bucket
	Checked bool  // whether all buckets were checked
	Err     error // why a bucket cannot be used
}

// TenantHealth returns the state of the buckets of a tenant. It sends no request.
func (s *Server) TenantHealth(tenant string) TenantHealth {
	b, ok := s.Bucket(tenant)
	if !ok {
		return TenantHealth{}
	}
	h := TenantHealth{Storage: b, Checked: true}
	for _, one := range append([]*s3client.Bucket{b}, b.Folders...) {
		switch known, err := one.Up(); {
		case !known:
			h.Checked = false
		case err != nil && h.Err == nil:
			h.Err = err
		}
	}
	return h
}

// ProbeTenant tries what the server does in the buckets of a tenant, like check --probe. It returns the problems, each
// on one line.
func (s *Server) ProbeTenant(ctx context.Context, tenant string) []string {
	b, ok := s.Bucket(tenant)
	if !ok {
		return nil
	}
	return s3client.ProbeInUse(ctx, b, s.log)
}

// TenantCertificates returns the certificates that clients of a tenant get, and the hosts for which ACME has not issued
// one yet. Both are empty if the tenant has no certificate and no hosts, or if the server has no TLS.
func (s *Server) TenantCertificates(tenant string) (all []certs.Certificate, missing []string) {
	t := s.active.Load().cfg.Tenants[tenant]
	if t == nil {
		return nil, nil
	}
	return s.certificates.CertificatesFor(tenant, t.Hosts)
}

// Usage returns the sessions and last logins of all replicas.
func (s *Server) Usage(ctx context.Context) *admin.Usage { return s.admin.api.Usage(ctx) }
