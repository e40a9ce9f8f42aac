package membudget

import (
	"fmt"
	"testing"
	"testing/synctest"
)

// attack starts 200 uploads of a member that each send one byte less than a part and then stop, so that they hold all
// memory that the member can get.
func attack(t *testing.T, budget *Budget) {
	for range 200 {
		go func() { _ = fillBuffer(t.Context(), budget.Buffer(MinLimit), make([]byte, MinLimit-1)) }()
	}
	synctest.Wait()
}

// upload starts an upload and reports whether it ends without waiting for others.
func upload(t *testing.T, budget *Budget, bytes int) bool {
	ended := make(chan struct{})
	go func() {
		b := budget.Buffer(MinLimit)
		if fillBuffer(t.Context(), b, make([]byte, bytes)) == nil {
			close(ended)
		}
		b.Release()
	}()
	synctest.Wait()
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

// TestAttack checks that uploads of other members and groups do not wait while one member holds all memory that it can
// get.
func TestAttack(t *testing.T) {
	const kib, mib = 1 << 10, 1 << 20
	for _, tc := range []struct {
		memory int64
		bytes  int // size of an upload of another group that must not wait
	}{
		{MinLimit, BlockSize}, {16 * mib, BlockSize}, {64 * mib, 300 * kib}, {256 * mib, MinLimit},
	} {
		t.Run(fmt.Sprint(tc.memory/mib, "MiB"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				budget := New(tc.memory)
				attacker := budget.For("acme", "mallory")
				attack(t, attacker)
				for range 10 {
					if !upload(t, budget.For("other", "alice"), tc.bytes) {
						t.Fatal("an upload of another group waits")
					}
					if !upload(t, budget.For("acme", "alice"), 1000) {
						t.Fatal("a small upload of another member of the group waits")
					}
				}
				if upload(t, attacker, MinLimit) {
					t.Error("the attacker does not hold its full share")
				}
				if !attacker.IsContended() {
					t.Error("the memory of the attacker is not contended")
				}
			})
		})
	}
}

// TestBufferFitsPools checks that buffers of all requested sizes fit into the pools of their member and group.
func TestBufferFitsPools(t *testing.T) {
	const mib = 1 << 20
	for _, memory := range []int64{MinLimit, 8 * mib, 9 * mib, 64 * mib, 256*mib + 12345} {
		for _, size := range []int64{1, MinLimit, 40 * mib, memory, 1 << 40} {
			budget := New(memory)
			member := budget.For("acme", "mallory")
			buffer := member.Buffer(size)
			if buffer.size > member.Share() || member.Share() < MinLimit || memory >= 9*mib &&
				member.Share() > memory*9/16 {
				t.Errorf("memory %d, share %d: the buffer has %d bytes", memory, member.Share(), buffer.size)
			}
			buffer.hold(buffer.missing())
			for _, p := range member.pools {
				if p.held() != buffer.held || p.free < 0 {
					t.Errorf(
						"memory %d, pool of %d bytes: counts %d bytes, the buffer has %d", memory, p.limit, p.held(),
						buffer.held)
				}
			}
		}
	}
}

// TestIsContended checks that memory is contended only for the members and groups whose share is exhausted.
func TestIsContended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := New(256 << 20)
		if budget.For("acme", "alice").IsContended() {
			t.Error("contended although nobody uses memory")
		}
		attack(t, budget.For("acme", "mallory"))
		if budget.For("acme", "alice").IsContended() || budget.For("other", "mallory").IsContended() {
			t.Error("contended for others than the member that has exhausted its share")
		}
		attack(t, budget.For("acme", "alice"))
		attack(t, budget.For("acme", "bob"))
		if !budget.For("acme", "carol").IsContended() || budget.For("other", "mallory").IsContended() {
			t.Error("not contended for the group that has exhausted its share, or contended for another one")
		}
		attack(t, budget.For("other", "mallory"))
		if !budget.For("third", "alice").IsContended() {
			t.Error("not contended although all memory is in use")
		}
	})
}

// TestManyAttackers checks that a small file need not wait while members of several other groups hold all memory that
// they can get.
func TestManyAttackers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := New(256 << 20)
		for _, group := range []string{"a", "b", "c"} {
			attack(t, budget.For(group, "mallory"))
		}
		if !upload(t, budget.For("d", "alice"), 1000) {
			t.Error("a small file of a fourth group waits")
		}
	})
}

// TestShares checks how much of a share a member can take.
func TestShares(t *testing.T) {
	share := New(64 << 20).Listings // 16 MiB
	takeAll := func(group, member string) (mib int64) {
		for s := share.of(consumer{group, member}); s.TryTake(1 << 20); mib++ {
		}
		return mib
	}
	for _, tc := range []struct {
		group, member string
		want          int64
	}{
		{"acme", "mallory", 9}, // three quarters of three quarters of 16
		{"acme", "alice", 2},   // three quarters of the 3 that are left of 12
		{"other", "alice", 2},  // three quarters of three quarters of the 5 that are left of 16
	} {
		if got := takeAll(tc.group, tc.member); got != tc.want {
			t.Errorf("%s of %s takes %d MiB, want %d", tc.member, tc.group, got, tc.want)
		}
	}
}

// TestReservationsOfOneMember checks that others can still reserve memory for a chunk after one member has reserved as
// much as it can.
func TestReservationsOfOneMember(t *testing.T) {
	const mib = 1 << 20
	budget := New(256 * mib)
	attacker := budget.For("acme", "mallory")
	for range 20 {
		r := attacker.Reserve(func() {})
		for r.TryTake(mib) {
		}
	}
	victim := budget.For("other", "alice").Reserve(func() {})
	for taken := range 8 {
		if !victim.TryTake(mib) {
			t.Fatalf("the other member gets %d MiB", taken)
		}
	}
}
