package server

import (
	"fmt"
	"slices"
	"time"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/users/bans"
)

const (
	// certificateSoon is the time before the expiry of a certificate when it becomes a problem. One with a lifetime of
	// 90 days should have been renewed two weeks before.
	certificateSoon = 14 * 24 * time.Hour
	// quotaNearlyUsed is the part of a quota, in percent, from which on it is a problem.
	quotaNearlyUsed = 90
	// maxProblemBans limits the bans that are listed one by one.
	maxProblemBans = 50
)

// A refusedReload is a configuration that was refused.
type refusedReload struct {
	at  time.Time
	err error
}

// problems returns the current problems of the server. It sends no request.
func (s *Server) problems() []admin.Problem {
	return slices.Concat(
		s.configurationProblems(), resourceProblems(s.active.Load().resources), s.storageProblems(),
		s.auditProblems(), s.certificateProblems(), s.tenantProblems(), banProblems(s.bans.All()))
}

// configurationProblems returns the mistakes in a refused configuration, and refused texts.
func (s *Server) configurationProblems() (all []admin.Problem) {
	const keeps = "correct the file; the previous configuration stays in use until then"
	add := func(severity admin.Severity, since time.Time, problems config.Problems, action string) {
		for _, p := range problems[:min(len(problems), maxProblems)] {
			all = append(all, admin.Problem{
				Kind: admin.ProblemConfiguration, Severity: severity, Subject: p.Source, Since: since, Text: p.Message,
				File: p.Source, Line: p.Line, Key: p.Path, Action: action,
			})
		}
		if more := len(problems) - maxProblems; more > 0 {
			all = append(all, admin.Problem{
				Kind: admin.ProblemConfiguration, Severity: severity, Subject: "configuration", Since: since,
				Text: fmt.Sprintf("there are %d more mistakes", more), Action: action,
			})
		}
	}
	if refused := s.refused.Load(); refused != nil {
		if problems, ok := asProblems(refused.err); ok {
			add(admin.SeverityError, refused.at, problems, keeps)
		} else {
			all = append(all, admin.Problem{
				Kind: admin.ProblemConfiguration, Severity: admin.SeverityError, Subject: "configuration",
				Since: refused.at, Text: refused.err.Error(), Action: keeps,
			})
		}
	}
	current := s.active.Load()
	for _, u := range s.IgnoredUsers() {
		all = append(all, admin.Problem{
			Kind: admin.ProblemUser, Severity: admin.SeverityError, Subject: u.User + "@" + u.Tenant, Tenant: u.Tenant,
			Text: u.Reason, Action: "correct the user with babelftp users set, or remove it; other users are not affected",
		})
	}
	if r := s.opts.Resources; r != nil {
		if since, err := r.Problem(); err != nil {
			all = append(all, admin.Problem{
				Kind: admin.ProblemConfiguration, Severity: admin.SeverityError, Subject: "Kubernetes API",
				Since: since.UTC(), Key: "kubernetes",
				Text: "changes of custom resources do not arrive, and the known ones stay in use: " + err.Error(),
				Action: "correct the connection to the API server, or the permissions of the service account; " +
					"the server tries again every few seconds",
			})
		}
	}
	add(admin.SeverityWarning, current.at.UTC(), current.cfg.RefusedTexts(),
		"correct the text; the built-in one is used until then")
	return all
}

