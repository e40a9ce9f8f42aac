package wire

import "testing"

func TestParsePasswords(t *testing.T) {
	for _, test := range []struct {
		argument, current, next string
		ok                      bool
	}{
		{`old new`, "old", "new", true},
		{`100%20 50%`, "100%20", "50%", true},
		{`ol"d n""ew`, `ol"d`, `n""ew`, true},
		{`"old" "new"`, "old", "new", true},
		{`"the old" new`, "the old", "new", true},
		{`old " a  new "`, "old", " a  new ", true},
		{`old "say ""new"""`, "old", `say "new"`, true},
		{`"""" new`, `"`, "new", true},
		{`été パス`, "été", "パス", true},
		{``, "", "", false},
		{`old`, "", "", false},
		{`old `, "", "", false},
		{` old new`, "", "", false},
		{`old  new`, "", "", false},
		{`old new `, "", "", false},
		{`old new more`, "", "", false},
		{`"" new`, "", "", false},
		{`old ""`, "", "", false},
		{`"old new`, "", "", false},
		{`old "new`, "", "", false},
		{`"old"new`, "", "", false},
		{`old "new"more`, "", "", false},
	} {
		current, next, ok := ParsePasswords(test.argument)
		if ok != test.ok || ok && (current != test.current || next != test.next) {
			t.Errorf("the passwords in %s are %q and %q, %v; want %q and %q, %v", test.argument, current, next, ok,
				test.current, test.next, test.ok)
		}
	}
}
