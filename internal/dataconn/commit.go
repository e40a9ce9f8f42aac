package dataconn

import (
	"context"
	"time"
)

// The wait before a commit is a share of the time that the upload took. The longer
// the upload, the likelier its client was killed in its middle.
const (
	commitShare      = 8  // the wait is so small a part of the upload's time,
	shortCommitShare = 50 // and no less than such a part of the commit delay
)

// On a busy machine a killed client may have to wait for a processor between the
// two connections that its kernel closes.
const (
	busyCommitShare = 2       // of the commit delay for each waiting task
	busyCommitLimit = 10      // times the commit delay, at most
	singleWrite     = 4 << 10 // bytes that clients send by one write
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

// busyCommitWait is commitWait while tasks wait for processors, and 0 while none
// does. The more of them wait for each processor, the longer it is.
func (c *Conn) busyCommitWait(delay time.Duration, runQueue func() (tasks, processors int)) time.Duration {
	if c.closedUnderTLS() || c.transfer.bytes.Load() <= singleWrite {
		return 0
	}
	tasks, processors := runQueue()
	waiting := tasks - processors
	if waiting <= 0 {
		return 0
	}
	share := delay / busyCommitShare
	return min(max(share*time.Duration(waiting)/time.Duration(processors), share), busyCommitLimit*delay)
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
// closed the control connection too. The wait is delay at most, but longer on a
// busy machine.
func (t *Transfer) AwaitCommit(ctx context.Context, control Control, delay time.Duration) error {
	return t.awaitCommit(ctx, control, delay, runQueue)
}

func (t *Transfer) awaitCommit(ctx context.Context, control Control, delay time.Duration, runQueue func() (tasks, processors int)) error {
	conn := t.conn
	if conn == nil {
		return ErrLost // there was never any
	}
	wait := conn.commitWait(delay)
	for {
		if err := awaitEnd(ctx, control, conn.ended.Add(wait)); err != nil {
			return err
		}
		most := conn.busyCommitWait(delay, runQueue)
		if control.HungUp() { // asked last: a client that has just left the run queue has hung up
			return ErrPeerClosed
		}
		waited := time.Since(conn.ended)
		if waited >= most {
			return t.Err()
		}
		wait = min(waited+waited/2, most) // soon again: most machines are busy for a moment only
	}
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
