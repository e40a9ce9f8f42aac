package wire

import "unsafe"

// A Queue keeps lines that wait, and counts the bytes that they hold: a client that sends long lines gets no more
// memory than one that sends short ones. The zero value is empty.
type Queue struct {
	lines []*Line
	size  int
}

// lineOverhead is what a line takes in a Queue beyond its texts.
const lineOverhead = int(unsafe.Sizeof(Line{}))

// size is how many bytes a line holds.
func (l *Line) size() int { return lineOverhead + len(l.Text) + len(l.Literal) + cap(l.Refusals) }

// Add appends a line. Lines of one client are added one by one, after [Queue.Holds], so the last may pass the bound
// by its own length.
func (q *Queue) Add(l *Line) {
	q.lines = append(q.lines, l)
	q.size += l.size()
}

// Holds reports whether the lines hold so many bytes or more.
func (q *Queue) Holds(bytes int) bool { return q.size >= bytes }

// Next takes the first line out, nil where there is none.
func (q *Queue) Next() *Line {
	if len(q.lines) == 0 {
		return nil
	}
	l := q.lines[0]
	q.size -= l.size()
	q.lines[0] = nil // the array must not keep it
	if q.lines = q.lines[1:]; len(q.lines) == 0 {
		q.lines = nil
	}
	return l
}

// Contains reports whether one of the lines is a command.
func (q *Queue) Contains(command string) bool {
	for _, l := range q.lines {
		if verb, _, _ := ParseCommand(l.Text); verb == command {
			return true
		}
	}
	return false
}
