package conformance_test

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// A pathname is the bytes of a name with a label for its subtest.
type pathname struct{ label, bytes string }

// scripts lists names in many scripts.
var scripts = []pathname{
	{"ascii", "plain.txt"},
	{"french", "Été à Zürich"},
	{"arabic", "مرحبا"},
	{"korean", "한국어"},
	{"vietnamese", "Tiếng Việt"},
	{"emoji", "🦊"},
	{"four-bytes", "𣎴"},
	{"persian-with-a-non-joiner", "می\u200cخواهم"},
	{"hindi-with-a-joiner", "क्\u200dष"},
	{"emoji-with-joiners", "👩🏽\u200d💻"},
	{"latin-and-hebrew", "Latin שם"},
}

// spaces lists names that a parser damages if it splits at white space (RFC 2640 3.1).
var spaces = []pathname{
	{"leading", " leading"},
	{"two-leading", "  foo.bar"},
	{"trailing", "trailing "},
	{"two-trailing", "two trailing  "},
	{"inside", "a b c"},
	{"two-inside", "two  inside"},
	{"only-one", " "},
	{"only-three", "   "},
	{"around-a-hyphen", " - "},
	{"tabs", "\ttab\t"},
}

// lineEnds lists names with line ends or similar characters (RFC 2640 3.1).
var lineEnds = []pathname{
	{"the-example", "foo\r\nboo.bar"},
	{"cr", "\r"},
	{"lf", "\n"},
	{"crlf", "\r\n"},
	{"lfcr", "\n\r"},
	{"two-cr", "\r\r"},
	{"cr-behind", "a\r"},
	{"cr-before", "\rb"},
	{"cr-inside", "a\rb"},
	{"lf-behind", "a\n"},
	{"lf-before", "\nb"},
	{"lf-inside", "a\nb"},
	{"cr-crlf-inside", "a\r\r\nb"},
	{"like-the-end-of-a-reply", "x\r\n250 End"},
	{"like-a-command", "x\r\nDELE keep"},
	{"like-a-command-behind-lf", "x\nDELE keep"},
}

// bytesOf returns the names without their labels.
func bytesOf(names []pathname) []string {
	var all []string
	for _, name := range names {
		all = append(all, name.bytes)
	}
	return all
}

// pathnameCases contains every command that takes a pathname, in an order in which all succeed. NAME is replaced
// with the pathname as it is sent, and NEW with another one. If the reply contains a pathname, want does too.
var pathnameCases = []struct{ name, line, want string }{
	{"size", "SIZE NAME", "213 7"},
	{"mdtm", "MDTM NAME", "213 2"},
	{"mlst", "MLST NAME", "250-"},
	{"stat", "STAT NAME", "213-"},
	{"mfmt", "MFMT 20260102030405 NAME", "213 Modify=20260102030405; NAME"},
	{"rnfr", "RNFR NAME", "350 "},
	{"rnto-another", "RNTO NEW", "250 "},
	{"rnfr-another", "RNFR NEW", "350 "},
	{"rnto", "RNTO NAME", "250 "},
	{"dele", "DELE NAME", "250 "},
	{"dele-again", "DELE NAME", "550 "},
	{"mkd", "MKD NAME", `257 "/NAME" `},
	{"cwd", "CWD NAME", "250 "},
	{"pwd", "PWD", `257 "/NAME" `},
	{"xpwd", "XPWD", `257 "/NAME" `},
	{"mkd-inside", "MKD NAME", `257 "/NAME/NAME" `},
	{"cwd-inside", "XCWD NAME", "250 "},
	{"pwd-inside", "PWD", `257 "/NAME/NAME" `},
	{"cdup", "CDUP", "250 "},
	{"rmd-inside", "RMD NAME", "250 "},
	{"cwd-absolute", "CWD /", "250 "},
	{"mlst-directory", "MLST NAME", "250-"},
	{"stat-directory", "STAT NAME", "212-"},
	{"rnfr-directory", "RNFR NAME", "350 "},
	{"rnto-directory", "RNTO NEW", "250 "},
	{"rmd", "RMD NEW", "250 "},
	{"site-mkdir", "SITE MKDIR NAME", "250 "},
	{"site-rmdir", "SITE RMDIR NAME", "250 "},
}

