package drivertest

import "testing"

// testFresh looks at what a session asks for again after it has seen a directory, and by how many requests.
func testFresh(t *testing.T, h Harness) {
	x := h.open(t, nil)
	x.putAll("dir/a", "dir/b", "dir/sub/")
	requests := func(x *fixture, want int, run func()) {
		x.Helper()
		x.spy.Reset()
		if run(); x.spy.Total() != want {
			x.Errorf("%d requests, %v; want %d", x.spy.Total(), x.spy.Counts(), want)
		}
	}
	// A session that has looked at a directory lists what other clients have stored since.
	x.run("looked-at-then-listed", func(x *fixture) {
		requests(x, 2+x.requestsFor(markerLooks), func() {
			if _, err := x.StatDir("dir"); err != nil {
				x.Fatal(err)
			}
			x.wantList("dir", "a", "b", "sub/")
		})
		x.putAll("dir/other")
		x.wantList("dir", "a", "b", "other", "sub/")
		x.delete("dir/other")
	})
	x.run("files-not-remembered", func(x *fixture) {
		x.wantList("dir", "a", "b", "sub/")
		requests(x, 1, func() { x.wantSize("dir/a", 0) })
	})
}

// wantSize wants a file to have so many bytes.
func (x *fixture) wantSize(name string, want int64) {
	x.Helper()
	info, err := x.StatFile(name)
	if err != nil {
		x.Fatal(err)
	}
	if info.Size() != want {
		x.Errorf("%s has %d bytes, want %d", name, info.Size(), want)
	}
}
