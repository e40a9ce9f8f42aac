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

// A request is what a fault depends on.
type request struct {
	kind string // the operation as the SDK calls it, such as PutObject
	path string // the key, or the prefix of a listing
	dir  string // which history it belongs to, empty for none
	keys []string
}

// directory finds the directory of a history in a key.
var directory = regexp.MustCompile(`history-\d+-\d+`)

// keyInBatch finds the keys of DeleteObjects.
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

// changes reports whether the request may change what clients see.
func (q request) changes() bool {
	return q.deletes() || slices.Contains([]string{"PutObject", "CopyObject", "CompleteMultipartUpload"}, q.kind)
}

// deletes reports whether the request may delete something.
func (q request) deletes() bool { return q.kind == "DeleteObject" || q.kind == "DeleteObjects" }

// reads reports whether the request changes nothing at all.
func (q request) reads() bool {
	return slices.ContainsFunc([]string{"Get", "Head", "List"}, func(verb string) bool {
		return strings.HasPrefix(q.kind, verb)
	})
}

// hasTimes reports whether the body of the response has times in XML.
func (q request) hasTimes() bool { return strings.HasPrefix(q.kind, "List") || q.kind == "CopyObject" }

// A fault is what happens to a request.
type fault struct {
	name          string
	before, after time.Duration // before the S3 server gets it, and before the replica gets the answer
	refuse        bool          // the S3 server does not get it
	drop          bool          // the connection breaks instead of an answer
	status        int           // instead of the answer
	code          string
}

// Delays of requests and of answers. A replica repeats a request within a second or two, so that delayed ones come
// before and after their repetitions.
const (
	longestDelay = 1500 * time.Millisecond
	longestStorm = 700 * time.Millisecond
	latestStorm  = time.Second
)

// newFault draws a fault for a request that changes something.
func newFault(random *rand.Rand, q request) fault {
	const seldom = 5
	if (q.kind == "CopyObject" || q.kind == "CompleteMultipartUpload") && random.IntN(seldom) == 0 {
		return fault{name: "200 with an error after the effect", status: http.StatusOK, code: "InternalError"}
	}
	delay := time.Duration(random.Int64N(int64(longestDelay)))
	switch n := random.IntN(100); {
	case n < 40:
		return fault{name: "answer lost", drop: true}
	case n < 60:
		return fault{name: "503 in place of the request", refuse: true, status: http.StatusServiceUnavailable,
			code: "SlowDown"}
	case n < 65:
		return fault{name: "429 in place of the request", refuse: true, status: http.StatusTooManyRequests,
			code: "TooManyRequests"}
	case n < 75:
		return fault{name: "500 after the effect", status: http.StatusInternalServerError, code: "InternalError"}
	case n < 82:
		return fault{name: "request delayed", before: delay}
	case n < 88:
		return fault{name: "answer delayed", after: delay}
	case n < 94:
		return fault{name: "answer delayed and lost", after: delay, drop: true}
	default:
		return fault{name: "request delayed, answer lost", before: delay, drop: true}
	}
}

// newReadFault draws a fault for a request that changes nothing.
func newReadFault(random *rand.Rand) fault {
	switch n := random.IntN(100); {
	case n < 40:
		return fault{name: "answer lost", drop: true}
	case n < 70:
		return fault{name: "503 in place of the request", refuse: true, status: http.StatusServiceUnavailable,
			code: "SlowDown"}
	default:
		return fault{name: "answer delayed", after: time.Duration(random.Int64N(int64(longestDelay)))}
	}
}

// Faults are the plans of all histories that run.
type Faults struct {
	// Serialize lets the requests of one history reach the S3 server one after another. Only reads may run in
	// parallel. It is for a server that is not linearizable itself.
	Serialize bool

	// Clock is the clock of the S3 server as replicas see it. It is nil for the true one.
	Clock *Clock

	mu      sync.Mutex
	plans   map[string]*Plan // by directory
	records *Plan            // of the records of uploads, which belong to no history; nil while they have no faults
}

// BeginRecords plans faults for the records of uploads, until end is called.
func (f *Faults) BeginRecords(seed uint64) (end func()) {
	p := &Plan{
		faults: f, began: time.Now(), random: rand.New(rand.NewPCG(seed, 1)), left: math.MaxInt, rarely: 8,
	}
	set := func(p *Plan) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.records = p
	}
	set(p)
	return func() { set(nil) }
}

// recordsLog is the last requests for records.
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

// recordKey finds the keys of records.
var recordKey = regexp.MustCompile(`\.babelftp/uploads-\d+/`)

// A Plan decides what happens to the requests of one history, and remembers them.
type Plan struct {
	faults *Faults
	dir    string
	began  time.Time
	order  sync.RWMutex // of Serialize

	mu        sync.Mutex
	random    *rand.Rand
	left      int // faults of requests that change something
	leftReads int

	// page is how many entries a page of a listing has at most, 0 for as many as the replica asks for.
	page int

	// rarely is how many requests that change something there are for each fault, 0 for the usual number.
	rarely int

	storm   [2]time.Time // from when until when all are refused
	passed  []passage
	lost    []passage // changes that may take effect late, or whose answers came late or not at all
	applied int       // faults so far
	log     []string
}

