package dataconn

import (
	"os"
	"time"
)

// rateWindow is the period over which the minimum rate of an upload is measured. It is shorter if the stall
// timeout is shorter.
const rateWindow = time.Minute

// partTime is the time in which the client of an upload must fill the memory of a part while others of the same
// user, tenant or server wait for it. The memory of a part doubles as data arrives, so the client must keep at
// least half of this speed.
const partTime = 15 * time.Minute

// A window counts the bytes that a client sends while the server waits for it. The time in which the server waits
// for memory or for S3 does not count.
type window struct {
	waited time.Duration
	bytes  int64
}

// receive reads from the client of an upload. It returns a timeout if no byte arrives within the stall timeout, or
// if the client was slower than the minimum for a whole window while other transfers wait for its memory or its
// slot.
func (c *Conn) receive(b []byte) (int, error) {
	length := min(rateWindow, c.transfer.StallTimeout)
	minimum := c.transfer.minBytes(length)
	stalled := time.Now().Add(c.transfer.StallTimeout)
	for {
		begin, deadline := time.Now(), stalled
		end := begin.Add(length - c.window.waited)
		early := c.window.bytes < minimum && end.Before(stalled)
		if early {
			deadline = end
		}
		_ = c.raw.SetReadDeadline(deadline)
		n, err := c.Conn.Read(b)
		now := time.Now()
		c.window.waited += now.Sub(begin)
		c.window.bytes += int64(n)
		if c.window.waited < length {
			return n, err
		}
		slow := c.window.bytes < minimum
		c.window = window{}
		switch {
		case slow && c.transfer.Contended != nil && c.transfer.Contended():
			return n, os.ErrDeadlineExceeded
		case n == 0 && isTimeout(err) && early && !now.Before(end): // only the window has ended
			continue
		}
		return n, err
	}
}

// minBytes returns how many bytes the client of an upload must send in a period if the resources are contended. It
// is the minimum rate, or more if the upload holds much memory, because at the minimum rate a client could hold a
// large part for days.
func (t *Transfer) minBytes(length time.Duration) int64 {
	minimum := float64(t.MinRate) * length.Minutes()
	if t.MinRate > 0 && t.Memory != nil {
		minimum = max(minimum, float64(t.Memory())*length.Minutes()/partTime.Minutes())
	}
	return int64(minimum)
}
