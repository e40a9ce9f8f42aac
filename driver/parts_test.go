package driver

import (
	"testing"
)

// Where parts may differ they are nearly equal, and where they must not all but the last are of one size.
func TestCut(t *testing.T) {
	for _, tc := range []struct {
		name         string
		unequal      bool
		length, size int64
		want         []int64 // sizes
	}{
		{"equal-with-a-rest", false, 25, 10, []int64{10, 10, 5}},
		{"equal-without-a-rest", false, 30, 10, []int64{10, 10, 10}},
		{"equal-and-one", false, 3, 10, []int64{3}},
		{"unequal-with-a-rest", true, 25, 10, []int64{8, 8, 9}},
		{"unequal-and-one", true, 3, 10, []int64{3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := Profile{UnequalParts: tc.unequal}
			count, begin := p.cut(tc.length, tc.size)
			if begin(0) != 0 || begin(count) != tc.length || count != int64(len(tc.want)) {
				t.Fatalf("%d parts from %d to %d", count, begin(0), begin(count))
			}
			for i, want := range tc.want {
				if got := begin(int64(i)+1) - begin(int64(i)); got != want {
					t.Errorf("part %d has %d bytes, want %d", i, got, want)
				}
			}
		})
	}
}

func TestPartSizeFor(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	for _, tc := range []struct {
		name                   string
		unequal                bool
		memory, partSize, size int64
		want                   int64
	}{
		{"unknown", false, gib, 5 * mib, 0, 5 * mib},
		{"small", false, gib, 5 * mib, 24 * gib, 5 * mib},
		{"large", false, gib, 5 * mib, 100 * gib, 21 * mib},
		{"as-configured", false, gib, 64 * mib, 100 * gib, 64 * mib},
		{"more-than-the-memory", false, 64 * mib, 5 * mib, 1 << 40, 64 * mib},
		{"growing", true, gib, 5 * mib, 100 * gib, 5 * mib},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := New(t.Context(), nil, "bucket", &Options{
				PartSize: tc.partSize, Memory: NewBudget(tc.memory), Profile: Profile{UnequalParts: tc.unequal},
			})
			got := f.partSizeFor(tc.size)
			if got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
			// Where parts are equal they stay so, and grow where they may differ.
			if later := f.partSizeAt(got, 100*gib); (later > got) != tc.unequal {
				t.Errorf("%d, and %d later", got, later)
			}
		})
	}
}

// onAWS is options for a file system on AWS.
func onAWS(opts *Options) *Options {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Profile, _ = ProfileNamed("aws")
	return &o
}
