//go:build !race

// The simulators run in the process of the test, where the race detector makes them several times as slow as MinIO beside it.

package driver_test

import (
	"testing"

	"github.com/babelftp/babelftp/internal/s3test"
)

// TestConformanceSimulated runs the conformance suite on simulated servers, and on the strictest what can be asked of it.
func TestConformanceSimulated(t *testing.T) {
	for name, groups := range map[string][]string{
		"sim-aws": nil,
		"sim-r2":  nil,
		"sim-strict": {
			"names", "stat", "read", "download", "write", "append", "unpublished", "no-answer", "memory", "quota", "ledger", "kept",
			"mkdir", "remove", "copy", "objects", "times", "afero",
		},
	} {
		t.Run(name, func(t *testing.T) { conform(t, s3test.Start(t, name), groups...) })
	}
}
