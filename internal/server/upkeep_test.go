package server

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// All items are processed, and not too many at the same time.
func TestForEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most, sum atomic.Int64
		all := make([]int64, 5*maxParallel)
		for i := range all {
			all[i] = 1
		}
		forEach(all, func(n int64) {
			if running := now.Add(1); running > most.Load() {
				most.Store(running)
			}
			time.Sleep(time.Second)
			sum.Add(n)
			now.Add(-1)
		})
		if sum.Load() != int64(len(all)) || most.Load() > maxParallel {
			t.Errorf("%d tasks were done, %d at the same time", sum.Load(), most.Load())
		}
	})
}
