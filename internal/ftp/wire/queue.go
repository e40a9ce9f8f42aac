package wire

import "unsafe"

// A Queue holds waiting lines and counts their bytes, so that the limit does not depend on the number of lines.
// The zero value is empty.
type Queue struct {
	lines []*Line
	size  int
}

// lineOverhead is the memory of a line in a Queue in addition to its texts.
const lineOverhead = int(unsafe.Sizeof(Line{}))

// size returns the memory of a line in bytes.
func (l *Line) size() int { return lineOverhead + len(l.Text) + len(l.Literal) + cap(l.Refusals) }

// Add appends a line. Callers check [Queue.Holds] before each line, so only the last line may exceed the limit.
func (q *Queue) Add(l *Line) {
	q.lines = append(q.lines, l)
	q.size += l.size()
}

// Holds reports whether the lines use at least this many bytes.
func (q *Queue) Holds(bytes int) bool { return q.size >= bytes }

// Next removes and returns the first line, or nil.
func (q *Queue) Next() *Line {
	if len(q.lines) == 0 {
		return nil
	}
	l := q.lines[0]
	q.size -= l.size()
	q.lines[0] = nil // so that the array does not keep the line
	if q.lines = q.lines[1:]; len(q.lines) == 0 {
		q.lines = nil
	}
	return l
}

// Contains reports whether one of the lines is this command.
func (q *Queue) Contains(command string) bool {
	for _, l := range q.lines {
		if verb, _, _ := ParseCommand(l.Text); verb == command {
			return true
		}
	}
	return false
}
