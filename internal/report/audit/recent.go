package audit

import (
	"bytes"
	"encoding/json"

	"github.com/babelftp/babelftp/internal/report"
)

// maxRecentBytes limits the bytes of the lines in memory.
const maxRecentBytes = 512 << 10

// Recent keeps the last lines of the audit log in memory, with a share for each user. Its methods are safe for
// concurrent use.
type Recent struct{ ring *report.Ring }

// NewRecent returns an empty Recent.
func NewRecent() *Recent { return &Recent{report.NewRing(maxRecentBytes)} }

// Add implements [Sink].
func (r *Recent) Add(owner report.Owner, line []byte) { r.ring.Add(owner.User+"@"+owner.Tenant, line) }

// Lines returns the last lines, oldest first.
func (r *Recent) Lines() []json.RawMessage {
	lines := []json.RawMessage{}
	for _, line := range r.ring.Lines() {
		lines = append(lines, bytes.TrimSpace(line))
	}
	return lines
}
