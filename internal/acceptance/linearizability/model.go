package linearizability

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Rules are what a tenant's configuration promises.
type Rules struct {
	Deny bool // overwrite: deny

	// Versions says that the bucket is on MinIO and keeps versions. MinIO orders them by a time that it takes before it
	// stores them.
	Versions bool

	// Ghosts says that S3 may list a file as a directory while it is deleted, as MinIO does. There the file is a
	// directory with a file in it, which is removed first.
	Ghosts bool
}

// A step is what a command does at one moment.
type step struct {
	kind    stepKind
	command int // its number in the history
	source  *Command
	file    int // its number among the names
	target  int // of a rename
	size    int64
	whole   bool // got is the whole content
	got     string
	deny    bool          // an existing file stays
	from    time.Duration // not before
	dated   bool          // it stores what was dated by a step before
	doubt   bool          // any outcome is possible

	// Of a directory:
	below    []int // the names in it
	vanished bool  // RMD may find nothing
}

type stepKind int

const (
	readAbsent   stepKind = iota // there is no file
	readFile                     // there is one of this size, perhaps with this content
	readPresent                  // there is one
	readTooShort                 // there is none that reaches to the offset
	store
	add
	splice
	seeDeleted // what DELE does before it deletes
	remove
	readSource
	giveUp // a settled rename writes nothing from now on
	writeTarget
	lookAtSource
	removeSource
	refusedRename // no source, or a target that stays
	anything      // all states explain it
	never         // no state does
)

// Steps for a directory.
const (
	readDirectory  stepKind = iota + never + 1 // there is a marker, or a file below
	readNoneOrFull                             // there is no marker, or a file below
	seeMarker                                  // what RMD does before it deletes
	mark                                       // what MKD does where there is no marker
)

// date is when MinIO takes the time of what STOR and RNTO store, in a bucket that keeps versions.
const date stepKind = mark + 1

// A file is what a name has.
type file struct {
	there   bool
	content string
	version int // the number of the command that has stored it, plus one
}

// stored is the file that a step stores.
func (p step) stored(content string) file {
	return file{there: true, content: content, version: p.command + 1}
}

// hash adds what tells most files apart. Files of many bytes differ at the end, and would take long.
func (f file) hash(h *maphash.Hash) {
	const enough = 64
	maphash.WriteComparable(h, [2]any{f.there, len(f.content)})
	h.WriteString(f.content[max(0, len(f.content)-enough):])
	maphash.WriteComparable(h, f.version)
}

// A holding is how far a command of several steps has come.
type holding struct {
	command int
	file    file // what a rename has read
	written bool // and written
	looked  bool // and looked at again
	gaveUp  bool

	dated     int  // the name that it is about to store, plus one
	overtaken bool // a conditional write has changed the name since
	covered   bool // a rename has deleted it since
}

// A state is all names, and the commands that are on their way. It is never changed.
type state struct {
	files []file
	held  []holding // sorted by command
}

func (s state) with(number int, f file) state {
	s.files = slices.Clone(s.files)
	s.files[number] = f
	return s
}

// overtake notes that a conditional write has changed a name, for what was dated before and is stored later.
func (s state) overtake(number int) state {
	return s.noteDated(number, func(h *holding) { h.overtaken = true })
}

// cover notes that a rename has put a delete marker on a name, for what was dated before and is stored later.
func (s state) cover(number int) state {
	return s.noteDated(number, func(h *holding) { h.covered = true })
}

// noteDated notes something of the commands that have dated what they are about to store under a name.
func (s state) noteDated(number int, note func(*holding)) state {
	dated := func(h holding) bool { return h.dated == number+1 }
	if slices.ContainsFunc(s.held, dated) {
		s.held = slices.Clone(s.held)
		for i := range s.held {
			if dated(s.held[i]) {
				note(&s.held[i])
			}
		}
	}
	return s
}

func (s state) find(command int) (holding, bool) {
	i, found := slices.BinarySearchFunc(s.held, command, func(h holding, c int) int {
		return cmp.Compare(h.command, c)
	})
	if !found {
		return holding{}, false
	}
	return s.held[i], true
}

func (s state) hold(h holding) state {
	s = s.release(h.command)
	i, _ := slices.BinarySearchFunc(s.held, h.command, func(h holding, c int) int { return cmp.Compare(h.command, c) })
	s.held = slices.Insert(slices.Clone(s.held), i, h)
	return s
}

func (s state) release(command int) state {
	s.held = slices.DeleteFunc(slices.Clone(s.held), func(h holding) bool { return h.command == command })
	return s
}

