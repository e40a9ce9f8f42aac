package profile

import (
	"testing"
)

// If parts may differ in size, they are nearly equal. Otherwise, all parts except the last have the same size.
func TestCut(t *testing.T) {
	for _, tc := range []struct {
		name         string
		unequal      bool
		length, size int64
		want         []int64 // sizes of the parts
	}{
		{"equal-with-a-rest", false, 25, 10, []int64{10, 10, 5}},
		{"equal-without-a-rest", false, 30, 10, []int64{10, 10, 10}},
		{"equal-and-one", false, 3, 10, []int64{3}},
		{"unequal-with-a-rest", true, 25, 10, []int64{8, 8, 9}},
		{"unequal-and-one", true, 3, 10, []int64{3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := Profile{UnequalParts: tc.unequal}
			count, begin := p.Parts(tc.length, tc.size)
			if begin(0) != 0 || begin(count) != tc.length || count != int64(len(tc.want)) {
				t.Fatalf("got %d parts from %d to %d", count, begin(0), begin(count))
			}
			for i, want := range tc.want {
				if got := begin(int64(i)+1) - begin(int64(i)); got != want {
					t.Errorf("part %d has %d bytes, want %d", i, got, want)
				}
			}
		})
	}
}
