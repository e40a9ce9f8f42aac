package server

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/base/inspect"
	"github.com/babelftp/babelftp/internal/base/panics"
)

// inspectorInterval is the time between two probes of an inspector.
const inspectorInterval = time.Minute

// inspectorProbes holds the result of the last probe of each inspector. The zero value is empty.
type inspectorProbes struct {
	mu     sync.Mutex
	errors map[*inspect.Inspector]error
}

// swap stores the result of a probe, and reports whether the previous probe failed.
func (p *inspectorProbes) swap(i *inspect.Inspector, err error) (failed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.errors[i]
	if p.errors == nil {
		p.errors = map[*inspect.Inspector]error{}
	}
	p.errors[i] = err
	return before != nil
}

// keep drops the results of inspectors that are not in use.
func (p *inspectorProbes) keep(used map[string]*inspect.Inspector) {
	known := slices.Collect(maps.Values(used))
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.errors, func(i *inspect.Inspector, _ error) bool { return !slices.Contains(known, i) })
}

// probeInspectors sends a test file to each inspector. Without it, an inspector that is down would only show when
// clients upload.
func (s *Server) probeInspectors(ctx context.Context) {
	all := s.tenants.Inspectors()
	s.inspectors.keep(all)
	forEach(slices.Sorted(maps.Keys(all)), func(tenant string) {
		err := panics.Catch(func() error { return all[tenant].Probe(ctx) })
		if ctx.Err() != nil {
			return
		}
		failed := s.inspectors.swap(all[tenant], err)
		switch {
		case err != nil && !failed:
			s.log.Error("inspector failed", "tenant", tenant, "err", err)
		case err == nil && failed:
			s.log.Info("inspector works again", "tenant", tenant)
		}
	})
}

// inspectorsUp reports for each tenant whether the last probe of its inspector succeeded.
func (s *Server) inspectorsUp() map[string]bool {
	up := map[string]bool{}
	s.inspectors.mu.Lock()
	defer s.inspectors.mu.Unlock()
	for tenant, i := range s.tenants.Inspectors() {
		if err, probed := s.inspectors.errors[i]; probed {
			up[tenant] = err == nil
		}
	}
	return up
}
