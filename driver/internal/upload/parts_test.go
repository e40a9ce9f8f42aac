package upload

import (
	"testing"

	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/profile"
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
		{"more-than-the-share", false, 64 * mib, 5 * mib, 1 << 40, 36 * mib},
		{"configured-more-than-the-share", false, 64 * mib, 60 * mib, 0, 36 * mib},
		{"growing", true, gib, 5 * mib, 100 * gib, 5 * mib},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bucket := s3api.NewBucket(nil, "bucket", profile.Profile{UnequalParts: tc.unequal}, &s3api.Stats{}, 0)
			u := New(
				Options{
					Bucket: bucket, PartSize: tc.partSize, SmallestPart: s3api.MinPartSize,
					Memory: membudget.New(tc.memory).For("acme", "alice"),
				})
			got := u.partSizeFor(tc.size)
			if got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
			// parts grow only if they may have different sizes
			if later := u.partSizeAt(got, 100*gib); (later > got) != tc.unequal {
				t.Errorf("got %d, and %d later", got, later)
			}
		})
	}
}

// TestPartSizeAtMaxParts checks that 10,000 parts are enough for the largest objects, unless memory is short.
func TestPartSizeAtMaxParts(t *testing.T) {
	const largest = 5 << 40
	for _, test := range []struct {
		label            string
		partSize, memory int64
		reaches          int64
	}{
		{"smallest-parts", s3api.MinPartSize, 8 << 30, largest},
		{"large-parts", 64 << 20, 8 << 30, largest},
		{"largest-parts", s3api.MaxPartSize, 8 << 30, largest},
		{"less-memory", s3api.MinPartSize, 256 << 20, 850_000_000_000},
	} {
		t.Run(test.label, func(t *testing.T) {
			profile := profile.Profile{UnequalParts: true}
			u := New(
				Options{Bucket: &s3api.Bucket{Profile: profile},
					Memory: membudget.New(test.memory).For("acme", "alice")})
			offset, parts := int64(0), 0
			for ; offset < test.reaches; parts++ {
				size := u.partSizeAt(test.partSize, offset)
				if size < s3api.MinPartSize || size > s3api.MaxPartSize {
					t.Fatalf("part %d has %d bytes", parts, size)
				}
				offset += size
			}
			if parts > s3api.MaxParts {
				t.Errorf("got %d parts", parts)
			}
		})
	}
}