// storeAndDeleteAll runs storeAndDelete for each name in its own subtest.
func storeAndDeleteAll(t *testing.T, s *site, names []pathname) {
	t.Helper()
	for _, name := range names {
		t.Run(name.label, func(t *testing.T) { storeAndDelete(t, s, name.bytes) })
	}
}

// storeAndDelete runs the commands of pathnameCases on a file and on a directory with this name. The bucket must
// contain exactly its bytes, and every reply that contains the name must show it.
func storeAndDelete(t *testing.T, s *site, name string) {
	t.Helper()
	c := s.login(t)
	sent := nvt(name)
	c.Store(sent, "content")
	if keys := s.keys(t); !slices.Equal(keys, []string{name}) {
		t.Fatalf("got keys %q, want %q", keys, name)
	}
	c.Want("content", "RETR "+sent)
	shown := shown(name)
	if _, got := c.entry("MLST " + sent); got != shown && got != "/"+shown {
		t.Errorf("MLST %q: got %q", sent, got)
	}
	if r, err := c.Upload("APPE "+sent, ""); err != nil || !strings.HasPrefix(r, "226 ") {
		t.Errorf("APPE %q: %q", sent, r)
	}
	fill := strings.NewReplacer("NAME", sent, "NEW", "new "+sent)
	for _, taker := range pathnameCases {
		inReply := shown
		if strings.HasPrefix(taker.want, "257 ") {
			inReply = strings.ReplaceAll(shown, `"`, `""`)
		}
		c.want(strings.ReplaceAll(taker.want, "NAME", inReply), fill.Replace(taker.line))
	}
	if keys := s.keys(t); len(keys) > 0 {
		t.Errorf("unexpected keys %q", keys)
	}
}

// Section 2: file contents are not converted.
func TestContentsAreNotConverted(t *testing.T) {
	c := newSite(t, settings{}).login(t)
	content := "\xff\xfe\x00é\xe9\r\n\r\n\n\r\x1a\xef\xbb\xbf\xed\xa0\x80"
	c.must("200", "TYPE I")
	c.must("200", "LANG ja")
	c.Store("f", content)
	c.must("200", "LANG ar")
	c.Want(content, "RETR f")
	const mark = "\xef\xbb\xbf" // byte order mark, which APPE writes into the middle of the file
	if r, err := c.Upload("APPE f", mark+"more"); err != nil || !strings.HasPrefix(r, "226 ") {
		t.Errorf("APPE: %q, %v", r, err)
	}
	c.Want(content+mark+"more", "RETR f")
}

// Section 3.1: 8-bit names are transferred unchanged in both directions.
func TestPathnamesHaveEightBits(t *testing.T) {
	s := newSite(t, settings{})
	storeAndDeleteAll(t, s, scripts)
	t.Run("listings", func(t *testing.T) { wantListed(t, s, bytesOf(scripts)) })
	t.Run("made-elsewhere", func(t *testing.T) {
		s := newSite(t, settings{})
		s.put(t, "Ärger/日本語 🦊.txt", "x")
		if got := s.login(t).names("MLSD Ärger"); !slices.Equal(got, []string{"日本語 🦊.txt"}) {
			t.Errorf("MLSD: %q", got)
		}
	})
}

// wantListed stores files and checks that each listing shows them, and that each name from NLST retrieves its file.
func wantListed(t *testing.T, s *site, names []string) {
	t.Helper()
	c := s.login(t)
	for _, name := range names {
		c.Store(name, "content of "+name)
	}
	want := slices.Sorted(slices.Values(names))
	for _, line := range []string{"NLST", "MLSD", "LIST"} {
		got := c.list(line)
		switch line {
		case "LIST":
			for i := range got {
				got[i] = nameInLIST.ReplaceAllString(got[i], "")
			}
		case "MLSD":
			got = c.names(line)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: got\n%q, want\n%q", line, got, want)
		}
	}
	for _, name := range c.list("NLST") {
		c.Want("content of "+name, "RETR "+name)
	}
	for _, name := range names {
		if got := c.list("NLST " + name); !slices.Equal(got, []string{name}) {
			t.Errorf("NLST %q: %q", name, got)
		}
		c.want("250 ", "DELE "+name)
	}
}

// nameInLIST matches the part of a LIST line before the name.
var nameInLIST = regexp.MustCompile(`^\S+ +\d+ \S+ \S+ +\d+ [A-Z][a-z]{2} [ \d]\d (?:\d\d:\d\d| \d{4}) `)

