package linearizability

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// A request holds the parts of an S3 request that faults depend on.
type request struct {
	kind string // operation name of the SDK, such as PutObject
	path string // key, or prefix of a listing
	dir  string // directory of the history, empty if the request belongs to none
	keys []string
}

// directory matches the directory of a history in a key.
var directory = regexp.MustCompile(`history-\d+-\d+`)

// keyInBatch matches the keys in the body of DeleteObjects.
var keyInBatch = regexp.MustCompile(`<Key>([^<]*)</Key>`)

func newRequest(r *http.Request, body []byte) request {
	o := s3sim.OperationOf(r)
	q := request{kind: o.Name, path: o.Key, keys: []string{o.Key}}
	switch {
	case o.Name == "DeleteObjects":
		q.keys = nil
		for _, m := range keyInBatch.FindAllSubmatch(body, -1) {
			q.keys = append(q.keys, string(m[1]))
		}
		q.path = strings.Join(q.keys, " ")
	case o.Name == "CopyObject":
		source, _ := url.PathUnescape(r.Header.Get("X-Amz-Copy-Source"))
		_, source, _ = strings.Cut(strings.TrimPrefix(source, "/"), "/")
		q.path = source + " to " + o.Key
	case o.Key == "":
		q.path, q.keys = o.Prefix, nil
	}
	q.dir = directory.FindString(q.path)
	return q
}

func (q request) changes() bool {
	return q.deletes() || slices.Contains([]string{"PutObject", "CopyObject", "CompleteMultipartUpload"}, q.kind)
}

func (q request) deletes() bool { return q.kind == "DeleteObject" || q.kind == "DeleteObjects" }

// reads reports whether the request is read-only. Uploading a part, for example, neither changes what clients see
// nor is read-only.
func (q request) reads() bool {
	return slices.ContainsFunc([]string{"Get", "Head", "List"}, func(verb string) bool {
		return strings.HasPrefix(q.kind, verb)
	})
}

// hasTimes reports whether the XML body of the response contains times.
func (q request) hasTimes() bool { return strings.HasPrefix(q.kind, "List") || q.kind == "CopyObject" }

// A fault describes how a link disturbs a request. The zero fault does nothing.
type fault struct {
	name          string
	before, after time.Duration // delay of the request, and of the response
	refuse        bool          // do not forward the request
	drop          bool          // reset the connection instead of responding
	status        int           // respond with this status and code instead
	code          string
}

// Upper bounds of delays. A replica retries a request within a second or two, so a delayed request may arrive
// before or after its retry.
const (
	longestDelay = 1500 * time.Millisecond
	longestStorm = 700 * time.Millisecond
	latestStorm  = time.Second
)

// newFault picks a random fault for a request that changes what clients see.
func newFault(random *rand.Rand, q request) fault {
	const seldom = 5
	if (q.kind == "CopyObject" || q.kind == "CompleteMultipartUpload") && random.IntN(seldom) == 0 {
		return fault{name: "200 with an error after the effect", status: http.StatusOK, code: "InternalError"}
	}
	delay := time.Duration(random.Int64N(int64(longestDelay)))
	switch n := random.IntN(100); {
	case n < 40:
		return fault{name: "response lost", drop: true}
	case n < 60:
		return fault{name: "503 instead of the request", refuse: true, status: http.StatusServiceUnavailable,
			code: "SlowDown"}
	case n < 65:
		return fault{name: "429 instead of the request", refuse: true, status: http.StatusTooManyRequests,
			code: "TooManyRequests"}
	case n < 75:
		return fault{name: "500 after the effect", status: http.StatusInternalServerError, code: "InternalError"}
	case n < 82:
		return fault{name: "request delayed", before: delay}
	case n < 88:
		return fault{name: "response delayed", after: delay}
	case n < 94:
		return fault{name: "response delayed and lost", after: delay, drop: true}
	default:
		return fault{name: "request delayed, response lost", before: delay, drop: true}
	}
}

// newReadFault picks a random fault for any other request.
func newReadFault(random *rand.Rand) fault {
	switch n := random.IntN(100); {
	case n < 40:
		return fault{name: "response lost", drop: true}
	case n < 70:
		return fault{name: "503 instead of the request", refuse: true, status: http.StatusServiceUnavailable,
			code: "SlowDown"}
	default:
		return fault{name: "response delayed", after: time.Duration(random.Int64N(int64(longestDelay)))}
	}
}

