package driver

import "testing"

// TestBlocksGoCold checks that blocks which nobody uses give their memory back, but for as many as are in use and those of a part.
func TestBlocksGoCold(t *testing.T) {
	b := newBlocks()
	const parts = 4
	var used []*[blockSize]byte
	for i := range parts * warmBlocks {
		block := b.get()
		block[0], block[blockSize-1] = byte(i), byte(i)
		used = append(used, block)
	}
	for i, block := range used {
		if block[0] != byte(i) || block[blockSize-1] != byte(i) {
			t.Fatalf("block %d is another one too", i)
		}
	}
	mapped := len(b.chunks.mapped)
	for _, want := range []struct{ used, warm int }{
		{3 * warmBlocks, warmBlocks},
		{2 * warmBlocks, 2 * warmBlocks},
		{warmBlocks, warmBlocks},
		{0, warmBlocks},
	} {
		for len(used) > want.used {
			b.put(used[0])
			used = used[1:]
		}
		if len(b.warm) != want.warm {
			t.Errorf("with %d in use %d are warm, want %d", want.used, len(b.warm), want.warm)
		}
	}
	if total := len(b.warm) + len(b.cold); total != mapped*chunkBlocks {
		t.Errorf("%d blocks came back of %d", total, mapped*chunkBlocks)
	}
	for range parts * warmBlocks {
		b.get()[7]++
	}
	if len(b.chunks.mapped) != mapped {
		t.Errorf("the system was asked for %d chunks, %d would do", len(b.chunks.mapped), mapped)
	}
}
