package main

import (
	"bytes"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestSmoke measures a 1,024th of everything, once.
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
	} {
		if !slices.Contains(names, want) {
			t.Errorf("no %q in %q", want, names)
		}
	}
}

func TestTable(t *testing.T) {
	table := &table{contenders: []string{"raw S3", "babelftp", "other"}}
	up, cpu := speed("up", "MiB/s"), amount("cpu", "s")
	for round, values := range [][]float64{{100, 50}, {200, 180}, {50, 30}} {
		table.add(up, "raw S3", round, values[0])
		table.add(up, "babelftp", round, values[1])
	}
	table.add(cpu, "babelftp", 0, 1.5)
	table.add(cpu, "babelftp", 1, 2.5)
	// It was measured in the second round only.
	table.add(up, "other", 1, 20)

	var text bytes.Buffer
	if err := table.print(&text); err != nil {
		t.Fatal(err)
	}
	want := `| work | unit  | raw S3 | babelftp | other |
| ---- | ----- | ------ | -------- | ----- |
| up   | MiB/s | 100    | 0.60     | 0.10  |
| cpu  | s     | -      | 2.00     | -     |
`
	if text.String() != want {
		t.Errorf("table is\n%s, want\n%s", text.String(), want)
	}
	text.Reset()
	if err := table.printJSON(&text); err != nil {
		t.Fatal(err)
	}
	var lines []struct {
		Work    string
		Results []struct {
			Contender string
			Values    []float64
			Ratio     float64
		}
	}
	if err := json.Unmarshal(text.Bytes(), &lines); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 2 || len(lines[0].Results) != 3 ||
		!slices.Equal(lines[0].Results[1].Values, []float64{50, 180, 30}) {
		t.Errorf("JSON is %+v", lines)
	}
}

func TestContent(t *testing.T) {
	const size = 2*period + 12345
	c := newContent()
	var all bytes.Buffer
	if err := c.send(&all, size); err != nil {
		t.Fatal(err)
	}
	const from, to = period - 10, 2*period + 10
	part := all.Bytes()[from:to]
	for _, tt := range []struct {
		name           string
		bytes          []byte
		offset, length int64
		right          bool
	}{
		{"all", all.Bytes(), 0, size, true},
		{"a-part", part, from, to - from, true},
		{"nothing", nil, from, 0, true},
		{"elsewhere", part, from + 1, to - from, false},
		{"too-few", part[:1000], from, to - from, false},
		{"too-many", part, from, to - from - 1, false},
		{"one-too-many", part[:1], from, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := c.check(bytes.NewReader(tt.bytes), tt.offset, tt.length); (err == nil) != tt.right {
				t.Errorf("error is %v", err)
			}
		})
	}
}
