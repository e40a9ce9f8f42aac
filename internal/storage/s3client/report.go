package s3client

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Report is what a probe has found out about a bucket.
type Report struct {
	Bucket *Bucket
	// Missing is what the IAM policy of the bucket's credentials lacks, with patterns in place of keys.
	Missing []Permission
	// Problems are the others, each on one line.
	Problems []string
	// Notes are what to know of a bucket that works.
	Notes []string
}

// OK tells whether the bucket can be used as it is configured.
func (r *Report) OK() bool { return len(r.Missing)+len(r.Problems) == 0 }

// String is one line, with what to do.
func (r *Report) String() string {
	problems := slices.Clone(r.Problems)
	if len(r.Missing) > 0 {
		var missing []string
		for _, m := range r.Missing {
			missing = append(missing, m.String())
		}
		problems = append(
			problems, fmt.Sprintf("%v: the IAM policy lacks %s: add it; babelftp policy %s prints all that it needs",
				r.Bucket, strings.Join(missing, ", "), r.Bucket.Tenant))
	}
	if len(problems) == 0 {
		problems = append([]string{fmt.Sprintf("%v: ok", r.Bucket)}, r.Notes...)
	}
	return strings.Join(problems, "; ")
}

// MarshalJSON writes the report for scripts.
func (r *Report) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Tenant   string       `json:"tenant"`
		Folder   string       `json:"folder,omitempty"`
		Bucket   string       `json:"bucket"`
		OK       bool         `json:"ok"`
		Missing  []Permission `json:"missing,omitempty"`
		Problems []string     `json:"problems,omitempty"`
		Notes    []string     `json:"notes,omitempty"`
	}{r.Bucket.Tenant, r.Bucket.Folder, r.Bucket.Name, r.OK(), r.Missing, r.Problems, r.Notes})
}

// resolve finds out which permissions are missing. A request that needs several shows nothing of those that are
// allowed elsewhere, or if a missing one explains it.
func (p *prober) resolve() {
	var open [][]Permission
	missing := func(need Permission) bool { return slices.Contains(p.report.Missing, need) }
	for _, needs := range p.denied {
		needs = slices.DeleteFunc(slices.Clone(needs), func(need Permission) bool { return p.allowed[need] })
		switch {
		case len(needs) > 1:
			open = append(open, needs)
		case len(needs) == 1 && !missing(needs[0]):
			p.report.Missing = append(p.report.Missing, needs[0])
		case len(needs) == 0: // all that it needs is allowed, apart from the others
			p.problem(
				"S3 denies a request, although its actions are allowed one by one: look for a Deny in the policies " +
					"of the bucket")
		}
	}
	for _, needs := range open {
		if !slices.ContainsFunc(needs, missing) {
			p.report.Missing = append(p.report.Missing, needs...)
		}
	}
	p.report.Missing = slices.DeleteFunc(p.report.Missing, func(need Permission) bool {
		return p.covered(need, missing)
	})
}

// covered tells whether a permission for the own keys is a part of one for all keys.
func (p *prober) covered(need Permission, there func(Permission) bool) bool {
	return need.Resource == p.allOwn && there(Permission{need.Action, p.all})
}
