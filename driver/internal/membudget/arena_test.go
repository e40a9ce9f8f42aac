package membudget

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestArenaReturnsMemory checks that blocks without use return their memory after a while, except for those of a part.
func TestArenaReturnsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newArena()
		const parts = 4
		var used []*Block
		for i := range parts * warmBlocks {
			block := b.get()
			block[0], block[BlockSize-1] = byte(i), byte(i)
			used = append(used, block)
		}
		for i, block := range used {
			if block[0] != byte(i) || block[BlockSize-1] != byte(i) {
				t.Fatalf("block %d is another one too", i)
			}
		}
		mapped := len(b.slabs.mapped)
		for _, want := range []struct {
			after      time.Duration
			used, warm int
		}{
			{coolTime / 2, warmBlocks, 3 * warmBlocks},
			{coolTime, warmBlocks, warmBlocks},
			{coolTime / 2, 0, 2 * warmBlocks},
			{coolTime, 0, warmBlocks},
		} {
			for len(used) > want.used {
				b.put(used[0])
				used = used[1:]
			}
			time.Sleep(want.after)
			synctest.Wait()
			b.mu.Lock()
			warm := len(b.warm)
			b.mu.Unlock()
			if warm != want.warm {
				t.Errorf("with %d in use %d are warm, want %d", want.used, warm, want.warm)
			}
		}
		if total := len(b.warm) + len(b.cold); total != mapped*slabBlocks {
			t.Errorf("%d blocks came back of %d", total, mapped*slabBlocks)
		}
		for range parts * warmBlocks {
			b.get()[7]++
		}
		if len(b.slabs.mapped) != mapped {
			t.Errorf("the system was asked for %d slabs, %d would do", len(b.slabs.mapped), mapped)
		}
	})
}
