package membudget

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// slabBlocks is the number of blocks that the arena requests from the system at once.
	slabBlocks = 16

	// warmBlocks is the number of free blocks that always keep their memory: enough for one part.
	warmBlocks = MinLimit / BlockSize

	// coolTime is the time after which further free blocks return their memory to the system. The parts of an upload
	// often end together shortly before others begin. Without the delay, requesting memory for each of them would take
	// a fifth of the processor time of an upload.
	coolTime = 10 * time.Second
)

// An arena allocates blocks from slabs of memory outside the Go heap. If blocks were on the heap, the garbage collector
// would let the same amount of garbage accumulate: with 512 MiB of parts, a process would use 1.1 GiB instead of 0.6
// GiB. The arena also returns memory to the system soon after uploads end.
type arena struct {
	mu      sync.Mutex
	warm    []*Block // free blocks with memory
	cold    []*Block // free blocks without memory; they get some when they are written to
	cooling bool     // a timer will call cool
	slabs   *slabs
}

// slabs are the mapped slabs of an arena. They are a separate object for the cleanup of the arena.
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

// get returns a block with arbitrary content.
func (a *arena) get() *Block {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.warm) > 0 {
		return pop(&a.warm)
	}
	if len(a.cold) == 0 {
		slab, err := mapMemory(slabBlocks * BlockSize)
		if err != nil {
			return new(Block) // the Go heap may still have memory
		}
		a.slabs.mapped = append(a.slabs.mapped, slab)
		for ; len(slab) > 0; slab = slab[BlockSize:] {
			a.cold = append(a.cold, (*Block)(slab))
		}
	}
	return pop(&a.cold)
}

// pop removes and returns the last block of a list, which must not be empty.
func pop(blocks *[]*Block) *Block {
	last := len(*blocks) - 1
	block := (*blocks)[last]
	*blocks = (*blocks)[:last]
	return block
}

// put returns a block to the arena.
func (a *arena) put(block *Block) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.warm = append(a.warm, block)
	if !a.cooling && len(a.warm) > warmBlocks {
		a.cooling = true
		time.AfterFunc(coolTime, a.cool)
	}
}

// cool returns the memory of all but warmBlocks free blocks to the system.
func (a *arena) cool() {
	a.mu.Lock()
	unused := slices.Clone(a.warm[:max(len(a.warm)-warmBlocks, 0)])
	a.warm = slices.Delete(a.warm, 0, len(unused))
	a.cooling = false
	a.mu.Unlock()
	for _, block := range unused {
		forgetMemory(block[:]) // slow, so without the lock
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cold = append(a.cold, unused...)
}
