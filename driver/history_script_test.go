package driver_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A history is a list of steps that several sessions perform, on several replicas of the server, in one bucket. It is
// written as one JSON object per line: first the history without its steps, then each step.
type history struct {
	Seed    uint64 `json:"seed"` // seed of the random durations of requests
	Profile string `json:"profile"`
	Opaque  bool   `json:"opaque,omitempty"` // ETags are not MD5 sums, as with KMS
	Calm    bool   `json:"calm,omitempty"`   // no request is slow
	Quota   int64  `json:"quota,omitempty"`  // quota of each replica in bytes; 0 for none
	Copies  int64  `json:"copies,omitempty"` // driver.Options.CopyLimit

	Conflicts bool `json:"conflicts,omitempty"` // S3 returns 409 for one of two conditional writes
	Forgets   bool `json:"forgets,omitempty"`   // S3 forgets completed uploads
	// Throttled is the time for which S3 refuses all requests, shortly after the first ones.
	Throttled time.Duration `json:"throttled,omitempty"`

	Same  bool          `json:"same,omitempty"`  // all files begin with the same bytes
	Ahead time.Duration `json:"ahead,omitempty"` // how far the clock of S3 is ahead
	Page  int           `json:"page,omitempty"`  // entries per page of a listing; 0 for the default of S3
	// Versions is "kept"; "suspended" after the first steps; or "locked", which means that Object Lock keeps versions
	// for a day.
	Versions  string        `json:"versions,omitempty"`
	Abandoned time.Duration `json:"abandoned,omitempty"` // configured age of abandoned uploads; 0 for the minimum
	// Emptying lets S3 refuse or lose objects that are stored in a directory that becomes empty.
	Emptying   bool `json:"emptying,omitempty"`
	Attributes bool `json:"attributes,omitempty"` // the configuration gives attributes to new files
	// Torn lets responses of S3 combine parts of two objects, if the profile allows that.
	Torn     bool          `json:"torn,omitempty"`
	Cut      *outage       `json:"cut,omitempty"` // one replica cannot reach S3
	Sessions []sessionPlan `json:"sessions"`      // steps contain the index of their session
	Steps    []step        `json:"-"`
}

// An outage is a time during which a replica cannot reach S3. Its requests are lost, or its process is frozen.
type outage struct {
	Replica int           `json:"replica"`
	After   time.Duration `json:"after"`
	For     time.Duration `json:"for"`
	Frozen  bool          `json:"frozen,omitempty"`
}

type sessionPlan struct {
	Replica int   `json:"replica"`
	Part    int64 `json:"part,omitempty"` // part size of its replica; 0 for historyPart
	// Skew is the time by which the clock of its replica is ahead of the clock of S3, in addition to Ahead.
	Skew        time.Duration `json:"skew,omitempty"`
	Owner       string        `json:"owner,omitempty"`
	NoOverwrite bool          `json:"no-overwrite,omitempty"`
	Truncate    bool          `json:"truncate,omitempty"`
}

// A step is an operation of a session. The steps of a session run one after the other.
type step struct {
	// ID stays the same if other steps are removed. The content of an upload depends on it.
	ID      int           `json:"id"`
	Session int           `json:"session"`
	First   bool          `json:"first,omitempty"` // runs before all other steps, while nothing else is running
	Do      string        `json:"do"`
	Name    string        `json:"name,omitempty"` // in the first bucket, or in the other one (see inOther)
	To      string        `json:"to,omitempty"`
	Wait    time.Duration `json:"wait,omitempty"`   // before the step
	Size    int           `json:"size,omitempty"`   // number of bytes that the client has
	Offset  int           `json:"offset,omitempty"` // argument of REST
	Breaks  bool          `json:"breaks,omitempty"` // the client is lost after Cut bytes
	Cut     int           `json:"cut,omitempty"`
	Pause   time.Duration `json:"pause,omitempty"` // pause of the client in the middle of the file
	Pace    time.Duration `json:"pace,omitempty"`  // pause of the client before each of about thirty pieces
	Age     time.Duration `json:"age,omitempty"`   // age of the uploads that a sweep removes; 0 for settleTime
	Of      int           `json:"of,omitempty"`    // the step whose file is resumed
	Faults  []stepFault   `json:"faults,omitempty"`
}

