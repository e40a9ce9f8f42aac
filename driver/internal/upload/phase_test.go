package upload

import (
	"errors"
	"testing"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// TestSettled checks the phase after a request that S3 has performed or refused, or whose response was lost.
func TestSettled(t *testing.T) {
	refused := errors.New("refused")
	for _, test := range []struct {
		label              string
		during             phase
		err                error
		before, done, want phase
	}{
		{"file-stored", committing, nil, live, stored, stored},
		{"file-refused", committing, refused, live, stored, live},
		{"file-doubtful", committing, s3error.Doubtful(refused), live, stored, committing},
		{"assembled", committing, nil, live, assembled, assembled},
		{"assembly-refused", committing, refused, live, assembled, live},
		{"assembly-doubtful", committing, s3error.Doubtful(refused), live, assembled, committing},
		{"copied", copying, nil, assembled, stored, stored},
		{"copy-refused", copying, refused, assembled, stored, assembled},
		{"copy-doubtful", copying, s3error.Doubtful(refused), assembled, stored, copying},
	} {
		t.Run(test.label, func(t *testing.T) {
			if got := test.during.settled(test.err, test.before, test.done); got != test.want {
				t.Errorf("phase %d, want %d", got, test.want)
			}
		})
	}
}

// TestFinalPhases checks which phases are final, and that only interrupted uploads are kept.
func TestFinalPhases(t *testing.T) {
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
