//go:build !race

// The simulators run in the process of the test, where the race detector makes them several times as slow as MinIO.

package driver_test

import (
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestConformanceSimulated runs the conformance suite on simulated servers.
func TestConformanceSimulated(t *testing.T) {
	for _, name := range []string{"sim-aws", "sim-r2", "sim-strict"} {
		t.Run(name, func(t *testing.T) { conform(t, s3test.Start(t, name)) })
	}
}
