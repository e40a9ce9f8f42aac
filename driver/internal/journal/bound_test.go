package journal

import "testing"

// TestBound moves the bound with the parts that follow each other from it on, in whatever order they come.
func TestBound(t *testing.T) {
	var b bound
	b.set(unknownOffset)
	b.move(0, 5)
	if got := b.get(); got != unknownOffset {
		t.Errorf("where all parts count, the bound is %d", got)
	}
	b.set(10)
	for _, test := range []struct{ begin, end, want int64 }{
		{5, 10, 10},  // before the bound
		{15, 20, 10}, // after a gap
		{10, 15, 20}, // the gap
		{30, 35, 20}, {25, 30, 20}, {20, 25, 35},
	} {
		b.move(test.begin, test.end)
		if got := b.get(); got != test.want {
			t.Errorf("after the part [%d, %d) the bound is %d, want %d", test.begin, test.end, got, test.want)
		}
	}
	b.move(40, 45)
	b.set(20)
	b.move(20, 40)
	if got := b.get(); got != 40 {
		t.Errorf("the bound is %d, want 40: parts from before it was set do not count", got)
	}
}
