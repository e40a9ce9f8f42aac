package membudget

import (
	"context"
	"errors"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// fillBuffer puts content into a buffer.
func fillBuffer(ctx context.Context, b *Buffer, content []byte) error {
	for len(content) > 0 {
		room, err := b.Room(ctx)
		if err != nil {
			return err
		}
		if len(room) == 0 {
			return errors.New("buffer is full")
		}
		n := copy(room, content)
		b.Filled(n)
		content = content[n:]
	}
	return nil
}

func TestBufferBody(t *testing.T) {
	budget := New(8 << 20)
	for _, size := range []int{0, 1, BlockSize - 1, BlockSize, BlockSize + 1, 10*BlockSize + 7} {
		content := make([]byte, size)
		for i := range content {
			content[i] = byte(i * i >> 3)
		}
		b := budget.Buffer(max(int64(size), 1))
		must.OK(t, fillBuffer(t.Context(), b, content))
		for range 2 { // a request may be repeated
			if err := iotest.TestReader(b.Body(), content); err != nil {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
		if b.Full() != (size > 0) {
			t.Errorf("%d bytes: full is %v", size, b.Full())
		}
		if held := budget.limit - budget.all.free; held > 2*int64(size)+BlockSize {
			t.Errorf("%d bytes hold %d", size, held)
		}
		b.Release()
		if budget.all.free != budget.limit || len(budget.all.levels) != 0 {
			t.Errorf("%d bytes: %d of %d are free after release", size, budget.all.free, budget.limit)
		}
	}
}

func TestBudgetSmallerThanAPart(t *testing.T) {
	b := New(MinLimit).Buffer(64 << 20)
	if err := fillBuffer(t.Context(), b, make([]byte, MinLimit)); err != nil || !b.Full() {
		t.Errorf("full is %v, %v", b.Full(), err)
	}
}

// TestBudgetWaits checks that buffers get memory in the order of their arrival, and that a wait ends with its context.
func TestBudgetWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := New(MinLimit)
		first := budget.Buffer(MinLimit)
		must.OK(t, fillBuffer(t.Context(), first, make([]byte, MinLimit)))
		cause := errors.New("ended by the test")
		ctx, cancel := context.WithCancelCause(t.Context())
		impatient := make(chan error)
		go func() { impatient <- fillBuffer(ctx, budget.Buffer(MinLimit), []byte("x")) }()
		synctest.Wait()
		order := make(chan int, 3)
		for i := range 3 {
			go func() {
				b := budget.Buffer(MinLimit)
				if err := fillBuffer(t.Context(), b, make([]byte, MinLimit)); err != nil {
					t.Error(err)
				}
				order <- i
				b.Release()
			}()
			synctest.Wait()
		}
		cancel(cause)
		if err := <-impatient; !errors.Is(err, cause) {
			t.Errorf("got error %v, want %v", err, cause)
		}
		first.Release()
		for want := range 3 {
			if got := <-order; got != want {
				t.Errorf("buffer %d got memory at position %d", got, want)
			}
		}
		synctest.Wait()
		if budget.Used() != 0 {
			t.Errorf("%d bytes are held", budget.Used())
		}
	})
}

// TestBudgetServesInOrder checks that empty buffers do not overtake one that waits for more memory. Otherwise a series
// of small files could starve a large part.
func TestBudgetServesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := New(80 * BlockSize)
		hold := func(blocks int64) *Buffer {
			b := budget.Buffer(40 * BlockSize)
			must.OK(t, fillBuffer(t.Context(), b, make([]byte, blocks*BlockSize)))
			return b
		}
		inFlight := []*Buffer{hold(16), hold(16), hold(8)}
		for _, b := range inFlight {
			b.Seal()
		}
		large := hold(32) // needs the remaining 8 blocks, of which the next buffer takes 4
		other := hold(4)
		other.Seal()
		served := make(chan string, 2)
		wait := func(label string, b *Buffer, bytes int) {
			go func() {
				if err := fillBuffer(t.Context(), b, make([]byte, bytes)); err != nil {
					t.Error(err)
				}
				served <- label
				b.Release()
			}()
			synctest.Wait()
		}
		wait("large", large, 8*BlockSize)
		wait("newcomer", budget.Buffer(40*BlockSize), 1)
		if len(served) != 0 {
			t.Errorf("%s did not wait", <-served)
		}
		inFlight[2].Release()
		<-served
		<-served
	})
}

// TestCanceledWhenGranted checks that no memory is lost if the context of a buffer ends at the moment when it gets
// memory.
func TestCanceledWhenGranted(t *testing.T) {
	budget := New(MinLimit)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // select chooses at random if several cases are ready
		b := budget.Buffer(MinLimit)
		if err := budget.acquire(ended, b, BlockSize); err == nil {
			b.Release()
		}
		if budget.Used() != 0 || len(budget.all.levels) != 0 {
			t.Fatalf("%d bytes are held at %d levels, want none", budget.Used(), len(budget.all.levels))
		}
	}
}

// TestWaits checks the counts of waits. A buffer that gets its memory immediately does not count.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := New(MinLimit)
		first, second := budget.Buffer(MinLimit), budget.Buffer(MinLimit)
		must.OK(t, fillBuffer(t.Context(), first, make([]byte, MinLimit)))
		if got := budget.Waits(); got != (Waits{}) {
			t.Errorf("%+v before a wait", got)
		}
		done := make(chan error)
		go func() { done <- fillBuffer(t.Context(), second, make([]byte, MinLimit)) }()
		synctest.Wait()
		if got := budget.Waits(); got.Waiting != 1 || got.Total != 1 || got.Time != 0 {
			t.Errorf("%+v during a wait", got)
		}
		time.Sleep(time.Minute)
		first.Release()
		must.OK(t, <-done)
		second.Release()
		if got := budget.Waits(); got != (Waits{Total: 1, Time: time.Minute}) {
			t.Errorf("%+v after a wait", got)
		}
	})
}
