package drivertest

import (
	"io"
	"os"
	"testing"
	"time"
)

// testRequests counts the requests of operations, which determine their cost and most of their duration.
func testRequests(t *testing.T, h Harness) {
	x := h.open(t, nil)
	x.put("file", random(1000))
	x.putAll("dir/a", "dir/b", "empty/")
	puts := 1 // instead of a copy with a condition
	if x.profile.ConditionalCopy || x.profile.InPlaceCopy {
		puts = 0
	}
	looksBack := x.requestsFor(replacedByPut)
	marker := x.requestsFor(markerHeads)
	again := x.requestsFor(repeatedHeads)
	create := func(size int) func() error {
		return func() error { return x.tryWrite("new", random(size)) }
	}
	for _, test := range []struct {
		label string
		most  int
		run   func() error
	}{
		{"write", 1, create(1000)},
		{"append", 3 + looksBack + again, func() error { return x.tryAppend("new", random(10)) }},
		{"restart", 3 + looksBack + again, func() error { return x.tryRestart("new", 5, random(1005)) }},
		{"restart-in-the-middle", 4 + looksBack + again, func() error { return x.tryRestart("new", 5, random(10)) }},
		{"restart-with-nothing", 1 + again, func() error { return x.tryRestart("new", 5, nil) }},
		{"append-nothing", 1 + again, func() error { return x.tryAppend("new", nil) }},
		{"write-nothing", 1, create(0)},
		{"write-less-than-a-part", 1, create(h.PartSize - 1)},
		{"write-two-parts", 4 + x.requestsFor(completionHeads), create(h.PartSize + 1)},
		{"open-to-write", 0, func() error { _, err := x.Create("new"); return err }},
		{"read", 1, func() error { x.read("file"); return nil }},
		{"read-from-the-middle", 1, func() error {
			f := x.openAt("file", os.O_RDONLY, 500)
			defer x.close(f)
			_, err := f.Seek(500, io.SeekStart)
			if err == nil {
				_, err = io.Copy(io.Discard, f)
			}
			return err
		}},
		{"read-from-the-end", 2, func() error { f := x.openAt("file", os.O_RDONLY, 1000); return f.Close() }},
		{"open-directory", 2, func() error {
			f, err := x.Open("dir")
			if err == nil {
				_, err = f.Readdir(0)
			}
			return err
		}},
		{"stat-file", 1, func() error { _, err := x.StatFile("file"); return err }},
		{"stat-dir", 1 + marker, func() error { _, err := x.StatDir("dir"); return err }},
		{"stat-root", 0, func() error { _, err := x.StatDir("/"); return err }},
		{"stat-of-a-file", 1, func() error { _, err := x.Stat("file"); return err }},
		{"stat-of-a-directory", 2 + marker, func() error { _, err := x.Stat("dir"); return err }},
		{"list", 1, func() error { x.list("dir"); return nil }},
		{"mkdir", 2 + marker, func() error { return x.Mkdir("made", 0o755) }},
		{"remove-dir", 2, func() error { return x.RemoveDir("empty") }},
		{"rename", 5 + again, func() error { return x.Rename("file", "renamed") }},
		{"set-time", 2 + puts + again, func() error {
			return x.Chtimes("renamed", time.Time{}, time.Unix(1_000_000_000, 0))
		}},
		{"remove", 2, func() error { return x.Remove("renamed") }},
	} {
		x.run(test.label, func(x *fixture) {
			x.spy.Reset()
			x.must(test.run())
			if n := x.spy.Total(); n > test.most {
				x.Errorf("got %d requests, %v; want at most %d", n, x.spy.Counts(), test.most)
			}
		})
	}
}
