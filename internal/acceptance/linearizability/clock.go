package linearizability

import (
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// A Clock is the clock of the S3 server as replicas see it through the proxies. It may be wrong, and it may jump
// ahead. A jump looks to replicas as if the time had really passed: a replica that was frozen or cut off during the
// jump seems to have been away for that long. The zero Clock shows the true time.
//
// Object times stay consistent: an object that was stored before a jump keeps its time.
type Clock struct {
	mu    sync.Mutex
	ahead time.Duration // negative if the clock is behind
	jumps []jump
}

// A jump sets the offset of the clock from a point in time on.
type jump struct {
	at    time.Time
	ahead time.Duration
}

// NewClock returns a clock that is behind by the given duration.
func NewClock(behind time.Duration) *Clock { return &Clock{ahead: -behind} }

// Jump moves the clock ahead. It takes effect within a second, because most S3 times have whole seconds. The clock
// may catch up with the true time but never get ahead of it: in that case Jump does nothing and returns false.
func (c *Clock) Jump(by time.Duration) bool {
	at := time.Now().Truncate(time.Second).Add(time.Second)
	c.mu.Lock()
	defer c.mu.Unlock()
	ahead := c.ahead
	if n := len(c.jumps); n > 0 {
		ahead = c.jumps[n-1].ahead
	}
	if ahead += by; ahead > 0 {
		return false
	}
	c.jumps = append(c.jumps, jump{at, ahead})
	return true
}

// replicaTime converts a time of the S3 server into the time that a replica sees.
func (c *Clock) replicaTime(t time.Time) time.Time {
	if c == nil {
		return t
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ahead := c.ahead
	for _, j := range c.jumps {
		if !t.Before(j.at) {
			ahead = j.ahead
		}
	}
	return t.Add(ahead)
}

// stamps matches times in the bodies of listings and of responses to copies.
var stamps = regexp.MustCompile(`(<(?:LastModified|Initiated)>)([^<]*)(</)`)

// adjust rewrites the times in the headers of a response, and in its body if xml is set, and returns the new body.
// The skew is the difference between the clocks of the S3 server and of the replica.
func (c *Clock) adjust(response *http.Response, body []byte, skew time.Duration, xml bool) []byte {
	for _, name := range []string{"Date", "Last-Modified"} {
		if t, err := http.ParseTime(response.Header.Get(name)); err == nil {
			response.Header.Set(name, c.replicaTime(t).Add(skew).UTC().Format(http.TimeFormat))
		}
	}
	if !xml || len(body) == 0 {
		return body
	}
	body = stamps.ReplaceAllFunc(body, func(found []byte) []byte {
		m := stamps.FindSubmatch(found)
		t, err := time.Parse(time.RFC3339Nano, string(m[2]))
		if err != nil {
			return found
		}
		return []byte(string(m[1]) + c.replicaTime(t).Add(skew).UTC().Format("2006-01-02T15:04:05.000Z") + string(m[3]))
	})
	if response.Header.Get("Content-Length") != "" {
		response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	return body
}