// resourceProblems returns the custom resources whose current version is not in use. m may be nil.
func resourceProblems(m *config.ResourceMerge) (all []admin.Problem) {
	if m == nil {
		return nil
	}
	more := 0
	for _, o := range m.Outcomes {
		if o.Reason == config.ResourceAccepted {
			continue
		}
		if len(all) == maxProblems {
			more++
			continue
		}
		p := admin.Problem{
			Kind: admin.ProblemResource, Severity: admin.SeverityError, Text: o.Message,
			Subject: fmt.Sprintf("%s %s/%s", o.Resource.Kind, o.Resource.Namespace, o.Resource.Name),
			Action:  "correct the resource, which is not in use",
		}
		if o.Used != nil {
			p.Tenant, p.Action = o.Tenant, "correct the resource; its previous version stays in use until then"
		}
		all = append(all, p)
	}
	if more > 0 {
		all = append(all, admin.Problem{
			Kind: admin.ProblemResource, Severity: admin.SeverityError, Subject: fmt.Sprintf("%d more", more),
			Text: fmt.Sprintf("%d more custom resources were refused", more), Action: "kubectl get ftptenants,ftpusers -A",
		})
	}
	return all
}

// storageProblems returns the buckets that cannot be used, and whether the shared state is not available.
func (s *Server) storageProblems() (all []admin.Problem) {
	if s.state != nil && !s.state.store.Up() {
		all = append(all, admin.Problem{
			Kind: admin.ProblemState, Severity: admin.SeverityError, Subject: s.state.store.String(), Key: "state",
			Text: "the shared state cannot be read, so changes on other replicas do not arrive; the last known state " +
				"stays in use",
			Action: "look for \"shared state not available\" in the log; babelftp check --probe tries the bucket",
		})
	}
	for _, b := range s.buckets() {
		known, err := b.Up()
		if !known || err == nil {
			continue
		}
		key := "tenants." + b.Tenant + ".bucket"
		if b.Folder != "" {
			key = "tenants." + b.Tenant + ".folders." + b.Folder
		}
		all = append(all, admin.Problem{
			Kind: admin.ProblemBucket, Severity: admin.SeverityError, Subject: "s3://" + b.Name + "/" + b.Prefix,
			Tenant: b.Tenant, Text: err.Error(), Key: key,
			Action: "correct the bucket, its permissions or the connection; the server tries again every few seconds",
		})
	}
	return all
}

// auditProblems returns the destinations of the audit log that cannot be written.
func (s *Server) auditProblems() (all []admin.Problem) {
	for _, name := range s.audit.Failing() {
		p := admin.Problem{
			Kind: admin.ProblemAudit, Severity: admin.SeverityError, Subject: name, Key: "audit." + name,
			Text:   "the audit log cannot be written, and lines may be lost",
			Action: "free space on the disk, or correct the permissions; the log has the error",
		}
		switch {
		case s.active.Load().cfg.Audit.Required:
			p.Text = "the audit log cannot be written, so logins, transfers and changes are refused"
		case name == "webhook":
			p.Text = "the receiver of the audit log does not accept lines; they wait in memory, up to 16 MiB"
		}
		if name == "webhook" {
			p.Action = "correct the receiver, so that it responds with 2xx; the log has the error"
		}
		all = append(all, p)
	}
	return all
}

// certificateProblems returns the certificates that have expired or expire soon.
func (s *Server) certificateProblems() (all []admin.Problem) {
	now := time.Now()
	add := func(tenant, host, key string, ends time.Time, action string) {
		p := admin.Problem{
			Kind: admin.ProblemCertificate, Severity: admin.SeverityWarning, Subject: host, Tenant: tenant, Key: key,
			Since: ends.Add(-certificateSoon).UTC(), Action: action,
			Text: "the certificate expires on " + ends.UTC().Format(time.DateOnly),
		}
		switch {
		case now.After(ends):
			p.Severity, p.Since = admin.SeverityError, ends.UTC()
			p.Text = "the certificate expired on " + ends.UTC().Format(time.DateOnly) + ", and clients reject it"
		case ends.Sub(now) > certificateSoon:
			return
		}
		all = append(all, p)
	}
	const replace = "replace the files; no restart is needed"
	for _, c := range s.certificates.Certificates() {
		switch {
		case c.File == "":
			add(c.Tenant, c.Host, "tls.acme", c.NotAfter, "look for the response of the ACME authority in the log")
		case c.Tenant != "":
			add(c.Tenant, c.Host, "tenants."+c.Tenant+".tls.cert_file", c.NotAfter, replace)
		default:
			add("", c.Host, "tls.cert_file", c.NotAfter, replace)
		}
	}
	if host, ends := s.admin.certificate(); !ends.IsZero() {
		add("", host, "admin.tls.cert_file", ends, replace)
	}
	return all
}

