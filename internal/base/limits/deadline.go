package limits

import (
	"context"
	"time"
)

// A Deadline is a point in time at which something has to end. The zero value means no deadline.
type Deadline struct{ at time.Time }

// In returns the deadline d from now, or the zero Deadline if d is 0.
func In(d time.Duration) Deadline {
	if d == 0 {
		return Deadline{}
	}
	return Deadline{time.Now().Add(d)}
}

// Within reports whether less than d is left until the deadline, and how much is left. After the deadline, left is
// negative.
func (l Deadline) Within(d time.Duration) (left time.Duration, within bool) {
	left = time.Until(l.at)
	return left, !l.at.IsZero() && left < d
}

// Context returns a copy of ctx with the deadline.
func (l Deadline) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.at.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, l.at)
}
