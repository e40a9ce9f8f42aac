package s3client

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Report is the result of a probe.
type Report struct {
	Bucket *Bucket
	// Missing lists the permissions that the credentials lack, with patterns instead of keys.
	Missing []Permission
	// Problems lists all other problems, each on one line.
	Problems []string
	// Notes are hints about a bucket without problems.
	Notes []string
}

// OK reports whether the bucket can be used as configured.
func (r *Report) OK() bool { return len(r.Missing)+len(r.Problems) == 0 }

// String returns the report on one line, including what to do.
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

// MarshalJSON returns the report for scripts.
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
