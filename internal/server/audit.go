package server

import (
	"io"

	"github.com/babelftp/babelftp/internal/admin/metrics"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/audit"
)

// observeSessions returns the observers of sessions: the metrics, and the audit log where somebody reads it. recent
// is nil without administrators. flush is for the end of all sessions.
func observeSessions(
	m *metrics.Server, out *audit.Output, recent *audit.Recent, guard *panics.Guard,
) (observe func(*report.Client) report.Observers, flush func()) {
	var to io.Writer = out
	switch {
	case recent != nil:
		to = io.MultiWriter(recent, out)
	case !out.Given():
		return func(*report.Client) report.Observers { return report.Observers{m} }, func() {}
	}
	log := audit.New(to, out.Roomy, guard)
	return func(c *report.Client) report.Observers { return report.Observers{m, log.Session(c)} }, log.Flush
}
