package fairness

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// mayBegin is the rule by which a waiting request of a user may begin, as the package comment has it.
func (r *Requests) mayBegin(s *share) bool {
	now := time.Now()
	share := r.shareOf(s)
	switch {
	case r.active < 2 || r.stats.Far(now):
		return true
	case r.probing > 0:
		return r.underWay == 0
	case r.light(s):
		return true
	case share >= 1:
		return s.underWay < int(share)
	}
	return s.underWay == 0 && !now.Before(s.rest) &&
		s.tenant.underWay < max(1, int(max(r.limit, firstLimit))/len(r.tenants))
}

// waits returns who is in a line, in order.
func (l *line[T]) waits() (all []T) {
	for _, p := range l.places {
		if p != nil {
			all = append(all, p.who)
		}
	}
	return all
}

// looked returns who begins next by a look at all users who wait, in the order of the queues.
func (r *Requests) looked() *share {
	for _, t := range r.queue.waits() {
		if users := t.queue.waits(); slices.ContainsFunc(users, r.mayBegin) {
			return users[slices.IndexFunc(users, r.mayBegin)]
		}
	}
	return nil
}

// TestNext lets requests of random users come, begin, end and give up under random limits. The request that begins is
// the first that may.
func TestNext(t *testing.T) {
	begun := 0
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			r := newRequests(work)
			tenants, users := 1+random.IntN(6), 1+random.IntN(6)
			var underWay []*share
			r.mu.Lock()
			defer r.mu.Unlock()
			for range 300 {
				now := time.Now()
				switch random.IntN(9) {
				case 0, 1, 2:
					s := r.share(r.For(fmt.Sprint(random.IntN(tenants)), fmt.Sprint(random.IntN(users))))
					for range 1 + random.IntN(4) {
						if r.enter(s, now) == nil {
							underWay = append(underWay, s)
						}
					}
				case 3, 4:
					if len(underWay) > 0 {
						i := random.IntN(len(underWay))
						s := underWay[i]
						underWay = slices.Delete(underWay, i, i+1)
						r.add(s, -1, now)
						if random.IntN(2) == 0 {
							s.rest = now.Add(time.Duration(random.IntN(3)) * work)
							s.note(now)
							time.AfterFunc(s.rest.Sub(now), func() {
								r.mu.Lock()
								defer r.mu.Unlock()
								s.note(time.Now())
							})
						}
						r.noteIdle(s, now)
					}
				case 5:
					r.limit = minLimit + random.Float64()*float64(random.IntN(100))
				case 6:
					r.probing = max(0, random.IntN(6)-4)
				case 7:
					r.mu.Unlock()
					time.Sleep(time.Duration(random.IntN(3)) * work)
					synctest.Wait()
					if random.IntN(20) == 0 {
						time.Sleep(activeFor)
						synctest.Wait()
					}
					r.mu.Lock()
					r.expire(time.Now())
				case 8:
					for _, tenant := range r.queue.waits() {
						s := tenant.queue.waits()[0]
						begun := s.waiting[random.IntN(len(s.waiting))]
						r.mu.Unlock()
						r.leave(s, begun)
						r.mu.Lock()
						break
					}
				}
				for {
					want := r.looked()
					got, ok := r.next(time.Now())
					if got != want || ok != (want != nil) {
						t.Fatalf("seed %d: next is %+v, want %+v", seed, got, want)
					}
					if !ok {
						break
					}
					r.begin(got, time.Now())
					underWay = append(underWay, got)
					begun++
				}
			}
		})
	}
	if begun < 1000 {
		t.Errorf("only %d requests have waited", begun)
	}
}

// BenchmarkRelease ends a request while 10,000 users wait, and lets the next one begin.
func BenchmarkRelease(b *testing.B) {
	const users = 10_000
	for _, tenants := range []int{1, 100, users / 2} {
		b.Run(fmt.Sprintf("%d-tenants", tenants), func(b *testing.B) {
			r := newRequests(work)
			r.limit, r.probed = 10, time.Now()
			var all []*User
			for i := range users {
				all = append(all, r.For(fmt.Sprint(i%tenants), fmt.Sprint(i)))
				s := r.share(all[i])
				r.enter(s, time.Now())
			}
			for n := 0; b.Loop(); n++ {
				s, now := r.share(all[n%users]), time.Now()
				if s.underWay == 0 {
					b.Fatalf("user %d has no turn after %d", n%users, n)
				}
				r.release(s, 0, now)
				r.enter(r.share(all[n%users]), now)
			}
		})
	}
}
