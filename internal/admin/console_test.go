package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/report/audit"
)

// A page of several replicas has no line that is older than a line of a later page.
func TestMerge(t *testing.T) {
	line := func(second int) audit.Found {
		text := fmt.Sprint(second)
		return audit.Found{Time: time.Unix(int64(second), 0), Line: json.RawMessage(text), Next: "after " + text}
	}
	lines := func(seconds ...int) (all []audit.Found) {
		for _, s := range seconds {
			all = append(all, line(s))
		}
		return all
	}
	done := func(seconds ...int) *replicaLog {
		return &replicaLog{Result: &audit.Result{Lines: lines(seconds...), Complete: true}}
	}
	partly := func(until int, seconds ...int) *replicaLog {
		return &replicaLog{Result: &audit.Result{
			Lines: lines(seconds...), Next: "rest", Until: time.Unix(int64(until), 0),
		}}
	}
	failed := &replicaLog{failed: true, Result: &audit.Result{Reason: "down"}}
	for _, tt := range []struct {
		name     string
		limit    int
		logs     map[int]*replicaLog
		want     string
		next     map[int]string
		complete bool
	}{
		{"one", 0, map[int]*replicaLog{0: done(3, 2, 1)}, "3 2 1", nil, true},
		{"two", 0, map[int]*replicaLog{0: done(5, 2), 1: done(4, 3, 1)}, "5 4 3 2 1", nil, true},
		{"limit", 2, map[int]*replicaLog{0: done(5, 2), 1: done(4, 3)}, "5 4",
			map[int]string{0: "after 5", 1: "after 4"}, false},
		{"limit-of-one", 2, map[int]*replicaLog{0: done(5, 4), 1: done(1)}, "5 4", map[int]string{1: ""}, false},
		{"budget", 0, map[int]*replicaLog{0: done(9, 5, 2), 1: partly(4, 8)}, "9 8 5",
			map[int]string{0: "after 5", 1: "rest"}, false},
		{"nothing-yet", 0, map[int]*replicaLog{0: done(5), 1: partly(7)}, "",
			map[int]string{0: "", 1: "rest"}, false},
		{"shared-file", 0, map[int]*replicaLog{0: done(2, 1), 1: done(2, 1)}, "2 1", nil, true},
		{"failed", 0, map[int]*replicaLog{0: done(2, 1), 1: failed}, "2 1", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			page := (&merging{limit: tt.limit, logs: tt.logs}).merge()
			var got []string
			for _, e := range page.Events {
				got = append(got, string(e))
			}
			next := ""
			if tt.next != nil {
				next = encodeCursors(tt.next)
			}
			if strings.Join(got, " ") != tt.want || page.Next != next || page.Complete != tt.complete {
				t.Errorf("got %v, next %q, complete %v", got, page.Next, page.Complete)
			}
		})
	}
}

// The samples of an hour are at the right place, also after a pause and on replicas with other clocks.
func TestRecorder(t *testing.T) {
	var totals Totals
	r := NewRecorder(func() Totals { return totals })
	begin := time.Unix(1_800_000_000, 0)
	at := func(interval int) time.Time { return begin.Add(time.Duration(interval) * historyInterval) }
	values := func(name string) (last []int64) { return r.History().Series[name][historySize-5:] }
	for i, uploaded := range []int64{100, 103, 103, 110} {
		totals.Sessions, totals.UploadedBytes = int64(i), uploaded
		r.sample(at(i).Add(time.Second))
	}
	if got := values("uploads_bytes"); !slices.Equal(got, []int64{0, 0, 3, 0, 7}) {
		t.Errorf("uploads %v", got)
	}
	if got := values("sessions"); !slices.Equal(got, []int64{0, 0, 1, 2, 3}) {
		t.Errorf("sessions %v", got)
	}
	h := r.History()
	if !h.Until.Equal(at(3)) || !h.Since.Equal(begin.Add(time.Second)) || h.Interval != 10 {
		t.Errorf("until %v, since %v", h.Until, h.Since)
	}
	totals.UploadedBytes = 115
	r.sample(at(5))
	r.sample(at(4)) // the clock was set back
	if got := values("uploads_bytes"); !slices.Equal(got, []int64{3, 0, 7, 0, 5}) {
		t.Errorf("uploads after a pause: %v", got)
	}
	sum := r.History()
	sum.add(h)
	if got := sum.Series["uploads_bytes"][historySize-5:]; !slices.Equal(got, []int64{6, 0, 14, 0, 5}) {
		t.Errorf("sum of uploads: %v", got)
	}
	r.sample(at(historySize * 3))
	for name, series := range r.History().Series {
		if name != "sessions" && slices.Max(series) > 0 {
			t.Errorf("%s has old values", name)
		}
	}
}

// Cells of an export cannot be formulas.
func TestCSVExport(t *testing.T) {
	var out bytes.Buffer
	e := newCSVExport(&out)
	for _, path := range []string{"=1+1", "+1", "-1", "@A1", "\t=1", "\r=1", "/a,\"b\"\nc", "名前", ""} {
		text, err := json.Marshal(map[string]any{"path": path, "bytes": 12345678901, "replica": 2})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.write(text); err != nil {
			t.Fatal(err)
		}
	}
	got := out.String()
	for _, want := range []string{",'=1+1,", ",'+1,", ",'-1,", ",'@A1,", ",'\t=1,", "\"'\r=1\"", "\"/a,\"\"b\"\"\nc\"",
		",名前,", ",12345678901,", "\n,2,"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
}

// Problems keep the time at which they were first seen, and the worst ones come first.
func TestProblemOrder(t *testing.T) {
	var tracker problemTracker
	current := []Problem{{Kind: ProblemBan, Severity: SeverityWarning, Subject: "a"}}
	first := tracker.list(func() []Problem { return slices.Clone(current) }, 1)
	tracker.at = time.Time{}
	current = append(current, Problem{Kind: ProblemBucket, Severity: SeverityError, Subject: "b"},
		Problem{Kind: ProblemCertificate, Severity: SeverityWarning, Subject: "c"})
	second := tracker.list(func() []Problem { return slices.Clone(current) }, 1)
	if first[0].Since.IsZero() || second[0].Since != first[0].Since || second[1].Replica != 1 {
		t.Errorf("got %+v, then %+v", first, second)
	}
	sortProblems(second)
	var order []string
	for _, p := range second {
		order = append(order, p.Subject)
	}
	if strings.Join(order, "") != "bca" {
		t.Errorf("the order is %v", order)
	}
	shared := append(second, Problem{Kind: ProblemBan, Severity: SeverityWarning, Subject: "a", Replica: 2})
	if all := sameOnce(shared); len(all) != 3 {
		t.Errorf("a shared ban is shown twice: %+v", all)
	}
}
