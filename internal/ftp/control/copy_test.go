package control_test

import (
	"testing"
)

func TestSiteCopy(t *testing.T) {
	for label, test := range map[string]struct {
		from, fromReply string
		to, toReply     string
		made            []string
	}{
		"file":               {"f", "350 ", "g", "250 Copied.", []string{"g"}},
		"spaces":             {"f", "350 ", " g h ", "250 ", []string{" g h "}},
		"onto-a-file":        {"f", "350 ", "dir/x", "250 ", nil},
		"directory":          {"dir", "350 ", "new/dir", "250 ", []string{"new/dir/x", "new/dir/y/z"}},
		"other-form":         {decomposed, "350 ", "copy of " + decomposed, "250 ", []string{"copy of " + composed}},
		"onto-itself":        {composed, "350 ", decomposed, "250 ", nil},
		"onto-a-directory":   {"f", "350 ", "dir", "550 This is a directory, not a file. (dir)", nil},
		"into-itself":        {"dir", "350 ", "dir/in", "550 ", nil},
		"onto-a-full-one":    {"dir", "350 ", "full", "550 Directory not empty. (full)", nil},
		"root":               {"/", "350 ", "copy", "550 ", nil},
		"onto-the-root":      {"f", "350 ", "/", "550 ", nil},
		"missing":            {"nothing", "550 ", "g", "503 Please send SITE CPFR first.", nil},
		"no-utf-8":           {"\xfe", "501 ", "g", "503 ", nil},
		"target-of-no-utf-8": {"f", "350 ", "\xfe", "501 ", nil},
	} {
		t.Run(label, func(t *testing.T) {
			s := newSite(t, nil)
			there := []string{"f", "dir/x", "dir/y/z", "full/a", composed}
			s.putNames(there...)
			c := s.login()
			c.do("SITE CPFR "+test.from, test.fromReply)
			c.do("NOOP", "200 ")
			c.do("site cpto "+test.to, test.toReply)
			s.wantObjects(append(there, test.made...)...)
			c.do("SITE CPTO again", "503 ")
		})
	}
}

func TestSiteCopySyntax(t *testing.T) {
	s := newSite(t, nil)
	s.putNames("f")
	c := s.login()
	c.do("SITE CPFR", "501 Syntax: SITE CPFR <SP> pathname")
	c.do("SITE COPY f g", "200 Copied.")
	c.do("SITE COPY g dir/h", "200 ")
	c.do("SITE COPY f", "501 Syntax: SITE COPY <SP> pathname <SP> pathname")
	c.do("SITE COPY f g h", "501 ")
	c.do("SITE COPY nothing g", "550 ")
	s.wantObjects("f", "g", "dir/h")
	c.do("SITE CPFR f", "350 ")
	c.do("REIN", "220 ")
	c.do("SITE CPTO g", "530 ")
	c.do("USER demo", "331 ")
	c.do("PASS demo", "230 ")
	c.do("SITE CPTO g", "503 ")
}
