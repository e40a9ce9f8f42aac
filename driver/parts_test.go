package driver

import (
	"testing"

	"github.com/babelftp/babelftp/driver/internal/profile"
)

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
				PartSize: tc.partSize, Memory: NewBudget(tc.memory), Profile: profile.Profile{UnequalParts: tc.unequal},
			})
			got := f.uploads.partSizeFor(tc.size)
			if got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
			// Where parts are equal they stay so, and grow where they may differ.
			if later := f.uploads.partSizeAt(got, 100*gib); (later > got) != tc.unequal {
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
	o.Profile, _ = profile.Named("aws")
	return &o
}
