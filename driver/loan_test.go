package driver

import (
	"testing"
	"testing/synctest"
)

func TestLoans(t *testing.T) {
	const mib = 1 << 20
	budget := NewBudget(16 * mib)
	never := func() { t.Error("called back") }
	first := budget.borrower(never)
	if !first.take(12*mib) || first.take(blockSize) {
		t.Error("the first borrower gets three quarters of the budget, and no more")
	}
	second := budget.borrower(never)
	if second.take(blockSize) {
		t.Error("the second gets what is left for uploads")
	}
	first.giveBack(8 * mib)
	if first.take(3*mib) || !second.take(6*mib) || second.take(blockSize) {
		t.Error("two borrowers do not share")
	}
	first.giveBack(4 * mib)
	second.giveBack(6 * mib)
	first.leave()
	second.leave()
	if budget.free != budget.limit || len(budget.borrowers) != 0 {
		t.Errorf("%d of %d are free at the end", budget.free, budget.limit)
	}
}

// TestLoansCalledBack lets an upload wait for memory that was lent.
func TestLoansCalledBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		budget := NewBudget(16 * mib)
		var lender *borrower
		recalled := make(chan struct{})
		lender = budget.borrower(func() {
			lender.giveBack(12 * mib)
			close(recalled)
		})
		if !lender.take(12 * mib) {
			t.Fatal("nothing was lent")
		}
		small := budget.buffer(2 * mib)
		if err := fillBuffer(t.Context(), small, make([]byte, 2*mib)); err != nil {
			t.Fatal(err)
		}
		select {
		case <-recalled:
			t.Error("called back although there was enough")
		default:
		}
		large := budget.buffer(8 * mib)
		if err := fillBuffer(t.Context(), large, make([]byte, 8*mib)); err != nil {
			t.Fatal(err)
		}
		<-recalled
		if lender.take(blockSize) {
			t.Error("lent again to who was called back")
		}
		small.release()
		large.release()
		if budget.free != budget.limit {
			t.Errorf("%d of %d are free at the end", budget.free, budget.limit)
		}
	})
}