// A stepFault is a fault that affects one request of a step.
type stepFault struct {
	Request int           `json:"request"` // the first is 1
	Kind    string        `json:"kind"`
	Delay   time.Duration `json:"delay,omitempty"`
}

func (h *history) String() string {
	var b strings.Builder
	write := func(v any) {
		line, _ := json.Marshal(v)
		b.Write(line)
		b.WriteByte('\n')
	}
	write(h)
	for _, s := range h.Steps {
		write(s)
	}
	return b.String()
}

// parseHistory parses the output of String.
func parseHistory(text []byte) (*history, error) {
	h := &history{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for first := true; lines.Scan(); first = false {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if first {
			if err := json.Unmarshal(line, h); err != nil {
				return nil, err
			}
			continue
		}
		var s step
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, err
		}
		if s.Session >= len(h.Sessions) {
			return nil, fmt.Errorf("step %d is of session %d, of which there is none", s.ID, s.Session)
		}
		h.Steps = append(h.Steps, s)
	}
	return h, lines.Err()
}

// historyPart is the minimum part size, and the part size of uploads, in bytes.
const historyPart = 1024

// The names and sizes in histories. There are few of them, so that sessions affect each other.
var (
	historyFiles = []string{"a", "b", "d/x", "d/y", "e/x", "e/y"}
	historyDirs  = []string{"d", "e", "f"}
	historySizes = []int{0, 1, 300, 999, historyPart, historyPart + 1, 2 * historyPart, 2500, 5000}
)

// productionAge is the default of abandoned_uploads in the configuration of the server.
const productionAge = 24 * time.Hour

// historyProfiles are the servers of histories. A server that is listed several times is chosen more often.
var historyProfiles = []string{
	"aws", "aws", "aws", "aws-directory", "minio", "minio", "ceph", "r2", "gcs", "strict", "strict", "swift",
	"seaweedfs", "versitygw",
}

