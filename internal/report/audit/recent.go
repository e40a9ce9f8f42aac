package audit

import (
	"bytes"
	"encoding/json"

	"github.com/babelftp/babelftp/internal/report"
)

const (
	// maxRecent limits the lines that [Recent.Lines] returns.
	maxRecent = 200
	// maxRecentBytes has room for more lines than maxRecent, so that each user keeps some.
	maxRecentBytes = 512 << 10
)

// Recent keeps the last lines of the audit log in memory, with a share for each user. Its methods are safe for
// concurrent use.
type Recent struct{ ring *report.Ring }

// NewRecent returns an empty Recent.
func NewRecent() *Recent { return &Recent{report.NewRing(maxRecentBytes)} }

// Add implements [Sink].
func (r *Recent) Add(owner report.Owner, line []byte) { r.ring.Add(owner.User+"@"+owner.Tenant, line) }

// Lines returns the last lines, at most maxRecent, oldest first.
func (r *Recent) Lines() []json.RawMessage {
	lines := []json.RawMessage{}
	all := r.ring.Lines()
	for _, line := range all[max(0, len(all)-maxRecent):] {
		lines = append(lines, bytes.TrimSpace(line))
	}
	return lines
}
