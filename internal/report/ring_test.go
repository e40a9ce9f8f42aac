package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// The owner with the most bytes loses its oldest lines, and all lines stay in order.
func TestRing(t *testing.T) {
	const most = 1000
	r := NewRing(most)
	text := func() string { return string(bytes.Join(r.Lines(), nil)) }
	for i := range 5 {
		r.Add("quiet", fmt.Appendf(nil, "quiet %d\n", i))
	}
	for i := range 1000 {
		r.Add("loud", fmt.Appendf(nil, "loud %04d\n", i))
		if i == 500 {
			r.Add("other", []byte("other\n"))
		}
	}
	got := text()
	for _, kept := range []string{"quiet 0\n", "quiet 4\n", "other\n", "loud 0999\n"} {
		if !strings.Contains(got, kept) {
			t.Errorf("%q was lost", kept)
		}
	}
	if len(got) > most || len(got) < most/2 || strings.Contains(got, "loud 0000\n") {
		t.Errorf("got %d bytes, want at most %d", len(got), most)
	}
	loud := strings.Index(got, "loud")
	if !strings.HasPrefix(got, "quiet 0\n") || strings.Index(got, "quiet 4\n") > loud {
		t.Errorf("the lines are not in order: %.60q", got)
	}
	r.Add("loud", make([]byte, most/4+1))
	if text() != got {
		t.Error("a line that is too long was kept, or removed others")
	}
	for i := range 1000 { // many owners with one line each
		r.Add(fmt.Sprint(i), []byte("0123456789\n"))
	}
	if n := len(r.Lines()); n < most/2/11-1 || n > most/11 {
		t.Errorf("got %d lines", n)
	}
}

func TestFairShare(t *testing.T) {
	for _, test := range []struct {
		held        []int
		total, want int
	}{
		{[]int{1000}, 750, 750},
		{[]int{10, 1000}, 750, 740},
		{[]int{500, 500}, 750, 375},
		{[]int{100, 200, 900, 800}, 1000, 350},
		{[]int{1, 1, 1}, 2, 0},
	} {
		if got := fairShare(test.held, test.total); got != test.want {
			t.Errorf("%v of %d: got %d, want %d", test.held, test.total, got, test.want)
		}
	}
}
