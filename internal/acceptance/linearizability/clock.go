package linearizability

import (
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// A Clock is that of the S3 server, as proxies show it. It may be wrong, and it may jump ahead. For replicas a jump
// is time that has passed: a replica that was frozen or cut off during a jump was so for that long. The zero Clock is
// right.
//
// Times of objects stay consistent: what was stored before a jump keeps its time.
type Clock struct {
	mu    sync.Mutex
	ahead time.Duration // negative for behind
	jumps []jump
}

// A jump is by how much the clock is ahead since a moment.
type jump struct {
	at    time.Time
	ahead time.Duration
}

// NewClock returns a clock that is behind.
func NewClock(behind time.Duration) *Clock { return &Clock{ahead: -behind} }

// Jump sets the clock ahead. It takes effect within a second, because most times of S3 have whole seconds. A clock
// that was behind never gets ahead: then Jump does nothing and returns false.
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

// shown is a time of the S3 server as a replica sees it.
func (c *Clock) shown(t time.Time) time.Time {
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

// stamps finds times in the bodies of listings and of answers to copies.
var stamps = regexp.MustCompile(`(<(?:LastModified|Initiated)>)([^<]*)(</)`)

// adjust changes the times in a response, also those in its body if that is XML, and returns the new body. The skew is
// between the clocks of the S3 server and of the replica.
func (c *Clock) adjust(response *http.Response, body []byte, skew time.Duration, xml bool) []byte {
	for _, name := range []string{"Date", "Last-Modified"} {
		if t, err := http.ParseTime(response.Header.Get(name)); err == nil {
			response.Header.Set(name, c.shown(t).Add(skew).UTC().Format(http.TimeFormat))
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
		return []byte(string(m[1]) + c.shown(t).Add(skew).UTC().Format("2006-01-02T15:04:05.000Z") + string(m[3]))
	})
	if response.Header.Get("Content-Length") != "" {
		response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	return body
}