// randomHistory returns the history for a seed.
func randomHistory(seed uint64) *history {
	r := rand.New(rand.NewPCG(seed, 0))
	h := &history{Seed: seed, Profile: pick(r, historyProfiles), Opaque: chance(r, 50), Calm: chance(r, 50)}
	if chance(r, 25) {
		h.Quota = 12_000
	}
	if chance(r, 20) || h.Profile == "swift" && chance(r, 60) { // Swift may copy parts of two versions
		h.Copies = 2000
	}
	h.Conflicts, h.Forgets = chance(r, 30), chance(r, 50)
	if chance(r, 10) {
		h.Throttled = pick(r, []time.Duration{time.Second, 10 * time.Second, 20 * time.Second})
	}
	h.Same = chance(r, 20)
	if chance(r, 25) {
		h.Ahead = pick(
			r, []time.Duration{-10 * time.Minute, -3 * time.Minute, -2 * time.Second, 2 * time.Second, 3 * time.Minute,
				10 * time.Minute})
	}
	if chance(r, 25) {
		h.Page = 1 + r.IntN(4)
	}
	if chance(r, 35) {
		h.Versions = pick(r, []string{"kept", "kept", "suspended", "locked"})
	}
	h.Torn, h.Emptying, h.Attributes = chance(r, 50), chance(r, 50), chance(r, 30)
	if chance(r, 15) {
		h.Abandoned = productionAge
	}
	replicas := 1 + r.IntN(2)
	parts := []int64{0, pick(r, []int64{0, 0, 2 * historyPart})}
	skews := []time.Duration{0, 0, 0}
	if chance(r, 15) {
		for i := range skews {
			skews[i] = time.Duration(r.IntN(600)-300) * time.Second
		}
	}
	if chance(r, 20) {
		h.Cut = &outage{
			Replica: r.IntN(replicas), After: pick(
				r, []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 20 * time.Second}),
			For:    pick(r, []time.Duration{20 * time.Second, time.Minute, 3 * time.Minute, 5 * time.Minute}),
			Frozen: chance(r, 60),
		}
	}
	for range 1 + r.IntN(4) {
		replica := r.IntN(replicas)
		h.Sessions = append(h.Sessions, sessionPlan{
			Replica: replica, Part: parts[replica], Skew: skews[replica],
			Owner: pick(r, []string{"alice", "alice", "alice", "bob", ""}), NoOverwrite: chance(r, 8),
			Truncate: chance(r, 30),
		})
	}
	files, sizes := slices.Clone(historyFiles), slices.Clone(historySizes)
	r.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	r.Shuffle(len(sizes), func(i, j int) { sizes[i], sizes[j] = sizes[j], sizes[i] })
	g := &generator{ // fewer names and sizes, and less time, so that sessions affect each other
		Rand: r, history: h, theme: pick(r, historyThemes), files: files[:1+r.IntN(len(files))],
		sizes:   sizes[:1+r.IntN(len(sizes))],
		maxWait: pick(r, []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond}),
		long:    chance(r, 30) || h.Cut != nil && chance(r, 70),
	}
	if g.files = slices.Clone(g.files); len(g.theme) < 12 { // only few operations, on few names
		g.files, g.sizes = pick(r, [][]string{{"d/x"}, {"d/x", "e/x"}, {"d/x", "d/y", "e/x", "e/y"}}),
			sizes[:1+r.IntN(2)]
	}
	g.dirs = historyDirs
	if h.Quota == 0 && chance(r, 25) { // a quota counts only its own bucket
		g.files, g.dirs = append(g.files, inOther+g.files[0]),
			append(slices.Clone(historyDirs), inOther+"d", inOther+"e")
	}
	if chance(r, 20) || h.Abandoned > 0 { // a session that only sweeps
		g.sweeper = len(h.Sessions)
		h.Sessions = append(h.Sessions, sessionPlan{Replica: replicas, Skew: skews[replicas]})
	}
	if chance(r, 15) {
		g.duel()
		return h
	}
	steps := 3 + r.IntN(14)
	for _, name := range g.files[:r.IntN(len(g.files)+1)] {
		s := step{ID: len(h.Steps) + 1, Session: r.IntN(g.users()), First: true, Do: "stor", Name: name,
			Size: pick(r, g.sizes)}
		if s.Breaks = chance(r, 30); s.Breaks {
			s.Cut = r.IntN(s.Size + 1)
		}
		h.Steps = append(h.Steps, s)
		if h.Versions != "" && !s.Breaks && chance(r, 30) { // there is a delete marker below the file
			again := s
			again.ID = s.ID + 2
			h.Steps = append(
				h.Steps, step{ID: s.ID + 1, Session: s.Session, First: true, Do: "remove", Name: name}, again)
		}
		if s.Breaks {
			h.Steps = append(
				h.Steps, step{ID: s.ID + 1, Session: r.IntN(g.users()), First: true, Do: "size", Name: name})
		}
	}
	for range steps {
		h.Steps = append(h.Steps, g.step(len(h.Steps)+1))
	}
	return h
}

// halfMinute is a pause of a client after which others may take its upload over.
const halfMinute = 30 * time.Second

// A generator generates the steps of a history.
type generator struct {
	*rand.Rand
	*history
	theme, files, dirs []string
	sizes              []int
	maxWait            time.Duration // between the steps of a session
	long               bool          // some steps come minutes after the previous one
	sweeper            int           // the session of a replica that only sweeps; 0 for none
}