func equalStates(a, b state) bool {
	return slices.Equal(a.files, b.files) && slices.Equal(a.held, b.held)
}

// apply does a step. It returns false where the register cannot have answered like this.
func (s state) apply(p step) (state, bool) {
	f := s.files[p.file]
	switch p.kind {
	case anything:
		return s, true
	case never:
		return s, false
	case readAbsent:
		return s, !f.there
	case readPresent:
		return s, f.there
	case readFile:
		return s, f.there && int64(len(f.content)) == p.size && (!p.whole || f.content == p.got)
	case readTooShort:
		return s, !f.there || int64(len(f.content)) < p.source.Offset
	case date:
		h, begun := s.find(p.command)
		if p.source.Verb != "RNTO" {
			return s.hold(holding{command: p.command, dated: p.file + 1}), true
		}
		h.dated = p.target + 1
		return s.hold(h), begun && !h.written
	case store:
		if p.deny && f.there {
			return s, p.doubt
		}
		if p.dated {
			h, begun := s.find(p.command)
			s = s.release(p.command)
			if !begun || h.overtaken || h.covered {
				return s, begun // what it stores is an older version at once
			}
		}
		return s.with(p.file, p.stored(p.source.Data)), true
	case add:
		return s.with(p.file, p.stored(f.content+p.source.Data)).overtake(p.file), true
	case splice:
		at, data := p.source.Offset, p.source.Data
		if !f.there || int64(len(f.content)) < at {
			return s, p.doubt
		}
		end := min(at+int64(len(data)), int64(len(f.content)))
		return s.with(p.file, p.stored(f.content[:at]+data+f.content[end:])).overtake(p.file), true
	case readDirectory:
		return s, f.there || s.anyOf(p.below)
	case readNoneOrFull:
		return s, !f.there || s.anyOf(p.below)
	case mark:
		return s.with(p.file, p.stored("")), !f.there || p.doubt
	case seeDeleted, seeMarker:
		return s.hold(holding{command: p.command}), f.there
	case remove:
		if _, seen := s.find(p.command); !seen && !p.doubt && !p.vanished {
			return s, false
		}
		return s.release(p.command).with(p.file, file{}), true
	default:
		return s.rename(p, f)
	}
}

// anyOf tells whether one of some files is there.
func (s state) anyOf(files []int) bool {
	return slices.ContainsFunc(files, func(number int) bool { return s.files[number].there })
}

// rename does a step of a rename.
func (s state) rename(p step, source file) (state, bool) {
	switch p.kind {
	case refusedRename:
		return s, !source.there || p.deny && s.files[p.target].there
	case readSource:
		return s.hold(holding{command: p.command, file: source}), source.there || p.doubt
	case giveUp:
		h, begun := s.find(p.command)
		if !begun {
			return s, false
		}
		if h.written {
			return s.release(p.command), true
		}
		h.gaveUp = true
		return s.hold(h), true
	case writeTarget:
		h, begun := s.find(p.command)
		if h.gaveUp {
			return s.release(p.command), true
		}
		if !begun || h.written || p.dated && h.dated == 0 {
			return s, false
		}
		overtaken := h.overtaken
		h.dated, h.overtaken = 0, false
		if p.deny && s.files[p.target].there && !p.doubt {
			return s, false
		}
		if !h.file.there || p.deny && s.files[p.target].there {
			h.file = file{} // it deletes nothing
		} else if !overtaken {
			s = s.with(p.target, p.stored(h.file.content))
		}
		h.written = true
		return s.hold(h), true
	case lookAtSource:
		h, begun := s.find(p.command)
		if !begun || !h.written {
			return s, false
		}
		same := source.version == h.file.version || !source.there
		if h.looked = true; !same || !source.there {
			h.file = file{} // it deletes nothing
		}
		return s.hold(h), same || p.doubt
	default: // removeSource
		h, begun := s.find(p.command)
		if !begun || !h.looked {
			return s, false
		}
		s = s.release(p.command)
		switch {
		case !h.file.there, !source.there:
			return s, true
		case source.content == h.file.content, p.source.Blind:
			return s.with(p.file, file{}).cover(p.file), true
		}
		return s, p.doubt
	}
}

