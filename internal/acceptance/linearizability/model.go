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

// Rules describe the guarantees of a tenant's configuration and the known deviations of its S3 server.
type Rules struct {
	Deny bool // overwrite: deny

	// Versions is set for a MinIO bucket that keeps versions. MinIO orders versions by a time that it takes before
	// it stores them.
	Versions bool

	// Ghosts is set if S3 may list a file as a directory while the file is being deleted. MinIO stores a file as a
	// directory with a file in it and removes that file first.
	Ghosts bool
}

// A step is one atomic part of a command.
type step struct {
	kind    stepKind
	command int // index in the history
	source  *Command
	file    int // index of the name
	target  int // index of the target of a rename
	size    int64
	whole   bool // got is the whole content
	got     string
	deny    bool          // do not overwrite an existing file
	from    time.Duration // earliest start
	dated   bool          // the time was taken in an earlier date step
	doubt   bool          // any outcome is possible

	// For directories:
	below    []int // indexes of the names in the directory
	vanished bool  // RMD need not find a marker
}

type stepKind int

const (
	readAbsent   stepKind = iota // the file does not exist
	readFile                     // the file has this size, and this content if whole is set
	readPresent                  // the file exists
	readTooShort                 // the file does not exist or is shorter than the offset
	store
	add
	splice
	seeDeleted // DELE finds a file before it deletes
	remove
	readSource
	giveUp // a settled rename writes nothing from here on
	writeTarget
	checkSource
	removeSource
	refusedRename // the source is missing, or the target exists under deny
	anything      // every state explains the reply
	never         // no state explains the reply
)

// Steps for directories.
const (
	readDirectory  stepKind = iota + never + 1 // a marker or a file in the directory exists
	readNoneOrFull                             // the marker does not exist, or the directory contains a file
	seeMarker                                  // RMD finds the marker before it deletes
	mark                                       // MKD creates the marker
)

// date is the step in which MinIO takes the time for an object that STOR or RNTO stores, in a bucket that keeps
// versions.
const date stepKind = mark + 1

// A file is the value of a register.
type file struct {
	exists  bool
	content string
	version int // index of the command that stored it, plus one
}

func (p step) stored(content string) file {
	return file{exists: true, content: content, version: p.command + 1}
}

// hash adds enough of the file to tell most files apart. Large files differ at the end, and hashing all their bytes
// would be slow.
func (f file) hash(h *maphash.Hash) {
	const enough = 64
	maphash.WriteComparable(h, [2]any{f.exists, len(f.content)})
	h.WriteString(f.content[max(0, len(f.content)-enough):])
	maphash.WriteComparable(h, f.version)
}

// A progress records how far a command with several steps has come.
type progress struct {
	command int
	file    file // the file that a rename read
	written bool // the rename wrote the target
	checked bool // the rename checked the source again
	gaveUp  bool

	dated     int  // index of the name that the command is about to store, plus one
	overtaken bool // a conditional write has changed the name since
	covered   bool // a rename has deleted the name since
}

// A state holds all registers and the commands in progress. States are immutable.
type state struct {
	files      []file
	inProgress []progress // sorted by command
}

func (s state) with(number int, f file) state {
	s.files = slices.Clone(s.files)
	s.files[number] = f
	return s
}

// overtake marks the commands that took their time for a name and have not stored it yet, when a conditional write
// changes the name.
func (s state) overtake(number int) state {
	return s.noteDated(number, func(h *progress) { h.overtaken = true })
}

// cover marks the commands that took their time for a name and have not stored it yet, when a rename writes a delete
// marker.
func (s state) cover(number int) state {
	return s.noteDated(number, func(h *progress) { h.covered = true })
}

// noteDated applies note to the commands that have taken their time for a name and have not stored it yet.
func (s state) noteDated(number int, note func(*progress)) state {
	dated := func(h progress) bool { return h.dated == number+1 }
	if slices.ContainsFunc(s.inProgress, dated) {
		s.inProgress = slices.Clone(s.inProgress)
		for i := range s.inProgress {
			if dated(s.inProgress[i]) {
				note(&s.inProgress[i])
			}
		}
	}
	return s
}

