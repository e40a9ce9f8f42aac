package conformance_test

import (
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// Section 2.2: listings show CR and LF as control pictures, and this form of the name can be used to access the
// file.
func TestLineEndsAreShownAsPictures(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	var want []string
	for _, name := range lineEnds {
		c.Store(nvt(name.bytes), "content of "+name.bytes)
		want = append(want, pictures.Replace(name.bytes))
	}
	slices.Sort(want)
	for _, line := range []string{"NLST", "MLSD", "LIST"} {
		got := c.names("MLSD")
		switch line {
		case "NLST":
			got = c.list(line)
		case "LIST":
			got = c.list(line)
			for i := range got {
				got[i] = nameInLIST.ReplaceAllString(got[i], "")
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
	for _, name := range lineEnds {
		shown := shown(name.bytes)
		c.Want("content of "+name.bytes, "RETR "+shown)
		c.want("213 ", "SIZE "+shown)
		c.want("250-", "MLST "+shown)
		c.Store(shown, "new") // replaces the file instead of creating another
		c.want("350 ", "RNFR "+shown)
		c.want("250 ", "RNTO moved")
		c.want("250 ", "DELE moved")
		c.must("257", "MKD "+nvt(name.bytes))
		c.want("250 ", "CWD "+shown)
		c.want("250 ", "CDUP")
		c.want("250 ", "RMD "+shown)
	}
	if keys := s.keys(t); len(keys) > 0 {
		t.Errorf("unexpected keys %q", keys)
	}
}

// Section 2.2: the server does not negotiate Telnet options and rejects the client's attempts (RFC 1123 4.1.2.12).
func TestNoTelnetNegotiation(t *testing.T) {
	const doEcho, willType, dontEcho, wontStatus, nop = "\xff\xfd\x01", "\xff\xfb\x18", "\xff\xfe\x01", "\xff\xfc\x05",
		"\xff\xf1"
	const wontEcho, dontType = "\xff\xfc\x01", "\xff\xfe\x18"
	s := newSite(t, settings{})
	t.Run("before-the-greeting", func(t *testing.T) {
		c := s.dial(t)
		c.write(doEcho + willType + dontEcho + wontStatus + nop)
		if r := c.wantReply("220"); strings.Contains(r, "\xff") {
			t.Errorf("unexpected greeting %q", r)
		}
		c.want(wontEcho+dontType+"200 ", "NOOP")
		c.want("200 ", "NOOP")
	})
	t.Run("nothing-behind", func(t *testing.T) { // a client may wait for the response before its next command
		c := s.connect(t)
		for range 3 {
			c.write(doEcho)
			c.wantBytes(wontEcho)
		}
		c.want("200 ", "NOOP")
	})
	t.Run("answers-keep-the-order", func(t *testing.T) {
		c := s.login(t)
		data := c.Data()
		c.must("150", "STOR f")
		c.write(doEcho + "NOOP\r\n" + willType + "NOOP\r\n")
		must.OK(t, data.Close())
		for _, want := range []string{"226 ", wontEcho + "200 ", dontType + "200 "} {
			c.wantReply(want)
		}
	})
	t.Run("letters-of-a-charset", func(t *testing.T) { // in windows-1251 FF FD is "яэ"
		c := newSite(t, settings{acme: "compatibility: {charset: windows-1251}"}).login(t)
		const name = "\xff\xfd\xf2\xee"
		c.Store(name, "x")
		c.want("213 1", "SIZE "+name)
		c.want(wontEcho+"213 1", doEcho+"SIZE "+name)
	})
}

// Section 2.2.2: SIZE, MDTM, MLST and MLSD take pathnames literally, without wildcards.
func TestPathnamesAreLiteral(t *testing.T) {
	c := newSite(t, settings{}).login(t)
	c.Store("abc", "x")
	c.must("257", "MKD dir")
	for _, pattern := range []string{"*", "a*", "?bc", "[a]bc", "{abc,x}", "a*c", "~", "~alice", "$HOME", "`ls`", "|ls",
		"abc;", "-la", "-", "--", `\abc`, `a\bc`, "abc%00", "di*"} {
		for _, command := range []string{"SIZE", "MDTM", "MLST"} {
			c.want("550 ", command+" "+pattern)
		}
		if _, r, err := c.Download("MLSD " + pattern); err != nil || !strings.HasPrefix(r, "550 ") {
			t.Errorf("MLSD %s: %q", pattern, r)
		}
		c.Store(pattern, "literal")
		c.want("213 7", "SIZE "+pattern)
		c.want("213 2", "MDTM "+pattern)
		c.entry("MLST " + pattern)
		c.want("213 1", "SIZE abc")
		c.want("250 ", "DELE "+pattern)
		c.must("257", "MKD "+pattern)
		if got := c.names("MLSD " + pattern); len(got) > 0 {
			t.Errorf("MLSD %s: %q", pattern, got)
		}
		c.must("250", "RMD "+pattern)
	}
}

var timeVal = regexp.MustCompile(`^\d{14}(\.\d+)?$`)

// Section 2.3 and 3.1: the reply to MDTM is one line with a UTC time.
func TestMDTM(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	before := time.Now().UTC().Truncate(time.Second)
	c.Store("f", "x")
	for _, line := range []string{"MDTM f", "mdtm f", "MdTm /f"} {
		r := c.want("213 ", line)
		stamp := strings.TrimPrefix(r, "213 ")
		if !timeVal.MatchString(stamp) {
			t.Errorf("%s: %q", line, r)
			continue
		}
		at, err := time.Parse("20060102150405", stamp[:14])
		if err != nil || at.Before(before.Add(-time.Second)) || at.After(time.Now().UTC().Add(time.Second)) {
			t.Errorf("%s: %q, stored at %v", line, r, before)
		}
	}
	if facts, _ := c.entry("MLST f"); !strings.Contains(facts, "modify="+strings.TrimPrefix(c.send("MDTM f"), "213 ")) {
		t.Errorf("MLST: got %q, but MDTM has another time", facts)
	}
	t.Run("errors", func(t *testing.T) { // section 3.2
		c := s.login(t)
		c.must("257", "MKD d")
		c.want("550 ", "MDTM d")
		c.want("550 ", "MDTM nothing")
		c.want("501 ", "MDTM")
		c.want("501 ", "MDTM ")
	})
}

// Section 4: SIZE returns the number of bytes of a transfer in one line, or an error.
func TestSIZE(t *testing.T) {
	c := newSite(t, settings{}).login(t)
	for _, content := range []string{"", "x", "one\ntwo\n", "one\r\ntwo\r\n", strings.Repeat("line\n", 5000)} {
		c.Store("f", content)
		for _, kind := range []string{"TYPE I", "TYPE A"} {
			c.must("200", kind)
			moved := len(c.Transfer("RETR f"))
			r := c.send("SIZE f")
			if !strings.HasPrefix(r, "550 ") && r != "213 "+strconv.Itoa(moved) || kind == "TYPE I" &&
				r != "213 "+strconv.Itoa(len(content)) {
				t.Errorf("%s: SIZE: got %q, RETR sent %d bytes of %d", kind, r, moved, len(content))
			}
			c.must("200", "TYPE I")
		}
	}
	c.must("257", "MKD d")
	c.want("550 ", "SIZE d")
	c.want("550 ", "SIZE /")
	c.want("550 ", "SIZE nothing")
	c.want("501 ", "SIZE")
	c.want("501 ", "SIZE ")
}

// Section 5.3: REST applies to the transfer that follows immediately, which checks the range.
func TestREST(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	c.Store("f", "0123456789")
	for offset, want := range map[string]string{"0": "0123456789", "4": "456789", "9": "9", "10": "", "007": "789"} {
		c.want("350 ", "REST "+offset)
		c.Want(want, "RETR f")
	}
	c.Want("0123456789", "RETR f")
	c.want("350 ", "REST 11")
	if _, r, err := c.Download("RETR f"); err != nil || !strings.HasPrefix(r, "5") {
		t.Errorf("RETR after REST beyond the end: got %q", r)
	}
	c.Want("0123456789", "RETR f")
	for _, line := range []string{"REST", "REST ", "REST -1", "REST +1", "REST x", "REST 1x", "REST 1 ", "REST 0x10",
		"REST 1.5", "REST 1e3", "REST ٣"} {
		c.want("501 ", line)
	}
	c.Want("0123456789", "RETR f")
	t.Run("large", func(t *testing.T) {
		c := s.login(t)
		c.want("350 ", "REST 9223372036854775807")
		if _, r, err := c.Download("RETR f"); err != nil || !strings.HasPrefix(r, "5") {
			t.Errorf("RETR: %q", r)
		}
	})
}

// Section 6.2 and its example in 6.5.
func TestTVFS(t *testing.T) {
	s := newSite(t, settings{})
	for _, key := range []string{"A/C/P", "A/C/Q", "A/Z", "B/P", "B/Q", "X", "Y"} {
		s.put(t, key, "content of "+key)
	}
	s.put(t, "A/D/", "")
	c := s.login(t)
	for _, dir := range []string{"/", "/A", "/B", "/A/C", "/A/D", "A", "A/C", "A/D"} {
		c.want("250-", "MLST "+dir)
		c.want("250 ", "CWD "+dir)
		c.want("250 ", "CWD /")
	}
	for _, cwd := range []string{"/", "/A", "/A/D"} {
		c.must("250", "CWD "+cwd)
		for _, file := range []string{"/X", "/Y", "/A/Z", "/A/C/P", "/A/C/Q", "/B/P", "/B/Q"} {
			c.Want("content of "+file[1:], "RETR "+file)
		}
	}
	c.must("250", "CWD /A")
	for _, file := range []string{"Z", "C/P", "C/Q"} {
		c.want("213 ", "SIZE "+file)
	}
	for _, path := range []string{"A", "B", "X", "Y", "B/P", "B/Q", "P", "Q"} {
		c.want("550 ", "MLST "+path)
	}
	t.Run("mlsd-and-cwd-agree", func(t *testing.T) {
		c := s.login(t)
		for _, dir := range []string{"/", "/A", "/A/C", "/A/D", "/B"} {
			c.must("250", "CWD /")
			for _, name := range c.names("MLSD " + dir) {
				if strings.Contains(name, "/") || name == "" {
					t.Errorf("MLSD %s: unexpected name %q", dir, name)
				}
				c.must("250", "CWD "+dir)
				c.want("250-", "MLST "+name)
				c.want("250-", "MLST "+strings.TrimSuffix(dir, "/")+"/"+name)
			}
		}
	})
	t.Run("case-counts", func(t *testing.T) {
		c := s.login(t)
		c.want("550 ", "SIZE x")
		c.want("550 ", "CWD a")
	})
}

// Section 7.2: the format of the reply to MLST.
func TestFormOfMLST(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	c.Store("f", "1234")
	c.must("257", "MKD d")
	c.must("257", "MKD d/e")
	entry := regexp.MustCompile(`^(\S+=\S*;)+$`)
	for _, tt := range []struct{ line, kind, name string }{
		{"MLST f", "file", "f"},
		{"mlst /f", "file", "/f"},
		{"MLST d/../f", "file", "d/../f"},
		{"MLST d", "dir", "d"},
		{"MLST d/e", "dir", "d/e"},
		{"MLST /", "dir", "/"},
		{"MLST", "dir", "/"},
	} {
		facts, name := c.entry(tt.line)
		if !entry.MatchString(facts) || !strings.Contains(facts, "type="+tt.kind+";") {
			t.Errorf("%s: unexpected facts %q", tt.line, facts)
		}
		// Section 7.3.1: the requested name, or a fully qualified one.
		if name != tt.name && name != absolute(tt.name) {
			t.Errorf("%s: unexpected name %q", tt.line, name)
		}
		if !regexp.MustCompile(`(^|;)modify=\d{14};`).MatchString(facts) {
			t.Errorf("%s: unexpected facts %q", tt.line, facts)
		}
		if hasSize := strings.Contains(facts, "size="); hasSize != (tt.kind == "file") {
			t.Errorf("%s: unexpected facts %q", tt.line, facts)
		}
	}
	c.must("250", "CWD d")
	if _, name := c.entry("MLST"); name != "/d" {
		t.Errorf("MLST in /d: got %q", name)
	}
	if facts, _ := c.entry("MLST /f"); !strings.Contains(facts, "size=4;") {
		t.Errorf("MLST: facts %q", facts)
	}
}

// absolute returns the fully qualified form of a name in the table.
func absolute(name string) string {
	name = strings.ReplaceAll(name, "d/../", "")
	return "/" + strings.TrimPrefix(name, "/")
}

// Section 7.2 and 7.3.1: the format of MLSD lines.
func TestFormOfMLSD(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	c.must("257", "MKD d")
	for _, name := range []string{"f", "two words", " leading", "trailing ", "a;b", "a=b;", ";", "=", "e"} {
		c.Store("d/"+name, "1234")
	}
	c.must("257", "MKD d/sub")
	line := regexp.MustCompile(`^((?:[\w.-]+=[^ ;]*;)+) (.+)$`)
	for _, command := range []string{"MLSD d", "mlsd /d", "MLSD d/", "MLSD /d/sub/.."} {
		var names []string
		for _, entry := range c.list(command) {
			match := line.FindStringSubmatch(entry)
			if match == nil {
				t.Errorf("%s: line %q", command, entry)
				continue
			}
			if strings.Contains(match[1], "type=cdir;") || strings.Contains(match[1], "type=pdir;") {
				continue
			}
			names = append(names, match[2])
			if file := match[2] != "sub"; strings.Contains(match[1], "type=file;size=4;") != file ||
				strings.Contains(match[1], "type=dir;") == file {
				t.Errorf("%s: line %q", command, entry)
			}
		}
		want := []string{" leading", ";", "=", "a;b", "a=b;", "e", "f", "sub", "trailing ", "two words"}
		if slices.Sort(names); !slices.Equal(names, want) {
			t.Errorf("%s: names %q, want %q", command, names, want)
		}
	}
	c.must("250", "CWD d")
	if got := c.names("MLSD"); len(got) != 10 {
		t.Errorf("MLSD of the working directory: %q", got)
	}
}

// Section 7.2.1: errors of MLST and MLSD, without opening a data connection.
func TestMLSxErrors(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	c.Store("f", "x")
	conn := c.Data()
	c.want("501 ", "MLSD f")
	c.want("550 ", "MLST nothing")
	c.want("550 ", "MLST f/x")
	c.must("229", "EPSV")
	c.want("550 ", "MLSD nothing")
	c.must("229", "EPSV")
	c.want("5", "MLSD f/x")
	if b, err := io.ReadAll(conn); len(b) > 0 {
		t.Errorf("data connection: got %q, %v", b, err)
	}
	// Section 11: not allowed before login.
	c = s.connect(t)
	c.want("530 ", "MLST")
	c.want("530 ", "MLSD")
	c.want("530 ", "MLST /")
}

// Section 7.2: MLSD always transfers as TYPE L 8 and does not change the current type.
func TestMLSDHasATypeOfItsOwn(t *testing.T) {
	c := newSite(t, settings{}).login(t)
	c.must("200", "TYPE I")
	c.Store("a", "one\ntwo\n")
	want := c.Transfer("MLSD")
	c.must("200", "TYPE A")
	c.Want(want, "MLSD")
	c.Want("one\r\ntwo\r\n", "RETR a")
}

// factNames returns the sorted, lowercase names in a fact list.
func factNames(facts string) []string {
	var names []string
	for fact := range strings.SplitSeq(facts, ";") {
		if name, _, _ := strings.Cut(strings.ToLower(fact), "="); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// markedFacts returns the facts marked by FEAT.
func (c *client) markedFacts() []string {
	c.t.Helper()
	var marked strings.Builder
	for fact := range strings.SplitSeq(strings.TrimPrefix(c.feature("MLST"), "MLST "), ";") {
		if name, ok := strings.CutSuffix(fact, "*"); ok {
			marked.WriteString(name + ";")
		}
	}
	return factNames(marked.String())
}

// Section 7.9: OPTS MLST selects the facts of MLST, MLSD and FEAT. The steps are from the dialogs in section 7.9.2,
// with some additions.
func TestOPTSMLST(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	c.Store("f", "1234")
	current := c.markedFacts()
	for _, step := range []struct{ line, facts string }{
		{"OptS Mlst Type;UNIX.mode;Perm;", "type;perm;"},
		{"opts MLst x.lang;type;x.charset;", "type;"},
		{"OPTS mlst size;frogs;", "size;"},
		{"opts MLst unique type", "501"},
		{"OPTS MLST type; size;", "501"},
		{"OPTS MLST  type;", "501"},
		{"OPTS MLST type; ", "501"},
		{"OPTS MLST type", "501"},
		{"OPTS MLST ;", "501"},
		{"OPTS MLST type;;size;", "501"},
		{"OPTS MLST TYPE;tYpE;", "type;"},
		{"Opts MLST", ""},
		{"OPTS mlst unique;size;", "unique;size;"},
		{"OPTS mlst unique;type;modify;", "unique;type;modify;"},
		{"OPTS mlst fish;cakes;", ""},
		{"OptS Mlst Modify;Unique;", "modify;unique;"},
		{"opts MLst fish cakes;", "501"},
		{"OPTS MLST size;", "size;"},
	} {
		if step.facts == "501" {
			c.want("501 ", step.line)
		} else {
			r := c.want("200 MLST OPTS", step.line)
			current = factNames(step.facts)
			facts := strings.TrimPrefix(r, "200 MLST OPTS")
			if got := factNames(strings.TrimSpace(facts)); !slices.Equal(got, current) || facts != "" &&
				!strings.HasSuffix(facts, ";") {
				t.Errorf("%s: %q", step.line, r)
			}
		}
		if got, name := c.entry("MLST f"); !slices.Equal(factNames(got), current) || name != "f" && name != "/f" {
			t.Errorf("after %s: MLST has the facts %q and the name %q, want %q", step.line, got, name, current)
		}
		for _, entry := range c.list("MLSD") {
			facts, name, _ := strings.Cut(entry, " ")
			isHeading := strings.Contains(facts, "type=cdir;") || strings.Contains(facts, "type=pdir;")
			if !isHeading && (!slices.Equal(factNames(facts), current) || name != "f") {
				t.Errorf("after %s: unexpected MLSD %q", step.line, entry)
			}
		}
		if got := c.markedFacts(); !slices.Equal(got, current) {
			t.Errorf("after %s: FEAT marks %q, want %q", step.line, got, current)
		}
	}
	t.Run("before-login", func(t *testing.T) { // section 11
		c := s.connect(t)
		c.want("200 MLST OPTS type;", "OPTS MLST type;")
		c.login()
		if got, _ := c.entry("MLST f"); got != "type=file;" {
			t.Errorf("MLST: facts %q", got)
		}
	})
	t.Run("rein-undoes", func(t *testing.T) {
		c := s.connect(t)
		before := c.markedFacts()
		c.want("200 MLST OPTS type;", "OPTS MLST type;")
		c.must("220", "REIN")
		if got := c.markedFacts(); !slices.Equal(got, before) {
			t.Errorf("FEAT marks %q, want %q", got, before)
		}
	})
}

// everyFact enables all facts that FEAT names.
func (c *client) everyFact() {
	c.t.Helper()
	c.must("200", "OPTS MLST "+strings.ReplaceAll(strings.TrimPrefix(c.feature("MLST"), "MLST "), "*", ""))
}

// fact returns the value of a fact and whether it is present.
func fact(facts, name string) (string, bool) {
	for f := range strings.SplitSeq(facts, ";") {
		if label, value, _ := strings.Cut(f, "="); strings.EqualFold(label, name) {
			return value, true
		}
	}
	return "", false
}

// Section 7.5: facts follow the grammar.
func TestFacts(t *testing.T) {
	c := newSite(t, settings{}).login(t)
	c.Store("f", "1234")
	c.must("257", "MKD d")
	c.must("257", "MKD d/e")
	value := map[string]*regexp.Regexp{
		"type": regexp.MustCompile(`^(file|dir|cdir|pdir)$`), "size": regexp.MustCompile(`^\d+$`), "modify": timeVal,
		"create": timeVal,
		"perm":   regexp.MustCompile(`^[acdeflmprw]*$`), "unique": regexp.MustCompile(`^[^ ;=]+$`),
		"lang":       regexp.MustCompile(`^[A-Za-z0-9-]+$`),
		"media-type": regexp.MustCompile(`^[^ ;/]+/[^ ;/]+$`), "charset": regexp.MustCompile(`^[^ ;=]+$`),
	}
	c.everyFact()
	var entries []string
	for _, line := range []string{"MLSD", "MLSD d", "MLSD d/e"} {
		entries = append(entries, c.list(line)...)
	}
	for _, line := range []string{"MLST f", "MLST d", "MLST"} {
		facts, name := c.entry(line)
		entries = append(entries, facts+" "+name)
	}
	for _, entry := range entries {
		facts, _, _ := strings.Cut(entry, " ")
		seen := map[string]bool{}
		for fact := range strings.SplitSeq(strings.TrimSuffix(facts, ";"), ";") {
			name, got, _ := strings.Cut(fact, "=")
			name = strings.ToLower(name)
			if pattern := value[name]; pattern == nil || !pattern.MatchString(got) || seen[name] {
				t.Errorf("%q: fact %q", entry, fact)
			}
			seen[name] = true
		}
	}
	// Section 7.5.10.
	for _, want := range []string{"type", "perm", "size", "unique", "modify"} {
		if !slices.Contains(
			factNames(strings.ReplaceAll(strings.TrimPrefix(c.feature("MLST"), "MLST "), "*", "")), want) {
			t.Errorf("FEAT does not name the fact %s", want)
		}
	}
}

// Section 7.5.2: an object always has the same token, also in later sessions, and different objects have different
// tokens.
func TestUnique(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	for _, name := range []string{"a", "A", "b", "d/a"} {
		c.Store(name, "same")
	}
	c.must("257", "MKD e")
	unique := func(c *client, name string) string {
		c.t.Helper()
		c.must("200", "OPTS MLST unique;")
		facts, _ := c.entry("MLST " + name)
		token, _ := fact(facts, "unique")
		return token
	}
	tokens := map[string]string{}
	for _, name := range []string{"a", "A", "b", "d", "d/a", "e", "/"} {
		token := unique(c, name)
		if other, taken := tokens[token]; taken || token == "" {
			t.Errorf("%s has the same token %q as %s", name, token, other)
		}
		tokens[token] = name
	}
	for _, same := range [][2]string{{"a", "/a"}, {"a", "d/../a"}, {"d/a", "/d/a"}, {"d", "/d"}} {
		if unique(c, same[0]) != unique(s.login(t), same[1]) {
			t.Errorf("%s and %s have different tokens", same[0], same[1])
		}
	}
	c.must("250", "CWD d")
	entries := c.list("MLSD")
	if want := "unique=" + unique(c, "/d/a") + "; a"; !slices.Contains(entries, want) {
		t.Errorf("MLSD %q, want %q", entries, want)
	}
	if token := unique(c, "/d/a"); strings.Contains(token, s.bucket) || strings.Contains(token, "d/a") { // section 11
		t.Errorf("the token %q contains the key", token)
	}
}

// Section 7.5.6, 7.5.8 and 7.5.9: lang is not guessed, media-type is the object's content type, and charset is the
// charset of the name.
func TestNothingIsGuessed(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	c.everyFact()
	for _, name := range []string{"page.html", "日本語.txt", "photo.jpg", "été.fr", "README"} {
		c.Store(name, "<!DOCTYPE html><html lang=fr><p>Bonjour</html>")
		facts, _ := c.entry("MLST " + name)
		head, err := s.client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &s.bucket, Key: &name})
		must.OK(t, err)
		if got, _ := fact(facts, "media-type"); got != aws.ToString(head.ContentType) {
			t.Errorf("%s: got media-type=%s, want %q as in the object", name, got, aws.ToString(head.ContentType))
		}
		if got, ok := fact(facts, "lang"); ok {
			t.Errorf("%s has lang=%s", name, got)
		}
		if got, ok := fact(facts, "charset"); ok && got != "UTF-8" {
			t.Errorf("%s has charset=%s", name, got)
		}
	}
	t.Run("without-a-type", func(t *testing.T) {
		s.put(t, "untyped.html", "<p>Bonjour")
		facts, _ := c.entry("MLST untyped.html")
		if got, ok := fact(facts, "media-type"); ok && got != "application/octet-stream" {
			t.Errorf("media-type=%s", got)
		}
	})
	t.Run("what-the-object-says", func(t *testing.T) {
		contentType := "text/html; charset=iso-8859-1"
		_, err := s.client.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: &s.bucket, Key: aws.String("typed"), Body: strings.NewReader("x"), ContentType: &contentType,
		})
		must.OK(t, err)
		facts, _ := c.entry("MLST typed")
		if got, _ := fact(facts, "media-type"); got != "text/html" {
			t.Errorf("media-type=%s", got)
		}
	})
	t.Run("charset-of-the-tenant", func(t *testing.T) {
		s := newSite(t, settings{acme: "compatibility: {charset: shift_jis}"})
		c := s.login(t)
		c.everyFact()
		c.Store("\x93\xfa", "x")
		for _, entry := range c.list("MLSD") {
			if got, _ := fact(entry, "charset"); !strings.EqualFold(got, "Shift_JIS") {
				t.Errorf("got %q", entry)
			}
		}
		c.must("200", "OPTS UTF8 ON")
		if facts, _ := c.entry("MLST \x93\xfa"); !strings.Contains(strings.ToUpper(facts), "CHARSET=UTF-8;") {
			t.Errorf("facts %q", facts)
		}
	})
}
