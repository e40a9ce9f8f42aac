package membudget

import (
	"testing"
	"testing/synctest"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

func TestReservations(t *testing.T) {
	const mib = 1 << 20
	budget := New(16 * mib)
	never := func() { t.Error("unexpected revocation") }
	first := budget.Reserve(never)
	if !first.TryTake(12*mib) || first.TryTake(BlockSize) {
		t.Error("the first reservation does not get exactly three quarters of the budget")
	}
	second := budget.Reserve(never)
	if second.TryTake(BlockSize) {
		t.Error("the second reservation gets memory that is left for uploads")
	}
	first.Return(8 * mib)
	if first.TryTake(3*mib) || !second.TryTake(6*mib) || second.TryTake(BlockSize) {
		t.Error("two reservations do not share the memory equally")
	}
	first.Return(4 * mib)
	second.Return(6 * mib)
	first.Close()
	second.Close()
	if budget.all.free != budget.limit || len(budget.revocable) != 0 {
		t.Errorf("%d of %d are free at the end", budget.all.free, budget.limit)
	}
}

// TestRevocation checks that a reservation is revoked when an upload waits for its memory.
func TestRevocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		budget := New(16 * mib)
		var reservation *Revocable
		revoked := make(chan struct{})
		reservation = budget.Reserve(func() {
			reservation.Return(12 * mib)
			close(revoked)
		})
		if !reservation.TryTake(12 * mib) {
			t.Fatal("the reservation got no memory")
		}
		budget.Reserve(func() { t.Error("an empty reservation was revoked") })
		small := budget.Buffer(2 * mib)
		must.OK(t, fillBuffer(t.Context(), small, make([]byte, 2*mib)))
		select {
		case <-revoked:
			t.Error("revoked although enough memory was free")
		default:
		}
		large := budget.Buffer(8 * mib)
		must.OK(t, fillBuffer(t.Context(), large, make([]byte, 8*mib)))
		<-revoked
		if reservation.TryTake(BlockSize) {
			t.Error("a revoked reservation got memory")
		}
		small.Release()
		large.Release()
		if budget.all.free != budget.limit {
			t.Errorf("%d of %d are free at the end", budget.all.free, budget.limit)
		}
	})
}
