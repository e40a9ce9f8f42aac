package linearizability

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// A Team is a group of clients that play one history after another on the same replicas.
type Team struct {
	Number         int             // distinguishes the teams that use the same bucket
	Replicas       []func() string // current addresses of the control connections
	User, Password string
	Rules          Rules
	Faults         *Faults
	Large          string // beginning of a file with more than one part; empty for no such files

	// Elsewhere means that the directory /elsewhere is another bucket of the same account.
	Elsewhere bool

	// Keeper is the name of a user whose interrupted uploads are kept, with %d for the number of the client. If it
	// is empty, no uploads are resumed.
	Keeper string

	// Excuse means that the S3 server has no conditional delete. See [Plan.Excuse].
	Excuse bool

	// Steady means that the replicas keep running and can reach the S3 server. See [Plan.Settle].
	Steady bool

	clients []*client
	done    int
	head    string // cached result of keptHead
}

// keptHead returns the common beginning of the team's resumed files.
func (t *Team) keptHead() string {
	if t.head == "" {
		t.head = strings.Repeat("k", keptSize)
	}
	return t.head
}

// A Record is a history together with the S3 requests of its replicas.
type Record struct {
	Seed    uint64
	History History
	Log     string // S3 requests
	Faults  int    // injected faults
}

// Limits of a history.
const (
	leastClients, mostClients   = 3, 6
	leastCommands, mostCommands = 6, 14 // per client
	mostNames                   = 3
	longestPause                = 40 * time.Millisecond
	longestRest                 = 400 * time.Millisecond
)

// A script defines what the clients of a history may do.
type script struct {
	names    []string
	folder   string   // directory of some of the names, empty for none
	contents []string // contents that several clients store
	unique   int      // how many of ten contents are stored by one client only
	verbs    []string // repeated by weight
	commands int
}

func (t *Team) newScript(random *rand.Rand) script {
	s := script{commands: leastCommands + random.IntN(mostCommands-leastCommands+1)}
	count := []int{1, 1, 1, 2, 2, mostNames}[random.IntN(6)]
	for i := range count {
		s.names = append(s.names, string(rune('a'+i)))
	}
	switch {
	case t.Elsewhere && count > 1 && random.IntN(3) == 0:
		s.names[count-1] = elsewhere + s.names[count-1]
	case t.Keeper == "" && random.IntN(3) == 0:
		s.folder = "d/"
		for i := random.IntN(count); i < count; i++ {
			s.names[i] = s.folder + s.names[i]
		}
	}
	s.contents = [][]string{{"b"}, {"b", "b", ""}, {""}, {"b", "bb"}}[random.IntN(4)]
	s.unique = []int{0, 2, 5}[random.IntN(3)]
	add := func(verb string, often int) {
		for range often {
			s.verbs = append(s.verbs, verb)
		}
	}
	add("STOR", 3+random.IntN(4))
	if t.Keeper == "" { // with resumed uploads, the result of these would depend on when the upload is resumed
		add("APPE", random.IntN(5))
		add("REST", random.IntN(2))
	} else {
		add("KEEP", 2)
	}
	add("DELE", 1+random.IntN(3))
	if count > 1 {
		add("RNTO", 1+random.IntN(5))
	}
	add("RETR", 2)
	add("SIZE", 2+random.IntN(3))
	add("MLST", 1)
	add("MLSD", 1)
	if s.folder != "" {
		add("MKD", 2+random.IntN(4))
		add("RMD", 2+random.IntN(4))
		add("MLSD", 2)
	}
	return s
}

// command picks a random command. known holds the sizes that the client has seen.
func (s *script) command(random *rand.Rand, client, number int, known map[string]int64, large string) Command {
	c := Command{Verb: s.verbs[random.IntN(len(s.verbs))], Name: s.names[random.IntN(len(s.names))]}
	c.Data = s.contents[random.IntN(len(s.contents))]
	if random.IntN(10) < s.unique {
		c.Data = fmt.Sprintf("%d-%d ", client, number)
	}
	switch c.Verb {
	case "RNTO":
		for c.To == "" || c.To == c.Name {
			c.To = s.names[random.IntN(len(s.names))]
		}
	case "REST":
		if c.Offset = known[c.Name]; c.Offset == 0 || random.IntN(2) == 0 {
			c.Offset = 1
		}
	case "MLSD":
		if c.Name = ""; random.IntN(2) == 0 {
			c.Name = s.folder
		}
	case "MKD", "RMD":
		c.Name = s.folder
	}
	const seldom = 3
	switch c.Verb {
	case "STOR":
		if large != "" && random.IntN(seldom) == 0 {
			c.Data = large + c.Data
		}
	case "APPE", "REST":
	default:
		c.Data = ""
	}
	return c
}

// A recorder collects the commands of all clients.
type recorder struct {
	mu       sync.Mutex
	commands History
	contents map[string]string // interns contents, so that comparing equal ones is fast
}

