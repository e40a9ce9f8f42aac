package driver

import "testing"

// TestPartSizeReaches checks that ten thousand parts are enough for the largest objects.
func TestPartSizeReaches(t *testing.T) {
	const largest = 5 << 40
	for _, test := range []struct {
		label            string
		partSize, memory int64
		reaches          int64
	}{
		{"smallest-parts", minPartSize, 4 << 30, largest},
		{"default-parts", 0, 4 << 30, largest},
		{"large-parts", 64 << 20, 4 << 30, largest},
		{"largest-parts", maxPartSize, 8 << 30, largest},
		{"parts-too-large", 2 * maxPartSize, 8 << 30, largest},
		{"parts-too-small", 1, 4 << 30, largest},
		{"less-memory", 0, 256 << 20, 1 << 40},
	} {
		t.Run(test.label, func(t *testing.T) {
			f := New(t.Context(), nil, "bucket", &Options{PartSize: test.partSize, Memory: NewBudget(test.memory)})
			offset, parts := int64(0), 0
			for ; offset < test.reaches; parts++ {
				size := f.memory.Buffer(partSizeAt(f.memory, f.opts.PartSize, offset)).Size()
				if size < minPartSize || size > maxPartSize {
					t.Fatalf("part %d has %d bytes", parts, size)
				}
				offset += size
			}
			if parts > maxParts {
				t.Errorf("it takes %d parts", parts)
			}
		})
	}
}
