package membudget

import (
	"fmt"
	"testing"
	"testing/synctest"
)

// attack lets 200 uploads of a member send just less than a part. Those that get the memory send no more; the others
// wait for it.
func attack(t *testing.T, budget *Budget) {
	for range 200 {
		go func() { _ = fillBuffer(t.Context(), budget.Buffer(MinLimit), make([]byte, MinLimit-1)) }()
	}
	synctest.Wait()
}

// upload lets an upload of so many bytes come and end. The result tells whether it did without waiting for others.
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

// TestAttack has one member hold all that it gets, without an end. Uploads of others need not wait, whether they are
// of its own group or of another one.
func TestAttack(t *testing.T) {
	const kib, mib = 1 << 10, 1 << 20
	for _, tc := range []struct {
		memory int64
		bytes  int // of an upload that need not wait
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
					t.Error("the attacker does not have all that it may")
				}
				if !attacker.Scarce() {
					t.Error("the attacker's uploads do not wait for each other")
				}
			})
		})
	}
}

// TestNoBufferPassesAPool asks for buffers of all sizes. None takes memory that its member or group may not hold.
func TestNoBufferPassesAPool(t *testing.T) {
	const mib = 1 << 20
	for _, memory := range []int64{MinLimit, 8 * mib, 9 * mib, 64 * mib, 256*mib + 12345} {
		for _, size := range []int64{1, MinLimit, 40 * mib, memory, 1 << 40} {
			budget := New(memory)
			member := budget.For("acme", "mallory")
			buffer := member.Buffer(size)
			if buffer.size > member.Share() || member.Share() < MinLimit || memory >= 9*mib &&
				member.Share() > memory*9/16 {
				t.Errorf("of %d bytes, %d for a member: a buffer of %d", memory, member.Share(), buffer.size)
			}
			buffer.hold(buffer.missing())
			for _, p := range member.pools {
				if p.held() != buffer.held || p.free < 0 {
					t.Errorf(
						"of %d bytes: a pool of %d bytes counts %d of a buffer of %d", memory, p.limit, p.held(),
						buffer.held)
				}
			}
		}
	}
}

// TestScarce tells only those that memory is scarce whose uploads hold what others wait for.
func TestScarce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := New(256 << 20)
		if budget.For("acme", "alice").Scarce() {
			t.Error("memory is scarce before anyone has asked for any")
		}
		attack(t, budget.For("acme", "mallory"))
		if budget.For("acme", "alice").Scarce() || budget.For("other", "mallory").Scarce() {
			t.Error("memory is scarce for others than the member that has its share")
		}
		attack(t, budget.For("acme", "alice"))
		attack(t, budget.For("acme", "bob"))
		if !budget.For("acme", "carol").Scarce() || budget.For("other", "mallory").Scarce() {
			t.Error("memory is not scarce for the group that has its share, and for no other one")
		}
		attack(t, budget.For("other", "mallory"))
		if !budget.For("third", "alice").Scarce() {
			t.Error("memory is not scarce where there is none")
		}
	})
}

// TestManyAttackers has members of several groups hold all that they get. A small file of one more need not wait.
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

// TestShares has one member take what it can of a share.
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
		{"acme", "alice", 2},   // of the 3 that are left of 12
		{"other", "alice", 2},  // of the 5 that are left of 16
	} {
		if got := takeAll(tc.group, tc.member); got != tc.want {
			t.Errorf("%s of %s takes %d MiB, want %d", tc.member, tc.group, got, tc.want)
		}
	}
}

// TestReservationsOfOneMember has one member reserve what it can. That does not make the reservations of others
// smaller than one chunk.
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
			t.Fatalf("the other one gets %d MiB", taken)
		}
	}
}