// Section 3.1, pathname = 1*(%x01..%xFF): a name may contain every character except "/", which is the separator
// (RFC 3659 6), and no character is misinterpreted.
func TestPathnamesMayHaveEveryCharacter(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	for b := byte(1); b < 0x80; b++ {
		if b == '/' {
			continue
		}
		for _, name := range []string{string([]byte{'a', b, 'z'}), string([]byte{b, 'z'}), string([]byte{'a', b})} {
			sent := nvt(name)
			c.Store(sent, "content")
			if got := s.object(t, name); got != "content" { // listings cannot show every character
				t.Errorf("STOR %q: got content %q", sent, got)
			}
			c.want("213 7", "SIZE "+sent)
			if _, got := c.entry("MLST " + sent); got != shown(name) && got != "/"+shown(name) {
				t.Errorf("MLST %q: got %q", sent, got)
			}
			c.want("250 ", "DELE "+sent)
		}
	}
}

// Section 3.1: one SP separates command and pathname, and further spaces belong to the pathname.
func TestSpacesBelongToThePathname(t *testing.T) {
	s := newSite(t, settings{})
	storeAndDeleteAll(t, s, spaces)
	t.Run("listings", func(t *testing.T) { wantListed(t, s, bytesOf(spaces)) })
	t.Run("the-example", func(t *testing.T) {
		s := newSite(t, settings{})
		if r, err := s.login(t).Upload("STOR   foo.bar", "x"); err != nil || !strings.HasPrefix(r, "226 ") {
			t.Errorf("STOR: %q", r)
		}
		if keys := s.keys(t); !slices.Equal(keys, []string{"  foo.bar"}) {
			t.Errorf("STOR SP SP SP foo.bar: got keys %q", keys)
		}
	})
	t.Run("kept-apart", func(t *testing.T) {
		c := newSite(t, settings{}).login(t)
		c.Store("x", "none")
		c.Store(" x", "leading")
		c.Store("x ", "trailing")
		for name, want := range map[string]string{"x": "none", " x": "leading", "x ": "trailing"} {
			c.Want(want, "RETR "+name)
		}
	})
}

// Section 3.1: commands of three letters are not padded to four.
func TestCommandsOfThreeLettersTakeOneSpace(t *testing.T) {
	c := newSite(t, settings{}).login(t)
	c.want(`257 "/ d" `, "MKD  d")
	c.want("550 ", "CWD d")
	c.want("250 ", "CWD  d")
	c.want(`257 "/ d" `, "PWD")
	c.want("250 ", "CWD /")
	c.want("550 ", "RMD d")
	c.want("250 ", "RMD  d")
}

// Section 3.1: only SP separates; a tab does not.
func TestOnlySPDivides(t *testing.T) {
	c := newSite(t, settings{}).login(t)
	for _, line := range []string{"MKD\td", "SIZE\tx", "NOOP\t", "CWD\u00a0d", "MKD,d"} {
		c.want("500 ", line)
	}
	c.want("2", "NOOP")
}

// Section 3.1: a client sends CR as CR NUL, and the server removes the NUL. In replies CR and LF are shown as
// control pictures.
func TestCRIsPadded(t *testing.T) {
	s := newSite(t, settings{})
	storeAndDeleteAll(t, s, lineEnds)
	t.Run("no-command-hides-behind", func(t *testing.T) {
		c := newSite(t, settings{}).login(t)
		c.Store("keep", "x")
		c.want("550 ", "SIZE nothing\r\x00\nDELE keep")
		c.want("550 ", "SIZE nothing\nDELE keep")
		c.want("213 1", "SIZE keep")
	})
	t.Run("split-between-packets", func(t *testing.T) {
		c := newSite(t, settings{}).login(t)
		for _, b := range []byte("MKD a\r\x00\nb\r\n") {
			c.write(string(b))
		}
		c.wantReply("257 \"/a\u240d\u240ab\" ")
	})
}

// RFC 854: CR is followed by LF or NUL. Otherwise it is part of the name, because clients that do not pad CR mean
// that.
func TestCRWithoutNUL(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	c.want("257 \"/a\u240db\" ", "MKD a\rb")
	if keys := s.keys(t); !slices.Equal(keys, []string{"a\rb/"}) {
		t.Errorf("unexpected keys %q", keys)
	}
	c.want("250 ", "RMD a\r\x00b")
}

