package admin

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/doctor"
)

// A Severity says how bad a [Problem] is.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"   // something does not work
	SeverityWarning Severity = "warning" // something may stop working, or an administrator should know it
)

// A ProblemKind is a kind of [Problem].
type ProblemKind string

// The kinds, the worst ones first.
const (
	ProblemReplica       ProblemKind = "replica"       // another replica does not respond
	ProblemAudit         ProblemKind = "audit"         // the audit log cannot be written
	ProblemState         ProblemKind = "state"         // the shared state cannot be read
	ProblemBucket        ProblemKind = "bucket"        // a bucket cannot be used
	ProblemConfiguration ProblemKind = "configuration" // a new configuration was refused, or differs between replicas
	ProblemResource      ProblemKind = "resource"      // a custom resource of Kubernetes was refused
	ProblemUser          ProblemKind = "user"          // a stored user is invalid
	ProblemCertificate   ProblemKind = "certificate"   // a certificate has expired or expires soon
	ProblemInspector     ProblemKind = "inspector"     // the inspector of a tenant does not work
	ProblemEvents        ProblemKind = "events"        // the receiver of a tenant's events does not accept them
	ProblemPanic         ProblemKind = "panic"         // a bug ended sessions
	ProblemQuota         ProblemKind = "quota"         // a quota is nearly used up
	ProblemKey           ProblemKind = "key"           // sessions still use an S3 key that was replaced
	ProblemFinding       ProblemKind = "finding"       // the log shows why clients do not work
	ProblemBan           ProblemKind = "ban"           // a client or user is banned
)

// Values returns all kinds, the worst ones first.
func (ProblemKind) Values() []string {
	var all []string
	for _, k := range []ProblemKind{
		ProblemReplica, ProblemAudit, ProblemState, ProblemBucket, ProblemConfiguration, ProblemResource, ProblemUser,
		ProblemCertificate, ProblemInspector, ProblemEvents, ProblemPanic, ProblemQuota, ProblemKey, ProblemFinding,
		ProblemBan,
	} {
		all = append(all, string(k))
	}
	return all
}

// A Problem is something that an administrator should look at.
type Problem struct {
	Kind     ProblemKind `json:"kind"`
	Severity Severity    `json:"severity"`
	Subject  string      `json:"subject"` // what has the problem, such as a bucket or the address of a client
	Tenant   string      `json:"tenant,omitempty"`
	Replica  int         `json:"replica"`
	Since    time.Time   `json:"since"` // when the replica noticed it
	Text     string      `json:"text"`  // what is wrong; findings are in the language of the request
	File     string      `json:"file,omitempty"`
	Line     int         `json:"line,omitempty"`   // in the file
	Key      string      `json:"key,omitempty"`    // of the configuration
	Action   string      `json:"action,omitempty"` // what to do
}

// sortProblems sorts problems, the worst ones first.
func sortProblems(all []Problem) {
	order := ProblemKind("").Values()
	rank := func(p Problem) int { return slices.Index(order, string(p.Kind)) }
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), rank(a)-rank(b), b.Since.Compare(a.Since),
			cmp.Compare(a.Subject, b.Subject), a.Replica-b.Replica)
	})
}

const (
	// problemsAge is the time for which a list of problems is cached.
	problemsAge = time.Second
	// maxFindingProblems limits the findings among the problems.
	maxFindingProblems = 50
	// findingsSince is the age of log lines that show current problems.
	findingsSince = time.Hour
)

// problemTracker remembers when problems began.
type problemTracker struct {
	mu    sync.Mutex
	at    time.Time
	last  []Problem
	since map[string]time.Time
}

// list returns what current returns, at most every problemsAge, with the times when the problems were first seen.
func (t *problemTracker) list(current func() []Problem, replica int) []Problem {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if now.Sub(t.at) < problemsAge {
		return slices.Clone(t.last)
	}
	t.at, t.last = now, current()
	since := map[string]time.Time{}
	for i := range t.last {
		p := &t.last[i]
		p.Replica = replica
		id := fmt.Sprintf("%s %q %q %d", p.Kind, p.Subject, p.Key, p.Line)
		if p.Since.IsZero() {
			if p.Since = t.since[id]; p.Since.IsZero() {
				p.Since = now.UTC()
			}
		}
		since[id] = p.Since
	}
	t.since = since
	return slices.Clone(t.last)
}

