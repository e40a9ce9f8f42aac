package reload

import (
	"maps"
	"testing"
)

// A kept is compared by value. Its name distinguishes equal ones.
type kept struct{ name, value string }

func TestKeep(t *testing.T) {
	type values map[string]kept
	for name, tc := range map[string]struct{ next, before, want values }{
		"equal":     {values{"a": {"new", "1"}}, values{"a": {"old", "1"}}, values{"a": {"old", "1"}}},
		"different": {values{"a": {"new", "2"}}, values{"a": {"old", "1"}}, values{"a": {"new", "2"}}},
		"added":     {values{"a": {"new", "1"}}, values{}, values{"a": {"new", "1"}}},
		"removed":   {values{}, values{"a": {"old", "1"}}, values{}},
		"renamed":   {values{"b": {"new", "1"}}, values{"a": {"old", "1"}}, values{"b": {"new", "1"}}},
		"first":     {values{"a": {"new", "1"}}, nil, values{"a": {"new", "1"}}},
		"none":      {nil, values{"a": {"old", "1"}}, nil},
		"each-alone": {values{"a": {"new", "1"}, "b": {"new", "2"}}, values{"a": {"old", "1"}, "b": {"old", "1"}},
			values{"a": {"old", "1"}, "b": {"new", "2"}}},
		"by-key": {values{"never": {"new", "1"}}, values{"never": {"old", "1"}}, values{"never": {"new", "1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			before := maps.Clone(tc.before)
			Keep(tc.next, tc.before, func(key string, next, before kept) bool {
				if next.name != "new" || before.name != "old" {
					t.Errorf("compared %s with %s", next.name, before.name)
				}
				return key != "never" && next.value == before.value
			})
			if !maps.Equal(tc.next, tc.want) || !maps.Equal(tc.before, before) {
				t.Errorf("got %v and %v, want %v and %v", tc.next, tc.before, tc.want, before)
			}
		})
	}
}