// Annex A.1: a NUL does not end a name. Except after CR, it is an error.
func TestNULInPathnames(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	c.Store("keep", "x")
	for _, line := range []string{
		"DELE keep\x00", "DELE \x00keep", "DELE ke\x00ep", "DELE keep\r\x00\x00", "SIZE keep\x00.txt", "MKD a\x00b",
		"CWD \x00", "MLST keep\x00",
		"RNFR keep\x00", "RMD keep\x00", "MDTM keep\x00", "STAT keep\x00",
	} {
		c.want("5", line)
	}
	if r, err := c.Upload("STOR new\x00.txt", "x"); err != nil || !strings.HasPrefix(r, "553 ") {
		t.Errorf("STOR with NUL: %q", r)
	}
	if keys := s.keys(t); !slices.Equal(keys, []string{"keep"}) {
		t.Errorf("unexpected keys %q", keys)
	}
}

// Section 3.1: names can be as long as a key, and longer ones are rejected, not truncated.
func TestLengthOfPathnames(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	// with some "/", because the storage limits segments to 255 bytes
	long := func(length int, of string) string {
		name := strings.Repeat(strings.Repeat(of, 100)+"/", length)[:length-2]
		return strings.ToValidUTF8(name, "x") + strings.Repeat("x", length-len(strings.ToValidUTF8(name, "x")))
	}
	for _, of := range []string{"a", "é", "\r"} {
		longest := long(1024, of)
		c.Store(nvt(longest), "content")
		c.want("213 7", "SIZE "+nvt(longest))
		if _, got := c.entry("MLST " + nvt(longest)); got != shown(longest) && got != "/"+shown(longest) {
			t.Errorf("MLST: got %q", got)
		}
		c.want("250 ", "DELE "+nvt(longest))
		tooLong := longest + "x"
		for _, line := range []string{"STOR", "SIZE", "DELE", "RNFR", "MKD", "CWD", "MLST", "RETR"} {
			c.want("553 ", line+" "+nvt(tooLong))
		}
	}
	if keys := slices.DeleteFunc(s.keys(t), func(key string) bool {
		return strings.HasSuffix(key, "/")
	}); len(keys) > 0 {
		t.Errorf("unexpected keys %q", keys)
	}
}

// Section 4.1: before LANG and HOST, replies are in the default language, which is English in ASCII.
func TestFirstRepliesAreEnglishInASCII(t *testing.T) {
	s := newSite(t, settings{})
	c := s.dial(t)
	greeting := c.wantReply("220 ")
	if !strings.Contains(greeting, "ready") {
		t.Errorf("unexpected greeting %q", greeting)
	}
	replies := []string{greeting}
	for _, line := range everydayCommands {
		reply := c.send(line)
		if line != "LANG tlh" { // lists languages by their own names, to a client that knows LANG and thus UTF-8
			replies = append(replies, reply)
		}
	}
	for _, r := range replies {
		if strings.ContainsFunc(r, func(r rune) bool { return r >= utf8.RuneSelf }) {
			t.Errorf("reply %q is not ASCII", r)
		}
	}
}

// everydayCommands produce every kind of reply.
var everydayCommands = []string{
	"SYST", "NOOP", "FEAT", "HELP", "HELP STOR", "STAT", "FOO", "PWD", "PASS x", "OPTS FOO", "LANG x_y", "LANG tlh",
	"HOST ftp.unknown.example",
	"USER alice", "PASS " + password, "PWD", "CWD nowhere", "TYPE I", "TYPE X", "MODE B", "STRU R", "REST 1",
	"SIZE nothing", "DELE nothing",
	"MKD dir", "MKD dir", "CWD dir", "CDUP", "RMD dir", "RNTO x", "RNFR nothing", "LIST", "EPSV", "RETR nothing",
	"MLST nothing", "MLST", "SIZE \xff\xff",
	"ALLO 1", "ACCT x", "ABOR", "SITE HELP", "SITE FOO", "SMNT x", "QUIT x", "CCC", "PBSZ 0", "PROT P", "EPRT |9|x|1|",
	"PORT 1,2,3,4,5,6",
}

// languages returns the tags in the FEAT reply.
func languages(c *client) []string {
	c.t.Helper()
	tags, ok := strings.CutPrefix(c.feature("LANG"), "LANG ")
	if !ok {
		c.t.Fatal("FEAT names no languages")
	}
	return strings.Split(strings.Replace(tags, "*", "", 1), ";")
}

