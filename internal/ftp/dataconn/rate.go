package dataconn

import (
	"os"
	"time"
)

// rateWindow is for how long an upload's client may send less than the minimum rate, less where the stall timeout is
// shorter.
const rateWindow = time.Minute

// partTime is the time within which the client of an upload must fill the memory that it takes, while others of the
// same user, tenant or server need what it holds. A part doubles its memory as bytes come, so this is half of its speed
// at least.
const partTime = 15 * time.Minute

// A window counts what a client sends while the server waits for it. The time in which the server waits for memory or
// for S3 does not count.
type window struct {
	waited time.Duration
	bytes  int64
}

// receive reads from the client of an upload. The error is a timeout where no byte comes within the stall timeout,
// and where the client is slower than the minimum for a whole window while others need what it holds.
func (c *Conn) receive(b []byte) (int, error) {
	length := min(rateWindow, c.transfer.StallTimeout)
	least := c.transfer.least(length)
	stalled := time.Now().Add(c.transfer.StallTimeout)
	for {
		begin, deadline := time.Now(), stalled
		end := begin.Add(length - c.window.waited)
		early := c.window.bytes < least && end.Before(stalled)
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
		slow := c.window.bytes < least
		c.window = window{}
		switch {
		case slow && c.transfer.Scarce != nil && c.transfer.Scarce():
			return n, os.ErrDeadlineExceeded
		case n == 0 && isTimeout(err) && early && !now.Before(end): // only the window has ended, and not the transfer
			continue
		}
		return n, err
	}
}

// least is how many bytes the client of an upload must send in a time while others need what it holds: the minimum
// rate, and more where it takes much memory. By the rate alone a client could hold a part of any size for days.
func (t *Transfer) least(length time.Duration) int64 {
	least := float64(t.MinRate) * length.Minutes()
	if t.MinRate > 0 && t.Memory != nil {
		least = max(least, float64(t.Memory())*length.Minutes()/partTime.Minutes())
	}
	return int64(least)
}
