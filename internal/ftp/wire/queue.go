package wire

import "unsafe"

// A LineQueue holds waiting lines and counts their bytes, so that the limit does not depend on the number of lines.
// The zero value is empty.
type LineQueue struct {
	lines []*Line
	size  int
}

// lineOverhead is the memory of a line in a LineQueue in addition to its texts.
const lineOverhead = int(unsafe.Sizeof(Line{}))

// size returns the memory of a line in bytes.
func (l *Line) size() int { return lineOverhead + len(l.Text) + len(l.Literal) + cap(l.Refusals) }

// Add appends a line. Callers check [LineQueue.Holds] before each line, so only the last line may exceed the limit.
func (q *LineQueue) Add(l *Line) {
	q.lines = append(q.lines, l)
	q.size += l.size()
}

// Holds reports whether the lines use at least this many bytes.
func (q *LineQueue) Holds(bytes int) bool { return q.size >= bytes }

// Next removes and returns the first line, or nil.
func (q *LineQueue) Next() *Line {
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
func (q *LineQueue) Contains(command string) bool {
	for _, l := range q.lines {
		if verb, _, _ := ParseCommand(l.Text); verb == command {
			return true
		}
	}
	return false
}