// A passage is when a request was at the S3 server.
type passage struct {
	request
	replica      int
	began, ended time.Duration
}

// begin makes the plan of a history.
func (f *Faults) begin(dir string, seed uint64, faults bool) *Plan {
	p := &Plan{faults: f, dir: dir, began: time.Now(), random: rand.New(rand.NewPCG(seed, 1))}
	p.page = []int{0, 0, 2, 3}[p.random.IntN(4)] // asked for one entry, MinIO says that there are no others
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

// planOf is the plan of the history that a request belongs to, nil for none.
func (f *Faults) planOf(q request) *Plan {
	f.mu.Lock()
	defer f.mu.Unlock()
	if q.dir == "" && recordKey.MatchString(q.path) {
		return f.records
	}
	return f.plans[q.dir]
}

// end forgets a plan.
func (f *Faults) end(p *Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.plans, p.dir)
}

// now is the time since the beginning of the history.
func (p *Plan) now() time.Duration { return time.Since(p.began) }

// calm ends all faults.
func (p *Plan) calm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left, p.leftReads, p.storm = 0, 0, [2]time.Time{}
}

// choose says what happens to a request.
func (p *Plan) choose(q request) fault {
	const often, seldom = 4, 25 // one of so many
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case now.After(p.storm[0]) && now.Before(p.storm[1]):
		return fault{name: "503 for everyone", refuse: true, status: http.StatusServiceUnavailable, code: "SlowDown"}
	case q.changes() && p.left > 0 && p.random.IntN(cmp.Or(p.rarely, often)) == 0:
		p.left--
		return newFault(p.random, q)
	case !q.changes() && p.leftReads > 0 && p.random.IntN(seldom) == 0:
		p.leftReads--
		return newReadFault(p.random)
	}
	return fault{}
}

// shorten lets a listing of objects have shorter pages.
func (p *Plan) shorten(u *url.URL) {
	const limit = "max-keys"
	query := u.Query()
	asked, err := strconv.Atoi(query.Get(limit))
	if p.page == 0 || !query.Has("list-type") || err == nil && asked <= p.page {
		return
	}
	query.Set(limit, strconv.Itoa(p.page))
	u.RawQuery = query.Encode()
}

// lock makes a request wait for its turn, if the S3 server needs that.
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

// pass notes that the S3 server has answered a request that it got at began.
func (p *Plan) pass(replica int, q request, began time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed = append(p.passed, passage{q, replica, began, p.now()})
}

// of tells whether a request was one of a replica about a name.
func (p *passage) of(replica int, name string) bool {
	return p.replica == replica && slices.ContainsFunc(p.keys, func(key string) bool {
		return strings.HasSuffix(key, "/"+path.Base(name))
	})
}

// Excuse marks the renames that may have deleted what another client stored after their last look, for a server
// without a conditional delete.
//
// A rename has this excuse where its replica has sent a DELETE for the source, after it has looked at it, after it has
// stored the target. The proxy cannot see which of several clients of the replica a request is for, so the earliest
// look counts. A replica that repeats the DELETE without another look has no excuse.
func (p *Plan) Excuse(h History) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range h {
		if c := &h[i]; c.Verb == "RNTO" {
			c.Looked, c.Blind = p.excuse(c)
		}
	}
}

// Settle marks the commands that were refused while S3 had answered all requests of the replica that change something.
// The processes of replicas must live on, and reach the S3 server.
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

// excuse tells whether a rename has an excuse, and when its last look at the source began at the earliest.
func (p *Plan) excuse(c *Command) (looked time.Duration, excused bool) {
	stored := c.Call // when the target was stored, at the earliest
	if i := slices.IndexFunc(p.passed, func(q passage) bool {
		return q.changes() && !q.deletes() && q.began >= c.Call && q.of(c.Replica, c.To)
	}); i >= 0 {
		stored = p.passed[i].ended // the first one to end, as they are in this order
	}
	for _, d := range p.passed {
		if !d.deletes() || !d.of(c.Replica, c.Name) || d.began < stored || d.began > c.Return && !c.inDoubt() {
			continue
		}
		for _, l := range p.passed {
			if l.kind == "HeadObject" && l.of(c.Replica, c.Name) && l.began >= stored && l.ended <= d.began &&
				!p.deletedBetween(l, d, c) && (!excused || l.began < looked) {
				looked, excused = l.began, true
			}
		}
	}
	return looked, excused
}

// deletedBetween tells whether the replica has deleted the source of a rename after a look, and before a DELETE.
func (p *Plan) deletedBetween(look, d passage, c *Command) bool {
	return slices.ContainsFunc(p.passed, func(q passage) bool {
		return q.deletes() && q.of(c.Replica, c.Name) && q.began > look.ended && q.began < d.began
	})
}

// note remembers what happened to a request.
func (p *Plan) note(began time.Duration, replica int, q request, f fault, response *http.Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	came := "no answer"
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

// count is how many requests the faults have met.
func (p *Plan) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.applied
}

// Log is all requests of the history, each with what happened to it.
func (p *Plan) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.log, "\n")
}
