package dataconn

import (
	"context"
	"time"
)

// The wait before a commit is a share of the duration of the upload, because a long upload is more likely to be
// interrupted by a killed client. The round-trip time of the control connection would not help, because the kernel
// of a busy machine responds even if the process does not run. Sending the request early and holding back its last
// bytes would save little, and an aborted request looks like a failure of S3.
const (
	commitShare      = 8  // the wait is the duration of the upload divided by commitShare,
	shortCommitShare = 50 // but at least the commit delay divided by shortCommitShare
)

// commitWait returns how long after its last byte an upload waits for a sign that its client was killed. A killed
// client does not end TLS with close_notify (RFC 8446, 6.1), so an upload that ends with it does not wait. An empty
// upload waits for the maximum, because its client may have been killed before it sent anything.
func (c *Conn) commitWait(maxWait time.Duration) time.Duration {
	switch took := c.ended.Sub(c.opened); {
	case c.closedUnderTLS():
		return 0
	case c.transfer.bytes.Load() == 0:
		return maxWait
	default:
		return min(max(took/commitShare, maxWait/shortCommitShare), maxWait)
	}
}

// A Control is the control connection of the client of an upload.
type Control interface {
	// PeerClosed returns a channel that is closed when the client has closed its side.
	PeerClosed() <-chan struct{}
	// HungUp asks the kernel whether the client has closed its side.
	HungUp() bool
}

// AwaitCommit waits before an upload becomes visible, for at most delay. It returns an error if the upload must
// not be committed. A killed client looks like a client that has finished until its kernel has closed the control
// connection too.
func (t *Transfer) AwaitCommit(ctx context.Context, control Control, delay time.Duration) error {
	conn := t.conn
	if conn == nil {
		return ErrLost // no data connection was opened
	}
	if err := awaitEnd(ctx, control, conn.ended.Add(conn.commitWait(delay))); err != nil {
		return err
	}
	if control.HungUp() { // checked last, because the kernel knows before the reading goroutine
		return ErrPeerClosed
	}
	return t.Err()
}

// awaitEnd waits until the control connection ends or the time until is reached, and returns nil in the latter
// case.
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