// steps takes a command apart.
func (r Rules) steps(number int, h History, names map[string]int) []step {
	c := &h[number]
	p := step{
		command: number, source: c, file: names[c.Name], target: names[c.To], deny: r.Deny,
		doubt: c.inDoubt() || c.Settled,
		below: below(c.Name, names), vanished: c.Seen,
		dated: r.Versions && !r.Deny && (h.mayBeOvertaken(c) || h.mayBeCovered(c)),
	}
	of := func(kinds ...stepKind) []step {
		steps := make([]step, len(kinds))
		for i, kind := range kinds {
			steps[i] = p
			if steps[i].kind = kind; kind == lookAtSource {
				steps[i].from = c.Looked
			}
		}
		return steps
	}
	done := c.Code/100 == 2
	switch {
	case c.Verb == "MLSD":
		return r.listed(h, p, names)
	case c.Settled && c.Verb != "RNTO":
		return nil
	case isDirectory(c.Name):
		return p.directory()
	case c.Code/100 == 5:
		return of(r.refusal(c))
	case c.isRead() && done:
		p.size, p.whole, p.got = c.Size, c.Verb == "RETR", c.Got
		if p.whole {
			p.size = int64(len(c.Got))
		}
		return of(readFile)
	case c.isRead():
		return nil
	}
	switch c.Verb {
	case "STOR", "KEEP":
		if p.dated {
			return of(date, store)
		}
		return of(store)
	case "APPE":
		return of(add)
	case "REST":
		return of(splice)
	case "DELE":
		if p.doubt {
			return of(remove)
		}
		return of(seeDeleted, remove)
	case "RNTO":
		if c.Settled {
			return of(readSource, giveUp, writeTarget)
		}
		kinds := []stepKind{readSource}
		if p.dated {
			kinds = append(kinds, date)
		}
		return of(append(kinds, writeTarget, lookAtSource, removeSource)...)
	default:
		panic(c.Verb)
	}
}

// refusal is what a reply 5xx has seen: the command has no effect.
func (r Rules) refusal(c *Command) stepKind {
	switch {
	case c.Code == 550 && (c.isRead() || c.Verb == "DELE" || c.Verb == "APPE" && !r.Deny):
		return readAbsent
	case c.Verb == "RNTO" && (c.Code == 550 || c.Code == 553):
		return refusedRename
	case c.Verb == "KEEP", r.Deny && c.Verb == "REST":
		return anything
	case c.Verb == "REST":
		return readTooShort
	case r.Deny && (c.Verb == "STOR" || c.Verb == "APPE"):
		return readPresent
	}
	return never
}

// listed are the reads of MLSD: one of each name.
func (r Rules) listed(h History, p step, names map[string]int) []step {
	p.below = nil
	var steps []step
	for name, number := range names {
		if strings.HasPrefix(name, elsewhere) || directoryOf(name) != p.source.Name {
			continue
		}
		q := p
		q.file, q.below = number, below(name, names)
		size, found := p.source.Listing[name]
		switch {
		case p.source.Code/100 != 2 || !found:
			steps = append(steps, q.absent()...)
			continue
		case r.Ghosts && isDirectory(name) && h.deletedDuring(strings.TrimSuffix(name, "/"), p.source):
			continue
		case isDirectory(name):
			q.kind = readDirectory
		default:
			q.kind, q.size = readFile, size
		}
		steps = append(steps, q)
	}
	switch {
	case p.source.Code/100 == 2:
		return steps
	case p.source.Code == 550 && isDirectory(p.source.Name):
		p.kind = readAbsent
		return append(steps, p)
	case p.source.Code/100 == 5:
		p.kind = never
		return []step{p}
	}
	return nil
}

// directory are the steps of MKD and RMD. Both look by a listing, which is no snapshot.
func (p step) directory() []step {
	makes, done := p.source.Verb == "MKD", p.source.Code/100 == 2
	switch {
	case p.source.Code == 550 && makes:
		p.kind = readDirectory
		return []step{p}
	case p.source.Code == 550:
		p.kind = readNoneOrFull
		return []step{p}
	case p.source.Code/100 == 5:
		p.kind = never
		return []step{p}
	}
	var steps []step
	if done {
		q := p
		for _, q.file = range p.below {
			q.kind = readAbsent
			steps = append(steps, q)
		}
	}
	if done && !makes && !p.vanished {
		p.kind = seeMarker
		steps = append(steps, p)
	}
	if p.kind = remove; makes {
		p.kind = mark
	}
	return append(steps, p)
}

// absent are the reads of a listing that does not show a name. A directory shows while it has a marker, or a file.
func (p step) absent() (steps []step) {
	p.kind = readAbsent
	for _, p.file = range append([]int{p.file}, p.below...) {
		steps = append(steps, p)
	}
	return steps
}