// historyThemes are lists of operations of a history. An operation that is listed several times is chosen more often.
var historyThemes = [][]string{
	{ // everything
		"stor", "stor", "stor", "stor", "stor", "appe", "appe", "appe", "rest", "resume", "resume", "size", "size",
		"read", "read",
		"rename", "rename", "rename-dir", "rename-dir", "copy", "copy-dir", "remove", "remove", "mkdir", "rmdir",
		"chtimes", "list", "cwd",
		"sweep", "quit", "die", "reload",
	},
	{ // uploads to one name
		"stor", "stor", "stor", "stor", "appe", "appe", "rest", "resume", "resume", "size", "size", "read", "remove",
		"list", "cwd", "quit",
	},
	{ // interrupted uploads that one session has seen and another one ends
		"stor", "stor", "stor", "appe", "appe", "rest", "resume", "size", "size", "remove",
	},
	{ // interrupted uploads whose directories change
		"stor", "stor", "stor", "stor", "resume", "resume", "resume", "size", "rename", "rename-dir", "rename-dir",
		"copy-dir", "remove", "rmdir", "mkdir",
	},
	{ // directories
		"stor", "stor", "stor", "stor", "rename", "rename-dir", "rename-dir", "copy-dir", "remove", "chtimes", "list",
	},
	{ // files that are replaced while they are moved
		"stor", "stor", "stor", "appe", "copy", "rename", "rename-dir", "chtimes",
	},
	{ // files that another S3 client changes
		"stor", "stor", "appe", "appe", "rest", "rename", "rename", "remove", "read", "size", "foreign-put",
		"foreign-put", "foreign-delete", "foreign-restore",
		"foreign-restore", "foreign-multipart", "foreign-abort",
	},
}

// duel lets two sessions work on one file within the time of a few requests, so that changes between a check and a
// write are likely.
func (h *generator) duel() {
	const file, other, short, long = "d/x", "d/y", 25 * time.Millisecond, 120 * time.Millisecond
	r, size := h.Rand, pick(h.Rand, []int{300, 2500, 5000})
	if h.users() < 2 {
		h.Sessions = append(h.Sessions, sessionPlan{Replica: len(h.Sessions), Owner: "alice"})
		h.sweeper = 0
	}
	// a file is stored while the last one in its directory is removed
	if keepsDirectories := h.Profile == "minio" || h.Profile == "versitygw" ||
		h.Profile == "seaweedfs"; keepsDirectories && chance(r, 50) {
		h.Emptying = true
		wait := func() time.Duration { return time.Duration(r.Int64N(int64(short))) }
		h.Steps = append(h.Steps, step{ID: 1, First: true, Do: "stor", Name: other, Size: size},
			step{ID: 2, Session: 0, Do: pick(r, []string{"stor", "appe"}), Name: file, Size: size, Wait: wait()},
			step{ID: 3, Session: 1, Do: "remove", Name: other, Wait: wait()})
		return
	}
	first := []string{"stor"}
	if chance(r, 50) { // in a bucket with versioning, there is a delete marker below the file
		first = []string{"stor", "remove", "stor"}
	}
	for _, do := range first {
		h.Steps = append(h.Steps, step{ID: len(h.Steps) + 1, First: true, Do: do, Name: file, Size: size})
	}
	theirs := []string{"stor", "stor", "stor", "appe", "remove", "chtimes"}
	if h.Quota == 0 {
		theirs = append(theirs, "foreign-put", "foreign-delete")
	}
	for i, do := range []string{pick(
		r, []string{"rename", "rename", "copy", "rename-dir", "rename-dir", "copy-dir", "appe", "chtimes",
			"remove"}), pick(r, theirs)} {
		s := step{ID: len(h.Steps) + 1, Session: i, Do: do, Name: file, To: "e/x", Size: size,
			Wait: time.Duration(r.Int64N(int64(long)))}
		if directory := strings.TrimSuffix(do, "-dir"); directory != do {
			s.Do, s.Name, s.To = directory, "d", "e"
		}
		if s.Do != "rename" && s.Do != "copy" {
			s.To = ""
		}
		h.Steps = append(h.Steps, s)
	}
}