// Faults holds the fault plans of all running histories.
type Faults struct {
	// Serialize makes the requests of one history reach the S3 server one after another; only reads run in
	// parallel. Set it for servers that are not linearizable themselves.
	Serialize bool

	// Clock is the clock of the S3 server as replicas see it. Nil means the true time.
	Clock *Clock

	mu      sync.Mutex
	plans   map[string]*Plan // by directory
	records *Plan            // for records of uploads, which belong to no history; nil without faults
}

// BeginRecords injects faults into requests for upload records until end is called.
func (f *Faults) BeginRecords(seed uint64) (end func()) {
	p := &Plan{
		faults: f, began: time.Now(), random: rand.New(rand.NewPCG(seed, 1)), left: math.MaxInt, oneIn: 8,
	}
	set := func(p *Plan) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.records = p
	}
	set(p)
	return func() { set(nil) }
}

// recordsLog returns the last requests for upload records.
func (f *Faults) recordsLog() string {
	const most = 200
	f.mu.Lock()
	p := f.records
	f.mu.Unlock()
	if p == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return "\nrequests for records of uploads, of all histories, in another time:\n" +
		strings.Join(p.log[max(0, len(p.log)-most):], "\n")
}

// recordKey matches the keys of upload records.
var recordKey = regexp.MustCompile(`\.babelftp/uploads-\d+/`)

// A Plan injects faults into the requests of one history and logs the requests.
type Plan struct {
	faults *Faults
	dir    string
	began  time.Time
	order  sync.RWMutex // for Faults.Serialize

	mu        sync.Mutex
	random    *rand.Rand
	left      int // remaining faults for requests that change something
	leftReads int

	// page is the maximum number of entries on a page of a listing, 0 for no additional limit.
	page int

	// oneIn makes one in this many changing requests fail. 0 means the default.
	oneIn int

	storm   [2]time.Time // start and end of a period in which all requests are refused
	passed  []passage
	lost    []passage // changes that may take effect late, or whose responses were late or lost
	applied int       // faults injected so far
	log     []string
}

// A passage records when the S3 server handled a request.
type passage struct {
	request
	replica      int
	began, ended time.Duration
}

// begin creates the plan of a history.
func (f *Faults) begin(dir string, seed uint64, faults bool) *Plan {
	p := &Plan{faults: f, dir: dir, began: time.Now(), random: rand.New(rand.NewPCG(seed, 1))}
	p.page = []int{0, 0, 2, 3}[p.random.IntN(4)] // never 1: MinIO reports a listing with max-keys=1 as complete
	if faults {
		p.left, p.leftReads = 1+p.random.IntN(5), p.random.IntN(2)
		if p.random.IntN(10) == 0 {
			from := p.began.Add(time.Duration(p.random.Int64N(int64(latestStorm))))
			p.storm = [2]time.Time{from, from.Add(time.Duration(p.random.Int64N(int64(longestStorm))))}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.plans == nil {
		f.plans = map[string]*Plan{}
	}
	f.plans[dir] = p
	return p
}

// planOf returns the plan of the history that a request belongs to, or nil.
func (f *Faults) planOf(q request) *Plan {
	f.mu.Lock()
	defer f.mu.Unlock()
	if q.dir == "" && recordKey.MatchString(q.path) {
		return f.records
	}
	return f.plans[q.dir]
}

// end removes a plan.
func (f *Faults) end(p *Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.plans, p.dir)
}

// now returns the time since the history began.
func (p *Plan) now() time.Duration { return time.Since(p.began) }

// calm stops all faults.
func (p *Plan) calm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left, p.leftReads, p.storm = 0, 0, [2]time.Time{}
}

// choose picks the fault for a request.
func (p *Plan) choose(q request) fault {
	const often, seldom = 4, 25 // one in this many
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case now.After(p.storm[0]) && now.Before(p.storm[1]):
		return fault{name: "503 for everyone", refuse: true, status: http.StatusServiceUnavailable, code: "SlowDown"}
	case q.changes() && p.left > 0 && p.random.IntN(cmp.Or(p.oneIn, often)) == 0:
		p.left--
		return newFault(p.random, q)
	case !q.changes() && p.leftReads > 0 && p.random.IntN(seldom) == 0:
		p.leftReads--
		return newReadFault(p.random)
	}
	return fault{}
}