// below are the names in a directory.
func below(directory string, names map[string]int) (numbers []int) {
	for name, number := range names {
		if isDirectory(directory) && name != directory && strings.HasPrefix(name, directory) {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// operations is the history as porcupine takes it.
func (r Rules) operations(h History) (operations []porcupine.Operation, names []string) {
	names = h.names()
	numbers := map[string]int{}
	for i, name := range names {
		numbers[name] = i
	}
	for number := range h {
		c := &h[number]
		for _, p := range r.steps(number, h, numbers) {
			end := int64(c.Return)
			if c.inDoubt() {
				end = math.MaxInt64
			}
			operations = append(
				operations, porcupine.Operation{
					ClientId: c.Client, Input: p, Call: int64(max(c.Call, p.from)), Return: end,
				})
		}
	}
	return operations, names
}

// partition divides operations into groups of names that renames and directories connect.
func partition(operations []porcupine.Operation, names int) [][]porcupine.Operation {
	group := make([]int, names)
	for i := range group {
		group[i] = i
	}
	connect := func(a, b int) {
		from, to := group[a], group[b]
		for i := range group {
			if group[i] == from {
				group[i] = to
			}
		}
	}
	for _, o := range operations {
		p := o.Input.(step)
		if p.source.Verb == "RNTO" {
			connect(p.file, p.target)
		}
		for _, number := range p.below {
			connect(p.file, number)
		}
	}
	parts := make([][]porcupine.Operation, names)
	for _, o := range operations {
		n := group[o.Input.(step).file]
		parts[n] = append(parts[n], o)
	}
	return slices.DeleteFunc(parts, func(part []porcupine.Operation) bool { return len(part) == 0 })
}

// model is the names as registers.
func model(names []string) porcupine.Model {
	seed := maphash.MakeSeed()
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			return partition(history, len(names))
		},
		Init: func() any { return state{files: make([]file, len(names))} },
		Step: func(s, input, _ any) (bool, any) {
			next, ok := s.(state).apply(input.(step))
			return ok, next
		},
		Equal: func(a, b any) bool { return equalStates(a.(state), b.(state)) },
		Hash: func(s any) uint64 {
			var h maphash.Hash
			h.SetSeed(seed)
			for _, f := range s.(state).files {
				f.hash(&h)
			}
			for _, held := range s.(state).held {
				held.file.hash(&h)
				held.file = file{}
				maphash.WriteComparable(&h, held)
			}
			return h.Sum64()
		},
		DescribeOperation: func(input, _ any) string {
			p := input.(step)
			what := map[stepKind]string{
				date: "takes the time: ", seeDeleted: "looks: ", seeMarker: "looks: ", remove: "deletes: ", readSource: "reads: ",
				writeTarget: "writes: ", lookAtSource: "looks: ", removeSource: "deletes: ",
			}[p.kind]
			if p.source.Verb == "MLSD" {
				what = names[p.file] + " in: "
			}
			return what + p.source.String()
		},
		DescribeState: func(s any) string {
			var texts []string
			for i, f := range s.(state).files {
				if f.there {
					texts = append(texts, names[i]+"="+shown(f.content))
				}
			}
			return fmt.Sprintf("{%s}", strings.Join(texts, ", "))
		},
	}
}

// A Verdict says whether registers explain a history.
type Verdict string

const (
	// Explained says that there is an order of all commands that agrees with each reply.
	Explained Verdict = "explained"

	// Unexplained says that there is no such order.
	Unexplained Verdict = "not linearizable"

	// Undecided says that the time was too short to know.
	Undecided Verdict = "undecided in time"
)

// Check judges a history. It gives up after a time.
func (r Rules) Check(h History, patience time.Duration) Verdict {
	operations, names := r.operations(h)
	if slices.ContainsFunc(operations, func(o porcupine.Operation) bool { return o.Input.(step).kind == never }) {
		return Unexplained // porcupine would try all orders of the others
	}
	switch porcupine.CheckOperationsTimeout(model(names), operations, patience) {
	case porcupine.Ok:
		return Explained
	case porcupine.Illegal:
		return Unexplained
	default:
		return Undecided
	}
}

// Visualize writes a page that shows a history, and how far it can be explained.
func (r Rules) Visualize(h History, patience time.Duration, path string) error {
	operations, names := r.operations(h)
	last := int64(0)
	for _, c := range h {
		last = max(last, int64(c.Return))
	}
	for i := range operations { // the page has no room for eternity
		operations[i].Return = min(operations[i].Return, last+int64(time.Second))
	}
	m := model(names)
	_, info := porcupine.CheckOperationsVerbose(m, operations, patience)
	return porcupine.VisualizePath(m, info, path)
}