// inEachLanguage runs check with a session in each language. Each session ends before the next begins, because
// there are more languages than allowed sessions per address.
func (s *site) inEachLanguage(t *testing.T, check func(*testing.T, *client)) {
	t.Helper()
	for _, tag := range languages(s.connect(t)) {
		t.Run(tag, func(t *testing.T) {
			c := s.connect(t)
			c.must("200", "LANG "+tag)
			check(t, c)
		})
	}
}

// Section 4.1: LANG does not affect listings or any other data on data connections.
func TestDataConnectionsHaveNoLanguage(t *testing.T) {
	c := newSite(t, settings{}).login(t)
	c.Store("file", "x")
	c.must("257", "MKD dir")
	stable := func(line string) string {
		return regexp.MustCompile(`\d\d:\d\d `).ReplaceAllString(c.Transfer(line), "")
	}
	want := map[string]string{}
	for _, line := range []string{"LIST", "NLST", "MLSD"} {
		want[line] = stable(line)
	}
	for _, tag := range languages(c) {
		c.must("200", "LANG "+tag)
		for line, want := range want {
			if got := stable(line); got != want {
				t.Errorf("%s in %s: %q, want %q", line, tag, got, want)
			}
		}
	}
}

// Section 4.2: the word and the tags of LANG are case-insensitive, and each form of a tag gets the right code
// (package i18n tests more of them).
func TestSyntaxOfLANG(t *testing.T) {
	s := newSite(t, settings{})
	for _, tt := range []struct{ name, line, want string }{
		{"mixed-case", "lAnG Fr", "200 "},
		{"sub-tag-in-any-case", "LANG PT-br", "200 "},
		{"script-in-any-case", "LANG zh-HANT", "200 "},
		{"no-tag", "LANG", "200 "},
		{"unknown-variant", "LANG en-AU", "200 Replies are now in English."},
		{"unknown-variant-of-two", "LANG fr-CH-abcd", "200 fr-CH-abcd"},
		{"no-such-language", "LANG tlh", "504 "},
		{"private", "LANG x-elvish", "504 "},
		{"empty", "LANG ", "501 "},
		{"two-spaces", "LANG  fr", "501 "},
		{"digits", "LANG es-419", "200 "},
		{"digits-in-primary", "LANG e1", "501 "},
		{"far-too-long", "LANG " + strings.Repeat("a", 3000), "501 "},
		{"not-utf-8", "LANG fr\xe9", "501 "},
		{"nul", "LANG fr\x00", "501 "},
		{"tab", "LANG\tfr", "500 "},
		{"no-space", "LANGfr", "500 "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := s.connect(t)
			c.must("200", "LANG de")
			r := c.want(tt.want, tt.line)
			if !utf8.ValidString(r) {
				t.Errorf("reply %q is not UTF-8", r)
			}
			if !strings.HasPrefix(tt.want, "200") && !strings.Contains(c.feature("LANG"), "DE*") {
				t.Errorf("the language changed: %q", c.feature("LANG"))
			}
		})
	}
}

// wantLanguage checks that FEAT marks a tag and no other.
func wantLanguage(c *client, tag string) {
	c.t.Helper()
	f := c.feature("LANG")
	if strings.Count(f, "*") != 1 || !strings.Contains(";"+strings.TrimPrefix(f, "LANG ")+";", ";"+tag+"*;") {
		c.t.Errorf("got %q, want %s* only", f, tag)
	}
}

