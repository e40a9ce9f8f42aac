package driver_test

import (
	"testing"

	"github.com/babelftp/babelftp/internal/s3test"
)

// TestConformancePackaged runs the suite on the servers that Debian's packages bring: Ceph and OpenStack Swift. CI runs some groups of it, and
// make s3-servers all.
func TestConformancePackaged(t *testing.T) {
	s3test.RunPackaged(t, func(t *testing.T, s *s3test.Server) { conform(t, s) })
}
