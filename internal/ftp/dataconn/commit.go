package dataconn

import (
	"context"
	"time"
)

// The wait before a commit is a share of the time that the upload took. The longer
// the upload, the likelier its client was killed in its middle. A share of the round
// trip of the control connection would say nothing of a busy machine, whose kernel
// answers without the process. To send the request at once and hold its last bytes
// back would save little, and a request that ends early looks like an S3 that fails.
const (
	commitShare      = 8  // the wait is so small a part of the upload's time,
	shortCommitShare = 50 // and no less than such a part of the commit delay
)

// commitWait is how long an upload waits, counted from its last byte, for news
// that its client was killed. A killed client ends no TLS connection by
// close_notify (RFC 8446 6.1), so there is nothing to wait for. One that has sent
// nothing at all may have been killed before it could.
func (c *Conn) commitWait(most time.Duration) time.Duration {
	switch took := c.ended.Sub(c.opened); {
	case c.closedUnderTLS():
		return 0
	case c.transfer.bytes.Load() == 0:
		return most
	default:
		return min(max(took/commitShare, most/shortCommitShare), most)
	}
}

// A Control is the control connection of an upload's client.
type Control interface {
	// PeerClosed is closed when the client's side has ended.
	PeerClosed() <-chan struct{}
	// HungUp asks the kernel for the same.
	HungUp() bool
}

// AwaitCommit waits before an upload becomes visible, and returns an error where
// it must not. A killed client looks like a finished one until its kernel has
// closed the control connection too. The wait is delay at most.
func (t *Transfer) AwaitCommit(ctx context.Context, control Control, delay time.Duration) error {
	conn := t.conn
	if conn == nil {
		return ErrLost // there was never any
	}
	if err := awaitEnd(ctx, control, conn.ended.Add(conn.commitWait(delay))); err != nil {
		return err
	}
	if control.HungUp() { // asked last: the kernel knows sooner than the goroutine that reads
		return ErrPeerClosed
	}
	return t.Err()
}

// awaitEnd waits for the end of the control connection, and returns nil when it
// has not come in time.
func awaitEnd(ctx context.Context, control Control, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-control.PeerClosed():
		return ErrPeerClosed
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
