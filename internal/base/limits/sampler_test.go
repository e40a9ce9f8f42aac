package limits

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSampler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Sampler[string]
		pass := func(key string, wantDropped int, want bool) {
			t.Helper()
			if dropped, ok := s.Pass(key); ok != want || dropped != wantDropped {
				t.Errorf("%s: got %d, %v, want %d, %v", key, dropped, ok, wantDropped, want)
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
