package main

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestSmoke runs all works once with 1/1024 of the data.
func TestSmoke(t *testing.T) {
	if testing.Short() {
		t.Skip("-short runs no tools; this test needs MinIO")
	}
	root, err := s3test.Repository()
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 1
	o := options{
		data: t.TempDir(), minio: filepath.Join(root, ".tools", "bin", "minio"), rounds: rounds,
		slowAddress: "127.0.0.1:0",
		shrink:      1 << 10,
	}
	var log strings.Builder
	table, err := measure(t.Context(), o, &log)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	for _, r := range table.rows {
		results := table.results(r)
		got := results["babelftp"]
		if len(got.Values) != rounds {
			t.Errorf("%s: babelftp has %d values", r.name, len(got.Values))
		}
		if r.speed && (got.Ratio <= 0 || math.IsInf(got.Ratio, 0) || results["raw S3"].Ratio != 1) {
			t.Errorf("%s: ratio %v, raw %v", r.name, got.Ratio, results["raw S3"].Ratio)
		}
	}
	var names []string
	for _, r := range table.rows {
		names = append(names, r.name)
	}
	for _, want := range []string{
		"direct: 1 MiB up", "direct: 1 MiB down", "direct: 8 x 8 files of 16 KiB up",
		"direct: 4 x 4 files of 4 KiB down",
		"direct: MLSD of 97", "logins and quits a second", "S3 requests for a new small file, up", "slow: 256 KiB up",
		"slow: 1 x 4 files of 4 KiB up", "slow: MLSD of 9", "memory of an idle session",
		"console with 4 sessions and 97 audit lines: a file that was renamed",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("missing %q in %q", want, names)
		}
	}
}
