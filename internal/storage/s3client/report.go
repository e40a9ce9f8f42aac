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
