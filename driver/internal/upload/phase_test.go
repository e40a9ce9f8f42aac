package upload

import (
	"testing"

	"github.com/babelftp/babelftp/driver/internal/journal"
)

// TestKindAndPhase checks which uploads their owner can resume, and which count as kept after Close.
func TestKindAndPhase(t *testing.T) {
	owned := &journal.Open{}
	for _, test := range []struct {
		label     string
		w         *Writer
		kind      kind
		canResume bool
	}{
		{"one-request", &Writer{open: owned}, oneRequest, true},
		{"one-request-without-owner", &Writer{}, oneRequest, false},
		{"parts", &Writer{open: owned, upload: &multipart{kind: inParts, phase: live}}, inParts, true},
		{"parts-without-owner", &Writer{upload: &multipart{kind: inParts, phase: live}}, inParts, false},
		{"staged-parts", &Writer{open: owned, upload: &multipart{kind: stagedParts, phase: live}}, stagedParts, true},
		{"assembled", &Writer{open: owned, upload: &multipart{kind: stagedParts, phase: assembled}}, stagedParts, false},
		{"asked-after-assembly", &Writer{open: owned, phase: asked,
			upload: &multipart{kind: stagedParts, phase: assembled}}, stagedParts, false},
	} {
		t.Run(test.label, func(t *testing.T) {
			if got := test.w.kind(); got != test.kind {
				t.Errorf("kind %d, want %d", got, test.kind)
			}
			if got := test.w.canResume(); got != test.canResume {
				t.Errorf("canResume is %v", got)
			}
			for _, kept := range []bool{true, false} {
				if test.w.keepIf(kept); test.w.Kept() != kept {
					t.Errorf("Kept is not %v in phase %d", kept, test.w.phase)
				}
			}
		})
	}
}
