package audit

import (
	"encoding/json"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
	"github.com/babelftp/babelftp/internal/users/account"
)

// take returns the number of lines in a log and the sum of their counts of omitted lines, and clears the log.
func take(t *testing.T, out *servicetest.Log) (lines, more int) {
	t.Helper()
	for _, line := range out.Take() {
		var fields struct{ More int }
		must.OK(t, json.Unmarshal([]byte(line), &fields))
		lines++
		more += fields.More
	}
	return lines, more
}

// Frequent actions of strangers are written in a few lines, whose counts include all of them. Users are not sampled.
func TestStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out servicetest.Log
		var full atomic.Bool
		log := New(To(&out), func() bool { return !full.Load() }, nil)
		from := func(a, b, c int) *Session {
			return log.Session(&report.Client{Address: netip.AddrFrom4([4]byte{byte(a), byte(b), byte(c), 1})})
		}
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		for range 1000 {
			from(192, 0, 2).Refused("", "address.sessions")
		}
		if lines, more := take(t, &out); lines != 1 || more != 0 {
			t.Errorf("1000 refusals: got %d lines with the count %d, want one line", lines, more)
		}
		pass(sampleEvery + time.Second)
		if lines, more := take(t, &out); lines != 1 || more != 999 {
			t.Errorf("in the next minute: got %d lines with the count %d, want one with 999", lines, more)
		}
		pass(2 * sampleEvery)

		const networks = 10 * maxKinds
		for i := range networks {
			from(10, i/256, i%256).Refused("", "sessions")
		}
		if lines, more := take(t, &out); lines > 1+maxKinds || more != 0 {
			t.Errorf("refusals of %d networks: got %d lines", networks, lines)
		}
		log.Flush()
		if lines, more := take(t, &out); lines != 1 || more != networks-maxKinds-1 {
			t.Errorf("at the end: got %d lines with the count %d", lines, more)
		}
		pass(2 * sampleEvery)
		if n := len(log.strangers.kinds); n != 0 {
			t.Errorf("got %d remembered kinds", n)
		}

		full.Store(true) // users need the rest
		for range 5 {
			from(192, 0, 2).Refused("", "sessions")
			from(192, 0, 2).LoggedIn(nil, account.ErrLoginRefused)
		}
		pass(2 * sampleEvery)
		if lines, _ := take(t, &out); lines != 0 {
			t.Errorf("strangers got %d lines in a full queue", lines)
		}
		full.Store(false)
		pass(2 * sampleEvery)
		if lines, more := take(t, &out); lines != 2 || more != 10 {
			t.Errorf("afterward: got %d lines with the count %d, want two with 10", lines, more)
		}

		for range 5 {
			from(192, 0, 2).LoggedIn(nil, account.ErrLoginRefused)
			from(198, 51, 100).LoggedIn(nil, account.ErrAbandoned)
		}
		if lines, _ := take(t, &out); lines != 5+1 {
			t.Errorf("got %d lines of wrong passwords and abandoned logins, want 6", lines)
		}
		pass(4 * sampleEvery)
	})
}
