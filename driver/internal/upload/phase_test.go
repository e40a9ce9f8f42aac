package upload

import (
	"errors"
	"testing"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// TestSettled checks the phase after each request that an upload waits for: S3 has done it, or refused it, or its
// response was lost.
func TestSettled(t *testing.T) {
	refused := errors.New("refused")
	for _, test := range []struct {
		label              string
		asked              phase
		err                error
		before, done, want phase
	}{
		{"file-made", asked, nil, live, stored, stored},
		{"file-refused", asked, refused, live, stored, live},
		{"file-doubtful", asked, s3error.Doubtful(refused), live, stored, asked},
		{"assembled", asked, nil, live, assembled, assembled},
		{"assembly-refused", asked, refused, live, assembled, live},
		{"assembly-doubtful", asked, s3error.Doubtful(refused), live, assembled, asked},
		{"copied", copying, nil, assembled, stored, stored},
		{"copy-refused", copying, refused, assembled, stored, assembled},
		{"copy-doubtful", copying, s3error.Doubtful(refused), assembled, stored, copying},
	} {
		t.Run(test.label, func(t *testing.T) {
			if got := test.asked.settled(test.err, test.before, test.done); got != test.want {
				t.Errorf("phase %d, want %d", got, test.want)
			}
		})
	}
}

// TestLastPhases checks which phases end an upload, and that only one of them counts as kept.
func TestLastPhases(t *testing.T) {
	for p := opened; p <= ending; p++ {
		w := &Writer{phase: p}
		if over := p.isOver(); over != (p > copying) {
			t.Errorf("phase %d is over: %v", p, over)
		}
		if w.Kept() != (p == interrupted) {
			t.Errorf("phase %d is kept: %v", p, w.Kept())
		}
		if _, err := w.Write(nil); (err != nil) != p.isOver() {
			t.Errorf("write in phase %d: %v", p, err)
		}
	}
}
