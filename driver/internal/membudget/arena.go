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

	// coolTime is how long some of the others keep theirs. The parts of an upload tend to end together, and others
	// begin. To take memory from the system for each of them costs a fifth of what an upload takes of the processor.
	// Once in this time it costs little.
	coolTime = 10 * time.Second
)

// An arena is where blocks come from: slabs of memory outside of the Go heap. Blocks in the heap would let as much
// garbage pile up before the collector begins: with 512 MiB of parts a process takes 1.1 GiB instead of 0.6. It also
// gives memory back to the system soon after uploads end.
type arena struct {
	mu      sync.Mutex
	warm    []*Block // free, and have memory
	cold    []*Block // free; the system gives them memory when they are written to
	cooling bool     // cool runs at the end of the coolTime
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
	if len(a.warm) > 0 {
		return pop(&a.warm)
	}
	if len(a.cold) == 0 {
		slab, err := mapMemory(slabBlocks * BlockSize)
		if err != nil {
			return new(Block) // the heap may have memory
		}
		a.slabs.mapped = append(a.slabs.mapped, slab)
		for ; len(slab) > 0; slab = slab[BlockSize:] {
			a.cold = append(a.cold, (*Block)(slab))
		}
	}
	return pop(&a.cold)
}

// pop removes the last block of a list that is not empty.
func pop(blocks *[]*Block) *Block {
	last := len(*blocks) - 1
	block := (*blocks)[last]
	*blocks = (*blocks)[:last]
	return block
}

// put takes a block back.
func (a *arena) put(block *Block) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.warm = append(a.warm, block)
	if !a.cooling && len(a.warm) > warmBlocks {
		a.cooling = true
		time.AfterFunc(coolTime, a.cool)
	}
}

// cool gives back the memory of free blocks.
func (a *arena) cool() {
	a.mu.Lock()
	unused := slices.Clone(a.warm[:max(len(a.warm)-warmBlocks, 0)])
	a.warm = slices.Delete(a.warm, 0, len(unused))
	a.cooling = false
	a.mu.Unlock()
	for _, block := range unused {
		forgetMemory(block[:]) // which takes the system a while
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cold = append(a.cold, unused...)
}