// ownProblems returns the problems of this replica without findings.
func (h *Handler) ownProblems() []Problem { return h.problems.list(h.Problems, h.self()) }

// WatchProblems notes when problems begin, until ctx ends.
func (h *Handler) WatchProblems(ctx context.Context) {
	ticker := time.NewTicker(historyInterval)
	defer ticker.Stop()
	for {
		h.ownProblems()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// listProblems returns the problems of all replicas, the worst ones first.
func (h *Handler) listProblems(r *http.Request) ([]Problem, error) {
	all := append([]Problem{}, h.ownProblems()...)
	all = append(all, h.logProblems(r)...)
	hash := h.Source.Server().ConfigHash
	for _, other := range h.otherReplicas(r.Context()) {
		if !other.Up {
			all = append(all, Problem{
				Kind: ProblemReplica, Severity: SeverityError, Subject: fmt.Sprintf("replica %d", other.Replica),
				Replica: other.Replica, Since: other.since, Text: other.Reason, Key: "cluster.peers",
				Action: "check that the replica is running, and that this one reaches its passive ports",
			})
			continue
		}
		all = append(all, other.problems...)
		if other.Server.ConfigHash != hash {
			all = append(all, Problem{
				Kind: ProblemConfiguration, Severity: SeverityWarning,
				Subject: fmt.Sprintf("replica %d", other.Replica), Replica: other.Replica, Since: other.Server.Reloaded,
				Text:   "the configuration or a file that it names differs from the one of this replica",
				Action: "compare the files of both replicas, or wait until they are copied",
			})
		}
	}
	sortProblems(all)
	return sameOnce(all), nil
}

// sameOnce drops problems that several replicas see, such as shared bans.
func sameOnce(all []Problem) []Problem {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(p Problem) bool {
		switch p.Kind {
		case ProblemBan, ProblemBucket, ProblemCertificate, ProblemResource:
		default:
			return false
		}
		id := fmt.Sprintf("%s %s %q %q", p.Kind, p.Severity, p.Subject, p.Text)
		before := seen[id]
		seen[id] = true
		return before
	})
}

// logFindings are the findings in the log of the replica, which are read again when the log has changed.
type logFindings struct {
	mu    sync.Mutex
	at    time.Time
	found *doctor.Findings // nil if the log has no line about a client
}

// findingsAge is the time for which findings are cached, because reading the log takes some milliseconds.
const findingsAge = 10 * time.Second

// logProblems returns the findings of the doctor in the log of this replica.
func (h *Handler) logProblems(r *http.Request) (all []Problem) {
	f := &h.logFindings
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.at) > findingsAge {
		h.reading.Lock()
		found, err := doctor.ReadLog(r.Context(), h.Tail.reader(), doctor.Filter{Since: now.Add(-findingsSince)})
		h.reading.Unlock()
		if err != nil {
			found = nil
		}
		if r.Context().Err() == nil {
			f.found, f.at = found, now
		}
	}
	if f.found == nil {
		return nil
	}
	b := h.Bundle()
	for _, found := range f.found.Shown(b.Localizer(chosen(b, r)).Text) {
		if len(all) == maxFindingProblems {
			break
		}
		p := Problem{
			Kind: ProblemFinding, Severity: SeverityWarning, Subject: cmp.Or(found.Client, found.User),
			Replica: h.self(), Since: f.at.Add(-findingsSince).UTC(), Text: found.Cause,
			Key:    strings.Join(found.Keys, ", "),
			Action: found.Change,
		}
		if found.Client != "" && found.User != "" {
			p.Subject = found.User + ", " + found.Client
		}
		if found.Times > 1 {
			p.Text += fmt.Sprintf(" (%d×)", found.Times)
		}
		all = append(all, p)
	}
	return all
}