// tenantProblems returns inspectors and receivers of events that do not work, quotas that are nearly used up, and S3
// keys that should not be in use.
func (s *Server) tenantProblems() (all []admin.Problem) {
	for tenant, up := range s.inspectorsUp() {
		if !up {
			all = append(all, admin.Problem{
				Kind: admin.ProblemInspector, Severity: admin.SeverityError, Subject: tenant, Tenant: tenant,
				Key: "tenants." + tenant + ".inspect", Text: "the inspector did not judge the last test file",
				Action: "look for \"inspector failed\" in the log",
			})
		}
	}
	for tenant, f := range s.events.Failures() {
		all = append(all, admin.Problem{
			Kind: admin.ProblemEvents, Severity: admin.SeverityError, Subject: tenant, Tenant: tenant,
			Key: "tenants." + tenant + ".webhook", Since: f.Since.UTC(),
			Text:   "the receiver does not accept events, which wait in the bucket: " + f.Err.Error(),
			Action: "correct the receiver, so that it responds with 2xx",
		})
	}
	for tenant, n := range s.tenants.SessionsWithOldKeys() {
		if n > 0 {
			all = append(all, admin.Problem{
				Kind: admin.ProblemKey, Severity: admin.SeverityWarning, Subject: tenant, Tenant: tenant,
				Key:    "tenants." + tenant + ".s3.access_key_id",
				Text:   fmt.Sprintf("%d sessions still use an S3 access key that was replaced", n),
				Action: "do not delete the old key before these sessions have ended",
			})
		}
	}
	for _, q := range s.tenants.Quotas() {
		used, known := q.Used()
		if !known || q.Limit <= 0 || used < q.Limit/100*quotaNearlyUsed {
			continue
		}
		subject, key := q.Tenant, "tenants."+q.Tenant+".quota"
		if q.User != "" {
			subject, key = q.User+"@"+q.Tenant, "tenants."+q.Tenant+".users."+q.User+".quota"
		}
		all = append(all, admin.Problem{
			Kind: admin.ProblemQuota, Severity: admin.SeverityWarning, Subject: subject, Tenant: q.Tenant, Key: key,
			Text:   fmt.Sprintf("%s of %s are used", bytesize.Size(used), bytesize.Size(q.Limit)),
			Action: "raise the quota, or ask the user to delete files",
		})
	}
	if n := s.guard.Count(); n > 0 {
		all = append(all, admin.Problem{
			Kind: admin.ProblemPanic, Severity: admin.SeverityWarning, Subject: "bug",
			Text: fmt.Sprintf("%d sessions or connections were ended by a bug", n), Action: "report the stack in the log",
		})
	}
	return all
}

// banProblems returns the bans.
func banProblems(list []bans.Ban) (all []admin.Problem) {
	for _, b := range list[:min(len(list), maxProblemBans)] {
		all = append(all, admin.Problem{
			Kind: admin.ProblemBan, Severity: admin.SeverityWarning, Subject: b.Name,
			Text:   fmt.Sprintf("banned until %s by %s", b.Until.UTC().Format(time.RFC3339), b.Reason),
			Action: "lift the ban if the client may come back: babelftp bans remove " + b.Name,
		})
	}
	if more := len(list) - maxProblemBans; more > 0 {
		all = append(all, admin.Problem{
			Kind: admin.ProblemBan, Severity: admin.SeverityWarning, Subject: fmt.Sprintf("%d more", more),
			Text: fmt.Sprintf("%d more addresses, networks and users are banned", more), Action: "babelftp bans list",
		})
	}
	return all
}
