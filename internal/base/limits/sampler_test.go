package limits

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSampler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Sampler[string]
		pass := func(key string, wantMissing int, want bool) {
			t.Helper()
			if missing, ok := s.Pass(key); ok != want || missing != wantMissing {
				t.Errorf("%s: %d, %v, want %d, %v", key, missing, ok, wantMissing, want)
			}
		}
		pass("a", 0, true)
		for range 10 {
			pass("a", 0, false)
		}
		pass("b", 0, true)
		time.Sleep(sampleEvery)
		pass("a", 10, true)
		pass("a", 0, false)
		pass("b", 0, true)
	})
}
