package limits

import (
	"context"
	"time"
)

// A Deadline is the end of a time that is limited. The zero value limits nothing.
type Deadline struct{ at time.Time }

// In is the deadline after a time from now. A time of 0 is no limit.
func In(d time.Duration) Deadline {
	if d == 0 {
		return Deadline{}
	}
	return Deadline{time.Now().Add(d)}
}

// Within returns whether the deadline comes within d from now, and how much time is left then. It is negative after
// the deadline.
func (l Deadline) Within(d time.Duration) (left time.Duration, within bool) {
	left = time.Until(l.at)
	return left, !l.at.IsZero() && left < d
}

// Context ends a context with the deadline.
func (l Deadline) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.at.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, l.at)
}
