package driver

import (
	"testing"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// TestPartSize checks that parts are such as S3 takes.
func TestPartSize(t *testing.T) {
	for name, test := range map[string]struct{ size, want int64 }{
		"default":   {0, s3api.MinPartSize},
		"large":     {64 << 20, 64 << 20},
		"too-large": {2 * s3api.MaxPartSize, s3api.MaxPartSize},
		"too-small": {1, s3api.MinPartSize},
	} {
		t.Run(name, func(t *testing.T) {
			if got := New(t.Context(), nil, "bucket", &Options{PartSize: test.size}).uploads.PartSize; got != test.want {
				t.Errorf("%d bytes, want %d", got, test.want)
			}
		})
	}
}
