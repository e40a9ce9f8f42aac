package membudget

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// slabBlocks is how many blocks the arena requests from the system together.
	slabBlocks = 16

	// warmBlocks is how many free blocks keep their memory in any case: those of a part.
	warmBlocks = MinLimit / BlockSize

	// coolTime is how long the others keep theirs at least. The parts of an upload tend to end together and others to begin; to take
	// memory from the system anew costs a fifth of what an upload takes of the processor.
	coolTime = 10 * time.Second
)

// An arena is where blocks come from: slabs of memory outside of the Go heap. Blocks in the heap would let as much garbage pile up before the collector
// begins: with 512 MiB of parts a process takes 1.1 GiB instead of 0.6. It also gives memory back to the system soon after uploads end.
type arena struct {
	mu      sync.Mutex
	free    []*Block // a stack, whose bottom stays unused
	cold    int      // blocks at the bottom without memory
	idle    int      // the fewest free blocks in this coolTime
	cooling bool     // cool runs at its end
	slabs   *slabs
}

// slabs are what the system has given.
type slabs struct{ mapped [][]byte }

func newArena() *arena {
	a := &arena{slabs: &slabs{}}
	runtime.AddCleanup(a, (*slabs).unmap, a.slabs)
	return a
}

func (s *slabs) unmap() {
	for _, slab := range s.mapped {
		unmapMemory(slab)
	}
}

// get returns a block with whatever bytes.
func (a *arena) get() *Block {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.free) == 0 {
		slab, err := mapMemory(slabBlocks * BlockSize)
		if err != nil {
			return new(Block) // the heap may have memory
		}
		a.slabs.mapped = append(a.slabs.mapped, slab)
		for ; len(slab) > 0; slab = slab[BlockSize:] {
			a.free = append(a.free, (*Block)(slab))
		}
		a.cold = len(a.free)
	}
	last := len(a.free) - 1
	block := a.free[last]
	a.free = a.free[:last]
	a.cold, a.idle = min(a.cold, last), min(a.idle, last)
	return block
}

// put takes a block back.
func (a *arena) put(block *Block) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free = append(a.free, block)
	a.coolLater()
}

func (a *arena) coolLater() {
	if !a.cooling && len(a.free)-a.cold > warmBlocks {
		a.cooling = true
		time.AfterFunc(coolTime, a.cool)
	}
}

// cool gives back the memory of blocks that were free in all of the coolTime that ends.
func (a *arena) cool() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if end := min(a.idle, len(a.free)-warmBlocks); end > a.cold {
		unused := slices.Clone(a.free[a.cold:end])
		a.free = slices.Delete(a.free, a.cold, end)
		a.mu.Unlock()
		for _, block := range unused {
			forgetMemory(block[:]) // which takes the system a while
		}
		a.mu.Lock()
		a.free = slices.Insert(a.free, 0, unused...)
		a.cold += len(unused)
	}
	a.idle, a.cooling = len(a.free), false
	a.coolLater()
}