func (s state) find(command int) (progress, bool) {
	i, found := slices.BinarySearchFunc(s.inProgress, command, func(h progress, c int) int {
		return cmp.Compare(h.command, c)
	})
	if !found {
		return progress{}, false
	}
	return s.inProgress[i], true
}

func (s state) hold(h progress) state {
	s = s.release(h.command)
	i, _ := slices.BinarySearchFunc(s.inProgress, h.command, func(h progress, c int) int {
		return cmp.Compare(h.command, c)
	})
	s.inProgress = slices.Insert(slices.Clone(s.inProgress), i, h)
	return s
}

func (s state) release(command int) state {
	s.inProgress = slices.DeleteFunc(slices.Clone(s.inProgress), func(h progress) bool { return h.command == command })
	return s
}

func equalStates(a, b state) bool {
	return slices.Equal(a.files, b.files) && slices.Equal(a.inProgress, b.inProgress)
}

// apply runs a step. It returns false if the reply is impossible in this state.
func (s state) apply(p step) (state, bool) {
	f := s.files[p.file]
	switch p.kind {
	case anything:
		return s, true
	case never:
		return s, false
	case readAbsent:
		return s, !f.exists
	case readPresent:
		return s, f.exists
	case readFile:
		return s, f.exists && int64(len(f.content)) == p.size && (!p.whole || f.content == p.got)
	case readTooShort:
		return s, !f.exists || int64(len(f.content)) < p.source.Offset
	case date:
		h, begun := s.find(p.command)
		if p.source.Verb != "RNTO" {
			return s.hold(progress{command: p.command, dated: p.file + 1}), true
		}
		h.dated = p.target + 1
		return s.hold(h), begun && !h.written
	case store:
		if p.deny && f.exists {
			return s, p.doubt
		}
		if p.dated {
			h, begun := s.find(p.command)
			s = s.release(p.command)
			if !begun || h.overtaken || h.covered {
				return s, begun // the new version is older than the current one
			}
		}
		return s.with(p.file, p.stored(p.source.Data)), true
	case add:
		return s.with(p.file, p.stored(f.content+p.source.Data)).overtake(p.file), true
	case splice:
		at, data := p.source.Offset, p.source.Data
		if !f.exists || int64(len(f.content)) < at {
			return s, p.doubt
		}
		end := min(at+int64(len(data)), int64(len(f.content)))
		return s.with(p.file, p.stored(f.content[:at]+data+f.content[end:])).overtake(p.file), true
	case readDirectory:
		return s, f.exists || s.anyExists(p.below)
	case readNoneOrFull:
		return s, !f.exists || s.anyExists(p.below)
	case mark:
		return s.with(p.file, p.stored("")), !f.exists || p.doubt
	case seeDeleted, seeMarker:
		return s.hold(progress{command: p.command}), f.exists
	case remove:
		if _, seen := s.find(p.command); !seen && !p.doubt && !p.vanished {
			return s, false
		}
		return s.release(p.command).with(p.file, file{}), true
	default:
		return s.rename(p, f)
	}
}

func (s state) anyExists(files []int) bool {
	return slices.ContainsFunc(files, func(number int) bool { return s.files[number].exists })
}

// rename runs a step of a rename.
func (s state) rename(p step, source file) (state, bool) {
	switch p.kind {
	case refusedRename:
		return s, !source.exists || p.deny && s.files[p.target].exists
	case readSource:
		return s.hold(progress{command: p.command, file: source}), source.exists || p.doubt
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
		if p.deny && s.files[p.target].exists && !p.doubt {
			return s, false
		}
		if !h.file.exists || p.deny && s.files[p.target].exists {
			h.file = file{} // nothing to delete
		} else if !overtaken {
			s = s.with(p.target, p.stored(h.file.content))
		}
		h.written = true
		return s.hold(h), true
	case checkSource:
		h, begun := s.find(p.command)
		if !begun || !h.written {
			return s, false
		}
		same := source.version == h.file.version || !source.exists
		if h.checked = true; !same || !source.exists {
			h.file = file{} // nothing to delete
		}
		return s.hold(h), same || p.doubt
	default: // removeSource
		h, begun := s.find(p.command)
		if !begun || !h.checked {
			return s, false
		}
		s = s.release(p.command)
		switch {
		case !h.file.exists, !source.exists:
			return s, true
		case source.content == h.file.content, p.source.Blind:
			return s.with(p.file, file{}).cover(p.file), true
		}
		return s, p.doubt
	}
}