func (r *recorder) add(c Command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.Data, c.Got = r.once(c.Data), r.once(c.Got)
	r.commands = append(r.commands, c)
}

// once returns the first recorded string with the same bytes.
func (r *recorder) once(content string) string {
	if r.contents == nil {
		r.contents = map[string]string{}
	}
	if first, known := r.contents[content]; known {
		return first
	}
	r.contents[content] = content
	return content
}

// Play runs one history, with or without faults.
func (t *Team) Play(ctx context.Context, seed uint64, faults bool) (*Record, error) {
	random := rand.New(rand.NewPCG(seed, 0))
	s := t.newScript(random)
	clients := leastClients + random.IntN(mostClients-leastClients+1)
	for len(t.clients) < clients {
		c := &client{team: t, number: len(t.clients), user: t.User}
		if t.Keeper != "" {
			c.keeper = c.newKeeper()
		}
		t.clients = append(t.clients, c)
	}
	t.done++
	dir := fmt.Sprintf("history-%d-%d", t.Number, t.done)
	if err := t.makeDirectory(ctx, random, dir); err != nil {
		return nil, err
	}
	plan := t.Faults.begin(dir, seed, faults)
	defer t.Faults.end(plan)

	var all sync.WaitGroup
	var recorded recorder
	errs := make([]error, clients)
	for i, c := range t.clients[:clients] {
		all.Go(func() {
			errs[i] = c.work(ctx, rand.New(rand.NewPCG(seed, uint64(i)+2)), s, dir, plan, &recorded)
		})
	}
	all.Wait()
	plan.calm()
	err := errors.Join(append(errs, t.finish(ctx, random, s, dir, plan, &recorded))...)
	h := recorded.commands.sorted()
	h.markSeen()
	if t.Steady {
		plan.Settle(h)
	}
	if t.Excuse {
		plan.Excuse(h)
	}
	return &Record{seed, h, plan.Log() + t.Faults.recordsLog(), plan.count()}, err
}

// makeDirectory creates the directory of a history explicitly, so that it stays when its files are deleted.
func (t *Team) makeDirectory(ctx context.Context, random *rand.Rand, dir string) error {
	c := t.clients[0]
	for {
		if err := c.connect(ctx, random); err != nil {
			return err
		}
		code, err := reply(c.conn.Send("MKD /" + dir))
		switch {
		case err != nil || code == 421:
			c.hangUp()
		case code == 257, code == 550: // 550 if the directory was made and the reply was lost
			return nil
		}
		if err := pause(ctx, connectPause); err != nil {
			return err
		}
	}
}

// work runs the commands of one client.
func (c *client) work(
	ctx context.Context, random *rand.Rand, s script, dir string, plan *Plan, recorded *recorder,
) error {
	const seldom = 8 // one in this many
	if random.IntN(seldom) == 0 {
		c.hangUp()
	}
	known := map[string]int64{}
	for number := range s.commands {
		wait := longestPause
		if random.IntN(seldom) == 0 {
			wait = longestRest
		}
		if err := pause(ctx, time.Duration(random.Int64N(int64(wait)))); err != nil {
			return err
		}
		if err := c.connect(ctx, random); err != nil {
			return err
		}
		cmd := s.command(random, c.number, number, known, c.team.Large)
		if cmd.Verb == "KEEP" {
			if err := c.keeper.keep(ctx, random, cmd.Name, "/"+dir, number, plan.now, recorded); err != nil {
				return err
			}
			continue
		}
		if err := c.do(&cmd, "/"+dir, plan.now); !errors.Is(err, errNotSent) {
			recorded.add(cmd)
		}
		if cmd.Code/100 == 2 && (cmd.Verb == "SIZE" || cmd.Verb == "MLST") {
			known[cmd.Name] = cmd.Size
		}
	}
	return nil
}

// finish reads all names after the faults have stopped.
func (t *Team) finish(
	ctx context.Context, random *rand.Rand, s script, dir string, plan *Plan, recorded *recorder,
) error {
	c := t.clients[0]
	ends := []Command{{Verb: "MLSD"}}
	if s.folder != "" {
		ends = append(ends, Command{Verb: "MLSD", Name: s.folder})
	}
	for _, name := range s.names {
		ends = append(ends, Command{Verb: "RETR", Name: name})
	}
	for _, end := range ends {
		for read := false; !read; {
			if err := c.connect(ctx, random); err != nil {
				return err
			}
			cmd := end
			err := c.do(&cmd, "/"+dir, plan.now)
			if read = err == nil && cmd.Code/100 != 4; read {
				recorded.add(cmd)
			} else if err := pause(ctx, connectPause); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close ends all sessions.
func (t *Team) Close() {
	for _, c := range t.clients {
		c.hangUp()
		if c.keeper != nil {
			c.keeper.hangUp()
		}
	}
}
