package membudget

import (
	"runtime"
	"sync"
	"time"
)

const (
	// chunkBlocks is how many blocks the system is asked for at a time.
	chunkBlocks = 16

	// warmBlocks is how many blocks that nobody uses keep their memory in any case: those of a part.
	warmBlocks = minLimit / BlockSize

	// coolTime is how long the others keep theirs at least. The parts of an upload tend to end together and others to begin; to take
	// memory from the system anew costs a fifth of what an upload takes of the processor.
	coolTime = 10 * time.Second
)

// An arena is where blocks come from. They lie outside the heap, so that they can be given back to the system soon after nobody needs
// them; in it they would also let as much garbage pile up before the collector begins.
type arena struct {
	mu      sync.Mutex
	warm    []*Block // that nobody uses
	cold    []*Block // that nobody uses, and for which the system has no memory
	used    int
	most    int  // used at once in the present coolTime
	cooling bool // cool will be called when it ends
	chunks  *chunks
}

// chunks are what the system has given.
type chunks struct{ mapped [][]byte }

func newArena() *arena {
	b := &arena{chunks: &chunks{}}
	runtime.AddCleanup(b, (*chunks).unmap, b.chunks)
	return b
}

func (c *chunks) unmap() {
	for _, chunk := range c.mapped {
		unmapMemory(chunk)
	}
}

// get returns a block with whatever bytes.
func (b *arena) get() *Block {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used++
	b.most = max(b.most, b.used)
	if block := pop(&b.warm); block != nil {
		return block
	}
	if len(b.cold) == 0 {
		b.extend()
	}
	return pop(&b.cold)
}

func pop(unused *[]*Block) *Block {
	last := len(*unused) - 1
	if last < 0 {
		return nil
	}
	block := (*unused)[last]
	*unused = (*unused)[:last]
	return block
}

// extend asks the system for more blocks. If it has none, the heap may.
func (b *arena) extend() {
	chunk, err := mapMemory(chunkBlocks * BlockSize)
	if err != nil {
		b.cold = append(b.cold, new(Block))
		return
	}
	b.chunks.mapped = append(b.chunks.mapped, chunk)
	for ; len(chunk) > 0; chunk = chunk[BlockSize:] {
		b.cold = append(b.cold, (*Block)(chunk))
	}
}

// put takes a block back.
func (b *arena) put(block *Block) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used--
	b.warm = append(b.warm, block)
	b.coolLater()
}

func (b *arena) coolLater() {
	if !b.cooling && len(b.warm) > warmBlocks {
		b.cooling = true
		time.AfterFunc(coolTime, b.cool)
	}
}

// cool gives back the memory of blocks that were not needed in the coolTime that ends.
func (b *arena) cool() {
	for b.coolOne() {
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.most, b.cooling = b.used, false
	b.coolLater()
}

func (b *arena) coolOne() bool {
	b.mu.Lock()
	if len(b.warm) <= warmBlocks || b.used+len(b.warm) <= b.most {
		b.mu.Unlock()
		return false
	}
	block := pop(&b.warm)
	b.mu.Unlock()
	forgetMemory(block[:]) // which takes the system a while
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cold = append(b.cold, block)
	return true
}
