package membudget

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestArenaReturnsMemory checks that free blocks return their memory after a while, except for the blocks of one part.
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
				t.Fatalf("block %d is in use twice", i)
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
				t.Errorf("with %d blocks in use, %d are warm, want %d", want.used, warm, want.warm)
			}
		}
		if total := len(b.warm) + len(b.cold); total != mapped*slabBlocks {
			t.Errorf("%d of %d blocks are free", total, mapped*slabBlocks)
		}
		for range parts * warmBlocks {
			b.get()[7]++
		}
		if len(b.slabs.mapped) != mapped {
			t.Errorf("%d slabs were mapped, want %d", len(b.slabs.mapped), mapped)
		}
	})
}