// users returns the number of sessions that belong to users.
func (h *generator) users() int {
	if h.sweeper > 0 {
		return h.sweeper
	}
	return len(h.Sessions)
}

// stepsThat returns the steps so far with this operation.
func (h *generator) stepsThat(do string) []step {
	return slices.DeleteFunc(slices.Clone(h.Steps), func(s step) bool { return s.Do != do })
}

func (h *generator) step(id int) step {
	r := h.Rand
	if h.sweeper > 0 && chance(r, 15) {
		s := step{ID: id, Session: h.sweeper, Do: "sweep", Wait: time.Duration(r.IntN(200)) * time.Second}
		if h.Abandoned > 0 && chance(r, 70) {
			s.Age, s.Wait = h.Abandoned, time.Duration(r.Int64N(int64(h.Abandoned*3/2)))
		}
		return s
	}
	s := step{ID: id, Session: r.IntN(h.users()), Wait: time.Duration(r.Int64N(int64(h.maxWait))),
		Name: pick(r, h.files)}
	if h.long && chance(r, 15) {
		s.Wait = time.Duration(r.IntN(200)) * time.Second
		if h.Abandoned > 0 && chance(r, 50) {
			s.Wait = time.Duration(r.Int64N(int64(h.Abandoned * 3 / 2)))
		}
	}
	// a quota sees changes by other clients only in its next count
	if s.Do = pick(r, h.theme); h.Quota > 0 && strings.HasPrefix(s.Do, "foreign") {
		s.Do = "read"
	}
	switch s.Do {
	case "foreign-put":
		s.Size = pick(r, h.sizes)
	case "foreign-multipart":
		s.Size, s.Breaks = pick(r, h.sizes), chance(r, 30)
		s.Pause = pick(r, []time.Duration{0, time.Second, 3 * time.Minute})
	case "stor", "appe", "rest":
		s.Size = pick(r, h.sizes)
		// clients ask for the size before they resume
		if asked := h.stepsThat("size"); s.Do != "stor" && len(asked) > 0 && chance(r, 50) {
			of := pick(r, asked)
			s.Session, s.Name = of.Session, of.Name
		}
		if s.Do == "rest" {
			s.Offset = pick(r, []int{1, 300, 998, 999, historyPart, 1500})
		}
		if s.Breaks = chance(r, 30); s.Breaks {
			if s.Cut = r.IntN(s.Size + 1); chance(r, 20) {
				s.Cut = min(1000, s.Size)
			}
		}
		if chance(r, 30) {
			s.Pause = pick(r, []time.Duration{time.Second, 5 * time.Second, halfMinute, 5 * time.Minute})
		} else if chance(r, 10) {
			s.Pace = pick(r, []time.Duration{100 * time.Millisecond, 5 * time.Second, 9 * time.Second})
		}
	case "resume":
		broken := slices.DeleteFunc(h.stepsThat("stor"), func(s step) bool { return !s.Breaks && s.Pause < halfMinute })
		if len(broken) == 0 {
			s.Do = "size"
			break
		}
		of := pick(r, broken)
		s.Of, s.Name, s.Size = of.ID, of.Name, of.Size
		s.Do = pick(r, []string{"resume", "resume-append"})
		if !of.Breaks { // take the upload over while its client is silent, and be slow
			s.Wait, s.Pause = halfMinute/2+time.Duration(r.Int64N(int64(halfMinute/2))),
				pick(r, []time.Duration{0, halfMinute})
		}
	case "rename", "copy":
		s.To = pick(r, append(slices.Clone(h.files), "c"))
	case "rename-dir", "copy-dir", "mkdir", "rmdir", "list", "cwd":
		s.Name, s.To = pick(r, h.dirs), pick(r, h.dirs)
		if s.Do = strings.TrimSuffix(s.Do, "-dir"); s.Do != "rename" && s.Do != "copy" {
			s.To = ""
		}
	case "die", "quit", "sweep", "reload", "foreign-abort":
		s.Name = ""
		if s.Do == "die" && chance(r, 60) {
			s.Do, s.Name = "size", pick(r, h.files)
		}
	}
	for chance(r, 20) {
		f := stepFault{Request: 1 + r.IntN(6),
			Kind: pick(
				r, []string{"delay", "delay", "delay", "lose-request", "lose-response", "lose-response", "slow-down",
					"too-many",
					"refuse-three", "fail", "fail-performed", "fail-behind-ok", "fail-performed-behind-ok", "cut",
					"die"})}
		if f.Kind == "delay" {
			f.Delay = pick(r, []time.Duration{200 * time.Millisecond, time.Second, 4 * time.Second, 20 * time.Second})
		}
		s.Faults = append(s.Faults, f)
	}
	return s
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// chance returns true in this percentage of calls.
func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

// shrink removes everything from a history that is not needed to make it fail in the same way.
func (h *history) shrink(fails func(*history) bool) *history {
	try := func(change func(*history)) bool {
		next := *h
		next.Steps = slices.Clone(h.Steps)
		change(&next)
		if !fails(&next) {
			return false
		}
		h = &next
		return true
	}
	for again := true; again; {
		again = false
		for size := max(1, len(h.Steps)/2); size >= 1; size /= 2 {
			for at := 0; at+size <= len(h.Steps); {
				if try(func(next *history) { next.Steps = slices.Delete(next.Steps, at, at+size) }) {
					again = true
				} else {
					at += size
				}
			}
		}
		for i := range h.Steps {
			again = h.simplify(i, try) || again
		}
	}
	for _, change := range []func(*history){
		func(next *history) { next.Calm = true }, func(next *history) {
			next.Quota = 0
		}, func(next *history) { next.Copies = 0 },
		func(next *history) { next.Conflicts = false }, func(next *history) {
			next.Forgets = false
		}, func(next *history) { next.Throttled = 0 },
		func(next *history) { next.Opaque = false }, func(next *history) {
			next.Same = false
		}, func(next *history) { next.Ahead = 0 },
		func(next *history) { next.Page = 0 }, func(next *history) {
			next.Versions = "kept"
		}, func(next *history) { next.Versions = "" }, func(next *history) { next.Torn = false },
		func(next *history) { next.Emptying = false }, func(next *history) { next.Attributes = false },
		func(next *history) { next.Abandoned = 0 }, func(next *history) { next.Cut = nil },
		func(next *history) {
			next.Sessions = slices.Clone(next.Sessions)
			for i := range next.Sessions {
				next.Sessions[i].Part, next.Sessions[i].Skew = 0, 0
			}
		},
		func(next *history) { next.Profile = "aws" },
	} {
		try(change)
	}
	return h
}

// simplify removes everything from a step except its operation, as far as the history still fails.
func (h *history) simplify(i int, try func(func(*history)) bool) bool {
	simpler := false
	for k := len(h.Steps[i].Faults) - 1; k >= 0; k-- {
		simpler = try(func(next *history) {
			next.Steps[i].Faults = slices.Delete(slices.Clone(next.Steps[i].Faults), k, k+1)
			if len(next.Steps[i].Faults) == 0 {
				next.Steps[i].Faults = nil
			}
		}) || simpler
	}
	if h.Steps[i].Pause > 0 {
		simpler = try(func(next *history) { next.Steps[i].Pause = 0 }) || simpler
	}
	if h.Steps[i].Pace > 0 {
		simpler = try(func(next *history) { next.Steps[i].Pace = 0 }) || simpler
	}
	if h.Steps[i].Wait > 0 {
		simpler = try(func(next *history) { next.Steps[i].Wait = 0 }) || simpler
	}
	return simpler
}
