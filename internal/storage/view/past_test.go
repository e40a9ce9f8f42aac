package view

import (
	"slices"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// The rights in a listing are the rights that operations check.
func TestRightsMatchOperations(t *testing.T) {
	store := struct{ pastStore }{}
	for _, rules := range []string{"all", "-", "l", "r", "lr /in=wm", "- /in=lr", "- /in/*=r", "wm /in=lrwdnm",
		"all /.then=", "all /.then/deleted=l"} {
		v := &View{
			Mounts: NewMounts(Mount{Dir: "/", Store: store}, Mount{Dir: "/a/b", Store: store}),
			Policy: Policy{layer(rules)},
			Past:   Past{Dir: "/.then", Zone: time.UTC, Policy: Policy{layer(rules)}.Naming("/.then")},
		}
		for _, name := range []string{
			"/", "/in", "/in/file", "/a", "/a/b", "/a/b/c", "/.then", "/.then/none", "/.then/deleted", "/.then/2020-01-01",
			"/.then/2020-01-01/in", "/.then/2020-01-01/in/file", "/.then/2020-01-01/a",
		} {
			of := v.resolve(name)
			want := of.rights
			if of.fixed {
				want.Delete, want.Rename = false, false
			}
			if got := v.Rights(name); got != want {
				t.Errorf("%s, with %s: %q, want %q", name, rules, letters(got), letters(want))
			}
		}
	}
}

// Rules that name the directory of the past remove rights there. Rules with other names apply to the same path as
// today.
func TestPastPolicy(t *testing.T) {
	for _, tc := range []struct{ rules, name, want string }{
		{"all", "/.then", "l"},
		{"all", "/.then/2020-01-01/in", "lrn"},
		{"all /.then=", "/.then", ""},
		{"all /.then=", "/.then/2020-01-01/in", ""},
		{"all /.then=", "/in", "lrwdnm"},
		{"all /.then=l", "/.then/2020-01-01/in", "l"},
		{"all /.then/deleted=", "/.then/deleted/in", ""},
		{"all /.then/deleted=", "/.then/2020-01-01/in", "lrn"},
		{"- /in=lr", "/.then/2020-01-01/in", "lrn"},
		{"- /in=lr /.then=lr", "/.then/2020-01-01/out", ""},
		{"all /*=", "/.then/2020-01-01/in", ""},
		{"all /*en=", "/.then/2020-01-01/in", "lrn"},
	} {
		policy := Policy{layer(tc.rules)}
		v := &View{Mounts: NewMounts(Mount{Dir: "/", Store: pastStore{}}), Policy: policy,
			Past: Past{Dir: "/.then", Zone: time.UTC, Policy: policy.Naming("/.then")}}
		if got := letters(v.resolve(tc.name).rights); got != tc.want {
			t.Errorf("%s, with %s: %q, want %q", tc.name, tc.rules, got, tc.want)
		}
	}
}

// A pastStore is an empty store whose past is empty too.
type pastStore struct{ Store }

func (s pastStore) At(Moment) Store { return s }

// If the clocks go forward at midnight, the day before still has its last hour, and a listing shows each day once.
func TestDaysWithoutMidnight(t *testing.T) {
	for _, tc := range []struct{ zone, before, day, change string }{
		{"America/Santiago", "2019-09-07", "2019-09-08", "2019-09-08T04:00:00Z"},
		{"America/Havana", "2019-03-09", "2019-03-10", "2019-03-10T05:00:00Z"},
		{"Africa/Cairo", "2023-04-27", "2023-04-28", "2023-04-27T22:00:00Z"},
	} {
		zone, err := time.LoadLocation(tc.zone)
		must.OK(t, err)
		p := &Past{Dir: "/then", Zone: zone}
		change, err := time.Parse(time.RFC3339, tc.change)
		must.OK(t, err)
		if m, ok := p.moment(tc.before, change); !ok || !m.Time.Equal(change.Add(-time.Second)) {
			t.Errorf("%s: end of %s: got %s, %v", tc.zone, tc.before, m.Time, ok)
		}
		end := change.Add(23*time.Hour - time.Second)
		if m, ok := p.moment(tc.day, change); !ok || !m.Time.Equal(end) {
			t.Errorf("%s: end of %s: got %s, %v", tc.zone, tc.day, m.Time, ok)
		}
		if _, ok := p.moment(tc.day, change.Add(-time.Second)); ok {
			t.Errorf("%s: %s exists before it begins", tc.zone, tc.day)
		}
		halfPastMidnight := end.Add(48*time.Hour + 30*time.Minute)
		days := p.days(halfPastMidnight)
		if !slices.Contains(days, tc.day) || len(slices.Compact(days)) != pastDays || !slices.IsSorted(days) {
			t.Errorf("%s: got days %q", tc.zone, days)
		}
	}
}
