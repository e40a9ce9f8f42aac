package conformance_test

import (
	"strings"
	"testing"
)

// Section 3.2.
func TestMFMTErrors(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	c.store("f", "x")
	modified := c.send("MDTM f")
	for _, tt := range []struct{ line, want string }{
		{"MFMT 20020717210715 nothing", "550 "},
		{"MFMT", "501 "},
		{"MFMT ", "501 "},
		{"MFMT 20020717210715", "501 "},
		{"MFMT 20020717210715 ", "501 "},
		{"MFMT f", "501 "},
		{"MFMT 20020717210715. f", "501 "},
		{"MFMT 2002-07-17T21:07:15 f", "501 "},
		{"MFMT 20030229000000 f", "501 "}, // no leap year
		{"MFMT 20021301000000 f", "501 "},
		{"MFMT  20020717210715 f", "501 "},
		{"MFMT ٢٠٠٢٠٧١٧٢١٠٧١٥ f", "501 "},
	} {
		c.want(tt.want, tt.line)
		c.want(modified, "MDTM f")
	}
	c.want("213 Modify=20040229000000; f", "MFMT 20040229000000 f")
	t.Run("not-permitted", func(t *testing.T) {
		c := s.connect(t)
		c.loginAs("carol") // who may only read
		c.want("550 ", "MFMT 20020717210715 f")
	})
	t.Run("not-logged-in", func(t *testing.T) {
		c := s.connect(t)
		c.want("530 ", "MFMT 20020717210715 f")
	})
}

// Section 5.1: MFF sets the facts that FEAT names for it, and answers with those that it set.
func TestMFF(t *testing.T) {
	c := newSite(t, settings{}).login(t)
	if f := c.feature("MFF"); f != "MFF Modify;" {
		t.Errorf("FEAT says %q", f)
	}
	for _, name := range []string{"Bob.txt", "two  words ", " x", "été", "a;b=c; d", "cr\r\nlf"} {
		c.store(nvt(name), "content")
		c.want("213 Modify=20020717210715; "+shown(name), "MFF Modify=20020717210715; "+nvt(name))
		c.want("213 20020717210715", "MDTM "+nvt(name))
	}
	for _, line := range []string{"mff modify=20020717210716; Bob.txt", "MFF MODIFY=20020717210716; Bob.txt"} {
		if r := c.send(line); !strings.EqualFold(r, "213 Modify=20020717210716; Bob.txt") {
			t.Errorf("%s: %q", line, r)
		}
	}
}

// Section 5.1, 5.4 and 5.5.
func TestMFFErrors(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	c.store("f", "x")
	modified := c.send("MDTM f")
	for _, tt := range []struct{ line, want, names string }{
		{"MFF Modify=20020717210715; nothing", "550 ", ""},
		{"MFF Create=20020717210715; f", "504 ", "Create"},
		{"MFF UNIX.mode=777; f", "504 ", "UNIX.mode"},
		{"MFF X.thing=1; f", "504 ", "X.thing"},
		{"MFF UNIX.mode=777;Modify=20020718012845; f", "504 ", "UNIX.mode"},
		{"MFF Modify=20020718012845;UNIX.mode=777;UNIX.owner=a; f", "504 ", "UNIX.owner"},
		{"MFF Type=file; f", "504 ", "Type"},
		{"MFF Modify=20030229000000; f", "501 ", ""},
		{"MFF Modify=2003; f", "501 ", ""},
		{"MFF Modify=; f", "501 ", ""},
		{"MFF Modify; f", "501 ", ""},
		{"MFF Modify=20020718012845;; f", "501 ", ""},
		{"MFF Modify=20020718012845;", "501 ", ""},
		{"MFF Modify=20020718012845; ", "501 ", ""},
		{"MFF ; f", "501 ", ""},
		{"MFF f", "501 ", ""},
		{"MFF", "501 ", ""},
		{"MFF  Modify=20020718012845; f", "501 ", ""},
	} {
		if r := c.want(tt.want, tt.line); !strings.Contains(strings.ToUpper(r), strings.ToUpper(tt.names)) {
			t.Errorf("%s: %q does not name %s", tt.line, r, tt.names)
		}
		c.want(modified, "MDTM f")
	}
	t.Run("not-permitted", func(t *testing.T) {
		c := s.connect(t)
		c.loginAs("carol") // who may only read
		c.want("550 ", "MFF Modify=20020717210715; f")
	})
	t.Run("not-logged-in", func(t *testing.T) {
		s.connect(t).want("530 ", "MFF Modify=20020717210715; f")
	})
}