// steps splits a command into its steps.
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
			if steps[i].kind = kind; kind == checkSource {
				steps[i].from = c.CheckedFrom
			}
		}
		return steps
	}
	done := c.Code/100 == 2
	switch {
	case c.Verb == "MLSD":
		return r.mlsdSteps(h, p, names)
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
		return of(append(kinds, writeTarget, checkSource, removeSource)...)
	default:
		panic(c.Verb)
	}
}

// refusal returns the step for a 5xx reply, which must have a reason and no effect.
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

// mlsdSteps returns the steps of MLSD: one read for each name.
func (r Rules) mlsdSteps(h History, p step, names map[string]int) []step {
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

// directory returns the steps of MKD and RMD. Both check the contents with a listing, which is not a snapshot.
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

// absent returns the reads of a listing that does not show a name. A directory is listed if it has a marker or
// contains a file.
func (p step) absent() (steps []step) {
	p.kind = readAbsent
	for _, p.file = range append([]int{p.file}, p.below...) {
		steps = append(steps, p)
	}
	return steps
}

// below returns the indexes of the names in a directory.
func below(directory string, names map[string]int) (numbers []int) {
	for name, number := range names {
		if isDirectory(directory) && name != directory && strings.HasPrefix(name, directory) {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// operations converts the history for porcupine.
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

// partition divides operations into groups of names that are connected by renames and directories.
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

// model returns the porcupine model of the names.
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
			for _, inProgress := range s.(state).inProgress {
				inProgress.file.hash(&h)
				inProgress.file = file{}
				maphash.WriteComparable(&h, inProgress)
			}
			return h.Sum64()
		},
		DescribeOperation: func(input, _ any) string {
			p := input.(step)
			what := map[stepKind]string{
				date: "takes the time: ", seeDeleted: "checks: ", seeMarker: "checks: ", remove: "deletes: ", readSource: "reads: ",
				writeTarget: "writes: ", checkSource: "checks: ", removeSource: "deletes: ",
			}[p.kind]
			if p.source.Verb == "MLSD" {
				what = names[p.file] + " in: "
			}
			return what + p.source.String()
		},
		DescribeState: func(s any) string {
			var texts []string
			for i, f := range s.(state).files {
				if f.exists {
					texts = append(texts, names[i]+"="+quoted(f.content))
				}
			}
			return fmt.Sprintf("{%s}", strings.Join(texts, ", "))
		},
	}
}

// A Verdict is the result of checking a history.
type Verdict string

const (
	// Explained means that an order of all commands agrees with every reply.
	Explained Verdict = "explained"

	// Unexplained means that no such order exists.
	Unexplained Verdict = "not linearizable"

	// Undecided means that the check timed out.
	Undecided Verdict = "undecided in time"
)

// Check judges a history within the given time.
func (r Rules) Check(h History, patience time.Duration) Verdict {
	operations, names := r.operations(h)
	if slices.ContainsFunc(operations, func(o porcupine.Operation) bool { return o.Input.(step).kind == never }) {
		return Unexplained // porcupine would try all orders of the other steps
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

// Visualize writes an HTML page that shows a history and how far it can be explained.
func (r Rules) Visualize(h History, patience time.Duration, path string) error {
	operations, names := r.operations(h)
	last := int64(0)
	for _, c := range h {
		last = max(last, int64(c.Return))
	}
	for i := range operations { // infinite times do not fit on the page
		operations[i].Return = min(operations[i].Return, last+int64(time.Second))
	}
	m := model(names)
	_, info := porcupine.CheckOperationsVerbose(m, operations, patience)
	return porcupine.VisualizePath(m, info, path)
}
