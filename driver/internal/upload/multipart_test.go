package upload

import (
	"testing"

	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// TestPartSizeReaches checks that ten thousand parts are enough for the largest objects.
func TestPartSizeReaches(t *testing.T) {
	const largest = 5 << 40
	for _, test := range []struct {
		label            string
		partSize, memory int64
		reaches          int64
	}{
		{"smallest-parts", s3api.MinPartSize, 4 << 30, largest},
		{"large-parts", 64 << 20, 4 << 30, largest},
		{"largest-parts", s3api.MaxPartSize, 8 << 30, largest},
		{"less-memory", s3api.MinPartSize, 256 << 20, 1 << 40},
	} {
		t.Run(test.label, func(t *testing.T) {
			memory := membudget.New(test.memory)
			offset, parts := int64(0), 0
			for ; offset < test.reaches; parts++ {
				size := memory.Buffer(partSizeAt(memory, test.partSize, offset)).Size()
				if size < s3api.MinPartSize || size > s3api.MaxPartSize {
					t.Fatalf("part %d has %d bytes", parts, size)
				}
				offset += size
			}
			if parts > s3api.MaxParts {
				t.Errorf("it takes %d parts", parts)
			}
		})
	}
}