// Section 4.1: LANG is allowed at any time.
func TestLANGAtAnyTime(t *testing.T) {
	s := newSite(t, settings{})
	french := func(c *client) {
		c.t.Helper()
		c.want("200 ", "LANG fr")
		wantLanguage(c, "FR")
	}
	t.Run("before-login", func(t *testing.T) {
		c := s.connect(t)
		french(c)
		c.login()
		wantLanguage(c, "FR")
	})
	t.Run("between-user-and-pass", func(t *testing.T) {
		c := s.connect(t)
		c.must("331", "USER alice")
		french(c)
		c.must("230", "PASS "+password)
		wantLanguage(c, "FR")
	})
	t.Run("under-tls", func(t *testing.T) {
		c := s.connect(t)
		french(c)
		c.startTLS(s, "")
		french(c)
	})
	t.Run("during-a-transfer", func(t *testing.T) {
		c := s.login(t)
		conn := c.Data()
		c.must("150", "STOR f")
		c.write("LANG fr\r\nNOOP\r\nLANG tlh\r\nPWD\r\n")
		_, _ = io.WriteString(conn, "x")
		conn.Close()
		c.wantReply("226 ")
		c.wantReply("200 ")
		c.wantReply("200 ")
		c.wantReply("504 ")
		c.wantReply(`257 "/" `)
		wantLanguage(c, "FR")
	})
	t.Run("pipelined", func(t *testing.T) {
		c := s.connect(t)
		c.write("LANG fr\r\nFOO\r\nLANG de\r\nFOO\r\nLANG\r\nFOO\r\n")
		texts := map[string]bool{}
		for range 3 {
			c.wantReply("200 ")
			texts[c.wantReply("500 ")] = true
		}
		if len(texts) != 3 {
			t.Errorf("three languages have %d texts: %v", len(texts), texts)
		}
	})
}

// Section 4.3: the FEAT line names the languages and marks one, and LANG accepts all of them.
func TestFEATListsTheLanguages(t *testing.T) {
	c := newSite(t, settings{}).connect(t)
	grammar := regexp.MustCompile(`^LANG [A-Za-z]{1,8}(-[A-Za-z]{1,8})*\*?(;[A-Za-z]{1,8}(-[A-Za-z]{1,8})*\*?)*$`)
	if f := c.feature("LANG"); !grammar.MatchString(f) {
		t.Errorf("%q is not the line of section 4.3", f)
	}
	if r := c.send("FEAT"); strings.Count(r, "\r\n LANG ") != 1 {
		t.Errorf("FEAT %q does not have exactly one line for LANG", r)
	}
	wantLanguage(c, "EN")
	tags := languages(c)
	if len(tags) < 20 {
		t.Errorf("got %d languages", len(tags))
	}
	for _, tag := range tags {
		c.want("200 ", "LANG "+tag)
		wantLanguage(c, tag)
		if !grammar.MatchString(c.feature("LANG")) {
			t.Errorf("%q is not the line of section 4.3", c.feature("LANG"))
		}
	}
}

// Section 4.3: a tenant may offer fewer languages, in FEAT as well as in LANG.
func TestLanguagesOfATenant(t *testing.T) {
	c := newSite(t, settings{acme: "languages: [pt-BR, ja]"}).connect(t)
	if got := len(languages(c)); got < 20 {
		t.Errorf("%d languages before HOST", got)
	}
	c.must("220", "HOST ftp.acme.example")
	if got := languages(c); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"JA", "PT-BR"}) {
		t.Errorf("got languages %q", got)
	}
	wantLanguage(c, "PT-BR")
	for line, want := range map[string]string{"LANG en": "504 ", "LANG fr": "504 ", "LANG pt": "200 ",
		"LANG JA": "200 "} {
		c.want(want, line)
	}
	c.must("200", "LANG")
	wantLanguage(c, "PT-BR")
	c.must("220", "REIN")
	if got := len(languages(c)); got < 20 {
		t.Errorf("%d languages after REIN", got)
	}
	c.must("200", "LANG fr")
	c.must("220", "HOST ftp.acme.example")
	wantLanguage(c, "PT-BR")
}