// shorten limits the page size of an object listing.
func (p *Plan) shorten(u *url.URL) {
	const limit = "max-keys"
	query := u.Query()
	size, err := strconv.Atoi(query.Get(limit))
	if p.page == 0 || !query.Has("list-type") || err == nil && size <= p.page {
		return
	}
	query.Set(limit, strconv.Itoa(p.page))
	u.RawQuery = query.Encode()
}

// lock makes a request wait until it may run, if the S3 server needs serialized requests.
func (p *Plan) lock(q request) (unlock func()) {
	switch {
	case !p.faults.Serialize:
		return func() {}
	case q.reads():
		p.order.RLock()
		return p.order.RUnlock
	default:
		p.order.Lock()
		return p.order.Unlock
	}
}

// pass records that the S3 server responded to a request that it received at began.
func (p *Plan) pass(replica int, q request, began time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed = append(p.passed, passage{q, replica, began, p.now()})
}

// isFor reports whether a replica sent the request for this name.
func (p *passage) isFor(replica int, name string) bool {
	return p.replica == replica && slices.ContainsFunc(p.keys, func(key string) bool {
		return strings.HasSuffix(key, "/"+path.Base(name))
	})
}

// Excuse marks the renames that may have deleted a file that another client stored after the rename last checked
// its source. It is for servers without a conditional delete.
//
// A rename is excused if its replica stored the target, then checked the source, and then sent a DELETE for the
// source. The proxy cannot see which of a replica's clients a request belongs to, so the earliest check counts. A
// replica that repeats the DELETE without another check is not excused.
func (p *Plan) Excuse(h History) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range h {
		if c := &h[i]; c.Verb == "RNTO" {
			c.CheckedFrom, c.Blind = p.excuse(c)
		}
	}
}

// Settle marks the commands that were refused although S3 responded to every changing request of the replica. Call
// it only if the replicas kept running and could reach the S3 server.
func (p *Plan) Settle(h History) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range h {
		c := &h[i]
		c.Settled = c.Code/100 == 4 && !c.isRead() && !slices.ContainsFunc(p.lost, func(q passage) bool {
			return q.replica == c.Replica && q.began >= c.Call && q.began <= c.Return
		})
	}
}

// excuse reports whether a rename is excused, and the earliest time at which its last check of the source began.
func (p *Plan) excuse(c *Command) (checked time.Duration, excused bool) {
	stored := c.Call // earliest time at which the target was stored
	if i := slices.IndexFunc(p.passed, func(q passage) bool {
		return q.changes() && !q.deletes() && q.began >= c.Call && q.isFor(c.Replica, c.To)
	}); i >= 0 {
		stored = p.passed[i].ended // passed is sorted by the end, so this is the first to end
	}
	for _, d := range p.passed {
		if !d.deletes() || !d.isFor(c.Replica, c.Name) || d.began < stored || d.began > c.Return && !c.inDoubt() {
			continue
		}
		for _, l := range p.passed {
			if l.kind == "HeadObject" && l.isFor(c.Replica, c.Name) && l.began >= stored && l.ended <= d.began &&
				!p.deletedBetween(l, d, c) && (!excused || l.began < checked) {
				checked, excused = l.began, true
			}
		}
	}
	return checked, excused
}

// deletedBetween reports whether the replica deleted the source of a rename between a check and a DELETE.
func (p *Plan) deletedBetween(check, d passage, c *Command) bool {
	return slices.ContainsFunc(p.passed, func(q passage) bool {
		return q.deletes() && q.isFor(c.Replica, c.Name) && q.began > check.ended && q.began < d.began
	})
}

// note logs a request and its outcome.
func (p *Plan) note(began time.Duration, replica int, q request, f fault, response *http.Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	came := "no response"
	if response != nil {
		came = strconv.Itoa(response.StatusCode)
	}
	if f.refuse {
		came = "not sent"
	}
	if f.name != "" {
		p.applied++
		came += ", " + f.name
	}
	if q.changes() && (f.name != "" || response == nil) {
		p.lost = append(p.lost, passage{q, replica, began, p.now()})
	}
	p.log = append(p.log, fmt.Sprintf("%9.3fs-%9.3fs  replica %d  %s %s: %s",
		began.Seconds(), p.now().Seconds(), replica, q.kind,
		strings.ReplaceAll(q.path, cmp.Or(p.dir, "uploads")+"/", ""), came))
}

// count returns the number of faults injected so far.
func (p *Plan) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.applied
}

// Log returns all requests of the history with their outcomes, one per line.
func (p *Plan) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.log, "\n")
}
