package limits

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if _, within := In(0).Within(time.Hour); within {
			t.Error("the zero deadline is within an hour")
		}
		ctx, cancel := In(0).Context(t.Context())
		if _, limited := ctx.Deadline(); limited {
			t.Error("the zero deadline limits a context")
		}
		cancel()
		d := In(time.Minute)
		if _, within := d.Within(time.Second); within {
			t.Error("a minute comes within a second")
		}
		if left, within := d.Within(time.Hour); left != time.Minute || !within {
			t.Errorf("got %v left, %v", left, within)
		}
		ctx, cancel = d.Context(t.Context())
		defer cancel()
		<-ctx.Done()
		if left, within := d.Within(0); left != 0 || within {
			t.Errorf("got %v left, %v", left, within)
		}
		time.Sleep(time.Second)
		if left, within := d.Within(0); left != -time.Second || !within {
			t.Errorf("got %v left, %v", left, within)
		}
	})
}
