package limits

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

// Turns go round those who wait, and not round their requests.
func TestQueueOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue[string](1)
		leave, err := q.Enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, key := range strings.Fields("a a a a b a c b") {
			go func() {
				leave, err := q.Enter(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, key) // by the one that has entered
				leave()
			}()
			synctest.Wait()
		}
		leave()
		synctest.Wait()
		if got, want := strings.Join(order, " "), "a b c a b a a a"; got != want {
			t.Errorf("turns are %s, want %s", got, want)
		}
		if q.free != 1 || len(q.waiting) != 0 {
			t.Errorf("%d slots are free, and %v wait", q.free, q.waiting)
		}
	})
}

// Who gives up leaves the queue at once, and takes no turn from others.
func TestQueueGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue[string](1)
		leave, err := q.Enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		ctx, hangUp := context.WithCancel(t.Context())
		for range 200 {
			go func() {
				if _, err := q.Enter(ctx, "a"); !errors.Is(err, context.Canceled) {
					t.Errorf("after the client has hung up: %v", err)
				}
			}()
		}
		turns := 0
		go func() {
			leave, err := q.Enter(t.Context(), "b")
			if err != nil {
				t.Error(err)
				return
			}
			turns++
			leave()
		}()
		synctest.Wait()
		hangUp()
		synctest.Wait()
		if len(q.waiting) != 1 || len(q.turns) != 1 {
			t.Errorf("%d clients wait, want one", len(q.waiting))
		}
		leave()
		synctest.Wait()
		if turns != 1 || q.free != 1 {
			t.Errorf("%d turns of who stayed, %d free slots", turns, q.free)
		}
	})
}
