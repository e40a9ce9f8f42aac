package driver

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
)

// fillBuffer puts so many bytes into a buffer.
func fillBuffer(ctx context.Context, b *buffer, content []byte) error {
	for len(content) > 0 {
		room, err := b.room(ctx)
		if err != nil {
			return err
		}
		if len(room) == 0 {
			return errors.New("buffer is full")
		}
		n := copy(room, content)
		b.filled(n)
		content = content[n:]
	}
	return nil
}

func TestBufferBody(t *testing.T) {
	budget := NewBudget(8 << 20)
	for _, size := range []int{0, 1, blockSize - 1, blockSize, blockSize + 1, 10*blockSize + 7} {
		content := make([]byte, size)
		for i := range content {
			content[i] = byte(i * i >> 3)
		}
		b := budget.buffer(max(int64(size), 1))
		if err := fillBuffer(t.Context(), b, content); err != nil {
			t.Fatal(err)
		}
		for range 2 { // a request may be sent again
			if err := iotest.TestReader(b.body(), content); err != nil {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
		if b.full() != (size > 0) {
			t.Errorf("%d bytes: full is %v", size, b.full())
		}
		if held := budget.limit - budget.free; held > 2*int64(size)+blockSize {
			t.Errorf("%d bytes hold %d", size, held)
		}
		b.release()
		if budget.free != budget.limit || len(budget.parts) != 0 {
			t.Errorf("%d bytes: %d of %d are free after release", size, budget.free, budget.limit)
		}
	}
}

func TestBudgetSmallerThanAPart(t *testing.T) {
	b := NewBudget(1).buffer(64 << 20)
	if err := fillBuffer(t.Context(), b, make([]byte, minPartSize)); err != nil || !b.full() {
		t.Errorf("full is %v, %v", b.full(), err)
	}
}

// TestBudgetWaits checks that a buffer waits for memory, in its turn, and no longer than its context.
func TestBudgetWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := NewBudget(minPartSize)
		first := budget.buffer(minPartSize)
		if err := fillBuffer(t.Context(), first, make([]byte, minPartSize)); err != nil {
			t.Fatal(err)
		}
		cause := errors.New("ended by the test")
		ctx, cancel := context.WithCancelCause(t.Context())
		impatient := make(chan error)
		go func() { impatient <- fillBuffer(ctx, budget.buffer(minPartSize), []byte("x")) }()
		synctest.Wait()
		order := make(chan int, 3)
		for i := range 3 {
			go func() {
				b := budget.buffer(minPartSize)
				if err := fillBuffer(t.Context(), b, make([]byte, minPartSize)); err != nil {
					t.Error(err)
				}
				order <- i
				b.release()
			}()
			synctest.Wait()
		}
		cancel(cause)
		if err := <-impatient; !errors.Is(err, cause) {
			t.Errorf("error is %v, want %v", err, cause)
		}
		first.release()
		for want := range 3 {
			if got := <-order; got != want {
				t.Errorf("the one that came as number %d had memory as number %d", got, want)
			}
		}
		synctest.Wait()
		if budget.used() != 0 {
			t.Errorf("%d bytes are held", budget.used())
		}
	})
}

// TestBudgetNeverDeadlocks lets many uploads of different part sizes fill at the same time, with little memory. synctest fails
// where all of them wait.
func TestBudgetNeverDeadlocks(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			budget := NewBudget(minPartSize + random.Int64N(20<<20))
			var uploads sync.WaitGroup
			for range 1 + random.IntN(60) {
				size := []int64{minPartSize, 8 << 20, 16 << 20, 64 << 20}[random.IntN(4)]
				parts := 1 + random.IntN(4)
				chunk := blockSize/2 + random.IntN(blockSize)
				uploads.Go(func() {
					for range parts {
						b := budget.buffer(size)
						for !b.full() {
							room, err := b.room(t.Context())
							if err != nil {
								t.Error(err)
								return
							}
							b.filled(min(chunk, len(room)))
							if budget.used() > budget.limit {
								t.Error("more memory is held than there is")
							}
						}
						b.settle()
						b.release()
					}
				})
			}
			uploads.Wait()
			if budget.used() != 0 || len(budget.waiting) != 0 {
				t.Errorf("%d bytes are held, %d buffers wait", budget.used(), len(budget.waiting))
			}
		})
	}
}

// TestBudgetNewcomersStandBack checks that buffers which hold nothing do not overtake one that waits for more: otherwise small
// files, one after another, could keep a large part from ever filling.
func TestBudgetNewcomersStandBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := NewBudget(80 * blockSize)
		hold := func(blocks int64) *buffer {
			b := budget.buffer(40 * blockSize)
			if err := fillBuffer(t.Context(), b, make([]byte, blocks*blockSize)); err != nil {
				t.Fatal(err)
			}
			return b
		}
		onTheWay := []*buffer{hold(16), hold(16), hold(8)}
		for _, b := range onTheWay {
			b.settle()
		}
		large := hold(32) // of 40, and only 8 are left; with 4 taken it must wait
		other := hold(4)
		other.settle()
		served := make(chan string, 2)
		wait := func(label string, b *buffer, bytes int) {
			go func() {
				if err := fillBuffer(t.Context(), b, make([]byte, bytes)); err != nil {
					t.Error(err)
				}
				served <- label
				b.release()
			}()
			synctest.Wait()
		}
		wait("large", large, 8*blockSize)
		wait("newcomer", budget.buffer(40*blockSize), 1)
		if len(served) != 0 {
			t.Errorf("%s did not wait", <-served)
		}
		onTheWay[2].release()
		<-served
		<-served
	})
}

// TestBudgetGivenUpWhenGranted lets buffers give up in the moment in which they get memory: the budget gets all of it back.
func TestBudgetGivenUpWhenGranted(t *testing.T) {
	budget := NewBudget(minPartSize)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // select picks one of two that are ready
		b := budget.buffer(minPartSize)
		if err := budget.acquire(ended, b, blockSize); err == nil {
			b.release()
		}
		if budget.used() != 0 || len(budget.parts) != 0 {
			t.Fatalf("%d bytes are held by %d buffers, want none", budget.used(), len(budget.parts))
		}
	}
}

// used is what is held, for tests.
func (b *Budget) used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit - b.free
}