// Section 4.1: the negotiated language is used until HOST, REIN or another LANG, whatever the tenant of the user
// offers. LANG without an argument restores the default language of the user's tenant, the host or the server, in
// this order.
func TestLANGLasts(t *testing.T) {
	s := newSite(t, settings{server: "default_language: es", acme: `languages: [fr, en]
default_language: en
greeting: {en: "Welcome to Acme", fr: "Bienvenue chez Acme"}`})
	const acme, umbrella = "HOST ftp.acme.example", "HOST ftp.umbrella.example" // its default is German
	const japanese = "500 コマンドを認識できません。"
	for _, tt := range []struct {
		name string
		// commands with expected 2yz or 3yz replies unless they begin with another code; LOGIN and TLS mean several
		// commands
		lines []string
		marks string // language marked by FEAT; empty for Japanese, which FEAT does not name
	}{
		{"nothing", nil, "ES"},
		{"lang-without-tag", []string{"LANG fr", "LANG"}, "ES"},
		{"lang-without-tag-at-a-host", []string{umbrella, "LANG fr", "LANG"}, "DE"},
		{"host-of-another-default", []string{"LANG fr", umbrella}, "DE"},
		{"host-by-an-address", []string{"LANG fr", "HOST 127.0.0.1"}, "FR"}, // lftp sends LANG before HOST
		{"host-refused", []string{"LANG fr", "504 HOST ftp.unknown.example", "501 HOST a..b"}, "FR"},
		{"host-too-late", []string{"LANG fr", "LOGIN", "503 " + acme}, "FR"},
		{"login", []string{"LANG ja", "LOGIN"}, ""},
		{"nothing-chosen", []string{"LOGIN"}, "EN"},
		{"nothing-chosen-any-more", []string{"LANG ja", "LANG", "LOGIN"}, "EN"},
		{"offered", []string{"LANG fr", "LOGIN"}, "FR"},
		{"login-and-lang-without-tag", []string{"LANG ja", "LOGIN", "LANG"}, "EN"},
		{"another-lang", []string{"LANG ja", "LOGIN", "LANG fr"}, "FR"},
		{"rein", []string{"LANG ja", "LOGIN", "REIN"}, "ES"},
		{"rein-and-login", []string{"LANG ja", "LOGIN", "REIN", "LOGIN"}, "EN"},
		{"host", []string{"LANG ja", acme}, "EN"},
		{"host-and-login", []string{"LANG ja", acme, "LOGIN"}, "EN"},
		{"tls-before-login", []string{"LANG ja", "TLS", "LOGIN"}, ""},
		{"tls-with-the-name-of-the-host", []string{"LANG ja", "TLS ftp.acme.example", "LOGIN"}, ""},
		{"tls-after-login", []string{"LANG ja", "LOGIN", "TLS"}, "JA"},
		{"tls-and-another-login", []string{"LANG ja", "LOGIN", "TLS", "LOGIN"}, ""},
		{"tls-after-the-default", []string{"LANG ja", "LOGIN", "LANG", "TLS"}, "ES"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := s.connect(t)
			for _, line := range tt.lines {
				verb, argument, _ := strings.Cut(line, " ")
				switch verb {
				case "LOGIN":
					c.login()
				case "TLS":
					c.startTLS(s, argument)
				case "501", "503", "504":
					c.want(verb, argument)
				default:
					c.want("2", line)
				}
			}
			if tt.marks != "" {
				wantLanguage(c, tt.marks)
			} else if f := c.feature("LANG"); f != "LANG FR;EN" {
				t.Errorf("unexpected FEAT %q", f)
			}
			if tt.marks == "" || tt.marks == "JA" {
				c.want(japanese, "XYZZY")
			}
		})
	}
	t.Run("offer", func(t *testing.T) { // a language that was chosen is not offered again
		c := s.connect(t)
		c.must("200", "LANG ja")
		c.must("331", "USER alice@acme")
		c.want("230-Welcome to Acme\r\n230 ログインしました。", "PASS "+password)
		c.want("504 ", "LANG ja")
		c.want("504 ", "LANG de")
		c.want(japanese, "XYZZY")
		for _, tag := range languages(c) {
			c.must("200", "LANG "+tag)
			wantLanguage(c, tag)
		}
	})
}

// RFC 959 4.2 and RFC 2640 4.1: multiline replies keep their format in every language, and no text in them can be
// mistaken for the last line.
func TestRepliesOfSeveralLines(t *testing.T) {
	s := newSite(t, settings{acme: `greeting: {en: "One\n230 Two\n  three\n\n220 Four", ja: "一\n230 二"}`})
	s.inEachLanguage(t, func(t *testing.T, c *client) {
		for _, line := range []string{"FEAT", "HELP", "STAT", "HELP SITE"} {
			r := c.want("21", line)
			lines := strings.Split(r, "\r\n")
			if len(lines) < 3 {
				t.Errorf("%s: %q", line, r)
				continue
			}
			for _, middle := range lines[1 : len(lines)-1] {
				if !strings.HasPrefix(middle, " ") {
					t.Errorf("%s: line %q", line, middle)
				}
			}
		}
		c.must("220", "HOST ftp.acme.example")
		c.must("331", "USER alice")
		if r := c.must("230-", "PASS "+password); strings.Count(r, "\r\n230 ") != 1 || strings.Contains(r, "\r\n220 ") {
			t.Errorf("230: %q", r)
		}
		c.want("200 ", "NOOP")
	})
}
