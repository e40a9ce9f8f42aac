package wire

import (
	"strings"
	"testing"
)

// A queue counts all memory of its lines, and forgets lines that were removed.
func TestQueueCountsBytes(t *testing.T) {
	const long = 4000
	text := strings.Repeat("a", long)
	for name, l := range map[string]Line{
		"text": {Text: text}, "literal": {Literal: text}, "refusals": {Refusals: []byte(text)},
	} {
		t.Run(name, func(t *testing.T) {
			var q LineQueue
			if q.Add(&l); !q.Holds(long) {
				t.Error("the length of the line does not count")
			}
			if got := q.Next(); got != &l || q.Holds(1) {
				t.Errorf("after removing the line: got %v, %d bytes", got, q.size)
			}
		})
	}
	var q LineQueue
	for range 1000 {
		q.Add(&Line{Text: "NOOP"})
	}
	if !q.Holds(1000 * len("NOOP")) {
		t.Error("short lines do not count")
	}
}
