package conformance_test

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Section 2.2: names with CR or LF can forge no line of a listing.
func TestNamesForgeNoLine(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	for _, name := range lineEnds {
		c.store(nvt(name.bytes), "x")
	}
	c.store("keep", "x")
	entry := regexp.MustCompile(`^((\w|-)+=[^ ;]*;)+ .`)
	for _, line := range c.list("MLSD") {
		if !entry.MatchString(line) {
			t.Errorf("MLSD: line %q", line)
		}
		if strings.ContainsAny(line, "\r\n") {
			t.Errorf("MLSD: line %q has a line end inside", line)
		}
	}
	for _, line := range c.list("LIST") {
		if !nameInLIST.MatchString(line) {
			t.Errorf("LIST: line %q", line)
		}
	}
	for _, name := range c.list("NLST") {
		c.want("213 1", "SIZE "+name) // each is the name of a file
	}
	for _, line := range []string{"STAT", "STAT /"} {
		r := c.want("21", line)
		lines := strings.Split(r, "\r\n")
		for _, middle := range lines[1 : len(lines)-1] {
			if !strings.HasPrefix(middle, " ") || strings.ContainsAny(middle, "\r\n") {
				t.Errorf("%s: line %q", line, middle)
			}
		}
	}
}

// Section 2.2: the server negotiates no Telnet options, whatever the client does.
func TestNoTelnetNegotiation(t *testing.T) {
	c := newSite(t, settings{}).dial(t)
	c.write("\xff\xfd\x01\xff\xfd\x03\xff\xfb\x18\xff\xfe\x01\xff\xfc\x05\xff\xf6")
	if r := c.wantReply("220"); strings.Contains(r, "\xff") {
		t.Errorf("greeting %q", r)
	}
	if r := c.want("200 ", "NOOP"); strings.Contains(r, "\xff") {
		t.Errorf("reply %q", r)
	}
}

// Section 2.2.2: pathnames are literal for SIZE, MDTM, MLST and MLSD: no character is magic.
func TestPathnamesAreLiteral(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	c.store("abc", "x")
	c.must("257", "MKD dir")
	for _, pattern := range []string{"*", "a*", "?bc", "[a]bc", "{abc,x}", "a*c", "~", "~alice", "$HOME", "`ls`", "|ls", "abc;", "-la", "-", "--", `\abc`, `a\bc`, "abc%00", "di*"} {
		for _, command := range []string{"SIZE", "MDTM", "MLST"} {
			c.want("550 ", command+" "+pattern)
		}
		if _, r := c.download("MLSD " + pattern); !strings.HasPrefix(r, "550 ") {
			t.Errorf("MLSD %s: %q", pattern, r)
		}
		c.store(pattern, "literal")
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

// Section 2.3 and 3.1: MDTM's reply is one line with a time in UTC.
func TestMDTM(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	before := time.Now().UTC().Truncate(time.Second)
	c.store("f", "x")
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
		t.Errorf("MLST says %q, MDTM another time", facts)
	}
	t.Run("errors", func(t *testing.T) { // section 3.2
		c := s.login(t)
		c.must("257", "MKD d")
		c.want("550 ", "MDTM d")
		c.want("550 ", "MDTM nothing")
		c.want("501 ", "MDTM")
		c.want("501 ", "MDTM ")
	})
	t.Run("sets-no-time", func(t *testing.T) { // the example of section 3.4
		c := s.login(t)
		c.store("File6", "x")
		modified := c.send("MDTM File6")
		c.want("550 ", "MDTM 19990929043300 File6")
		c.want(modified, "MDTM File6")
		c.store("19990929043300 File6", "x")
		c.want("213 2", "MDTM 19990929043300 File6")
		c.want("550 ", "MDTM 19990929043300 file6")
	})
}

// Section 4: SIZE is what a transfer would move, in one line, or no number at all.
func TestSIZE(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	for _, content := range []string{"", "x", "one\ntwo\n", "one\r\ntwo\r\n", strings.Repeat("line\n", 5000)} {
		c.store("f", content)
		for _, kind := range []string{"TYPE I", "TYPE A"} {
			c.must("200", kind)
			moved := len(c.fetch("RETR f"))
			r := c.send("SIZE f")
			if !strings.HasPrefix(r, "550 ") && r != "213 "+itoa(moved) || kind == "TYPE I" && r != "213 "+itoa(len(content)) {
				t.Errorf("%s: SIZE says %q, RETR moved %d bytes of %d", kind, r, moved, len(content))
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

func itoa(n int) string {
	if n >= 10 {
		return itoa(n/10) + itoa(n%10)
	}
	return string(rune('0' + n))
}

// Section 5.3: REST is taken, counts for the transfer that follows at once, and its range is checked there.
func TestREST(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	c.store("f", "0123456789")
	for offset, want := range map[string]string{"0": "0123456789", "4": "456789", "9": "9", "10": "", "007": "789"} {
		c.want("350 ", "REST "+offset)
		if got := c.fetch("RETR f"); got != want {
			t.Errorf("REST %s, RETR: %q, want %q", offset, got, want)
		}
	}
	if got := c.fetch("RETR f"); got != "0123456789" {
		t.Errorf("RETR behind one that was restarted: %q", got)
	}
	c.want("350 ", "REST 11")
	if _, r := c.download("RETR f"); !strings.HasPrefix(r, "5") {
		t.Errorf("REST behind the end, RETR: %q", r)
	}
	if got := c.fetch("RETR f"); got != "0123456789" {
		t.Errorf("RETR behind one that failed: %q", got)
	}
	for _, line := range []string{"REST", "REST ", "REST -1", "REST +1", "REST x", "REST 1x", "REST 1 ", "REST 0x10", "REST 1.5", "REST 1e3", "REST ٣"} {
		c.want("501 ", line)
	}
	if got := c.fetch("RETR f"); got != "0123456789" {
		t.Errorf("RETR behind malformed REST: %q", got)
	}
	t.Run("stor", func(t *testing.T) {
		c := s.login(t)
		c.store("partial", "01234")
		c.want("350 ", "REST 5")
		c.store("partial", "56789")
		if got := c.fetch("RETR partial"); got != "0123456789" {
			t.Errorf("the file holds %q", got)
		}
	})
	t.Run("appe-acts-as-stor", func(t *testing.T) {
		c := s.login(t)
		c.store("partial", "0123xx")
		c.want("350 ", "REST 4")
		r := c.upload("APPE partial", "456789")
		if got := s.object(t, "partial"); strings.HasPrefix(r, "2") && got != "0123456789" {
			t.Errorf("APPE: %q, the file holds %q", r, got)
		}
	})
	t.Run("replaced-by-another", func(t *testing.T) {
		c := s.login(t)
		c.want("350 ", "REST 4")
		c.want("350 ", "REST 0")
		if got := c.fetch("RETR f"); got != "0123456789" {
			t.Errorf("RETR: %q", got)
		}
	})
	t.Run("large", func(t *testing.T) {
		c := s.login(t)
		c.want("350 ", "REST 9223372036854775807")
		if _, r := c.download("RETR f"); !strings.HasPrefix(r, "5") {
			t.Errorf("RETR: %q", r)
		}
	})
	t.Run("listings-do-not-mind", func(t *testing.T) {
		c := s.login(t)
		c.want("350 ", "REST 4")
		if got := c.list("NLST"); !slices.Contains(got, "f") {
			t.Errorf("NLST: %q", got)
		}
	})
}

// Section 5.3: only what is no number gets an error; what cannot be restarted is told by the transfer.
func TestRESTInASCII(t *testing.T) {
	c := newSite(t, settings{}).login(t)
	c.store("f", "one\ntwo\n")
	c.must("200", "TYPE A")
	c.want("350 ", "REST 5")
	if content, r := c.download("RETR f"); strings.HasPrefix(r, "2") && content != "two\r\n" {
		t.Errorf("RETR in ASCII from 5: %q", content)
	}
	c.want("350 ", "REST 0")
	if got := c.fetch("RETR f"); got != "one\r\ntwo\r\n" {
		t.Errorf("RETR in ASCII: %q", got)
	}
}

// Section 3.3, 4.3, 5.4, 6.3: the lines of FEAT, in capitals.
func TestFEATSaysRFC3659(t *testing.T) {
	c := newSite(t, settings{}).connect(t)
	for _, want := range []string{"MDTM", "SIZE", "REST STREAM", "TVFS"} {
		if !slices.Contains(c.features(), want) {
			t.Errorf("FEAT does not say %q", want)
		}
	}
	if f := c.feature("MLST"); !regexp.MustCompile(`^MLST ([\w.-]+\*?;)+$`).MatchString(f) {
		t.Errorf("FEAT says %q", f)
	}
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
			if got := c.fetch("RETR " + file); got != "content of "+file[1:] {
				t.Errorf("in %s RETR %s: %q", cwd, file, got)
			}
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
					t.Errorf("MLSD %s: name %q", dir, name)
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

// Section 7.2: the form of MLST's reply.
func TestFormOfMLST(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	c.store("f", "1234")
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
			t.Errorf("%s: facts %q", tt.line, facts)
		}
		// Section 7.3.1: the name that was asked for, or a fully qualified one.
		if name != tt.name && name != absolute(tt.name) {
			t.Errorf("%s: name %q", tt.line, name)
		}
		if hasSize := strings.Contains(facts, "size="); hasSize != (tt.kind == "file") {
			t.Errorf("%s: facts %q", tt.line, facts)
		}
	}
	c.must("250", "CWD d")
	if _, name := c.entry("MLST"); name != "/d" {
		t.Errorf("MLST in /d shows %q", name)
	}
	if facts, _ := c.entry("MLST /f"); !strings.Contains(facts, "size=4;") {
		t.Errorf("MLST: facts %q", facts)
	}
}

// absolute is the fully qualified form of the names in a table.
func absolute(name string) string {
	name = strings.ReplaceAll(name, "d/../", "")
	return "/" + strings.TrimPrefix(name, "/")
}

// Section 7.2 and 7.3.1: the form of MLSD's lines.
func TestFormOfMLSD(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	c.must("257", "MKD d")
	for _, name := range []string{"f", "two words", " leading", "trailing ", "a;b", "a=b;", ";", "=", "e"} {
		c.store("d/"+name, "1234")
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
			if file := match[2] != "sub"; strings.Contains(match[1], "type=file;size=4;") != file || strings.Contains(match[1], "type=dir;") == file {
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

// Section 7.2.1: what MLST and MLSD cannot do, without opening a data connection.
func TestMLSxErrors(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	c.store("f", "x")
	conn := c.data()
	c.want("501 ", "MLSD f")
	c.want("550 ", "MLST nothing")
	c.want("550 ", "MLST f/x")
	c.must("229", "EPSV")
	c.want("550 ", "MLSD nothing")
	c.must("229", "EPSV")
	c.want("5", "MLSD f/x")
	if b, err := io.ReadAll(conn); len(b) > 0 {
		t.Errorf("a data connection has %q, %v", b, err)
	}
	// Section 11: nothing before login.
	c = s.connect(t)
	c.want("530 ", "MLST")
	c.want("530 ", "MLSD")
	c.want("530 ", "MLST /")
}

// Section 7.2: MLSD goes as TYPE L 8 whatever the type is, and leaves it as it is.
func TestMLSDHasATypeOfItsOwn(t *testing.T) {
	c := newSite(t, settings{}).login(t)
	c.must("200", "TYPE I")
	c.store("a", "one\ntwo\n")
	want := c.fetch("MLSD")
	c.must("200", "TYPE A")
	if got := c.fetch("MLSD"); got != want {
		t.Errorf("MLSD in ASCII: %q, want %q", got, want)
	}
	if got := c.fetch("RETR a"); got != "one\r\ntwo\r\n" {
		t.Errorf("RETR behind MLSD: %q", got)
	}
}

// Section 7.9: OPTS MLST chooses the facts of MLST, MLSD and FEAT; the dialogue of 7.9.2 is among the steps.
func TestOPTSMLST(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	c.store("f", "1234")
	for _, step := range []struct{ line, reply, facts string }{
		{"OptS Mlst Type;UNIX.mode;Size;", "200 MLST OPTS type;size;", "type=file;size=4;"},
		{"opts MLst lang;type;charset;", "200 MLST OPTS type;", "type=file;"},
		{"OPTS mlst size;frogs;", "200 MLST OPTS size;", "size=4;"},
		{"opts MLst size type", "501 ", "size=4;"},
		{"opts MLst fish cakes;", "501 ", "size=4;"},
		{"OPTS MLST type; size;", "501 ", "size=4;"},
		{"OPTS MLST type", "501 ", "size=4;"},
		{"OPTS MLST TYPE;tYpE;", "200 MLST OPTS type;", "type=file;"},
		{"Opts MLST", "200 MLST OPTS", ""},
		{"OPTS mlst fish;cakes;", "200 MLST OPTS", ""},
		{"OPTS MLST type;", "200 MLST OPTS type;", "type=file;"},
	} {
		r := c.want(step.reply, step.line)
		if strings.HasPrefix(r, "200") && r != step.reply {
			t.Errorf("%s: %q", step.line, r)
		}
		if got, name := c.entry("MLST f"); got != step.facts || name != "f" && name != "/f" {
			t.Errorf("behind %s: facts %q and name %q, want %q", step.line, got, name, step.facts)
		}
		if got := c.fetch("MLSD"); got != step.facts+" f\r\n" {
			t.Errorf("behind %s: MLSD %q", step.line, got)
		}
		var marked strings.Builder // what FEAT marks is what is shown
		for f := range strings.SplitSeq(strings.TrimPrefix(c.feature("MLST"), "MLST "), ";") {
			if name, ok := strings.CutSuffix(f, "*"); ok {
				marked.WriteString(name + ";")
			}
		}
		if want := regexp.MustCompile(`=[^;]*`).ReplaceAllString(step.facts, ""); marked.String() != want {
			t.Errorf("behind %s: FEAT marks %q, want %q", step.line, marked.String(), want)
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
}

// Section 7.5: facts as the grammar has them.
func TestFacts(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	c.store("f", "1234")
	c.must("257", "MKD d")
	c.must("200", "OPTS MLST type;size;modify;create;perm;unique;lang;media-type;charset;")
	value := map[string]*regexp.Regexp{
		"type": regexp.MustCompile(`^(file|dir|cdir|pdir)$`), "size": regexp.MustCompile(`^\d+$`), "modify": timeVal, "create": timeVal,
		"perm": regexp.MustCompile(`^[acdeflmprw]*$`), "unique": regexp.MustCompile(`^[^ ;=]+$`), "lang": regexp.MustCompile(`^[A-Za-z0-9-]+$`),
		"media-type": regexp.MustCompile(`^[^ ;/]+/[^ ;/]+$`), "charset": regexp.MustCompile(`^[^ ;=]+$`),
	}
	entries := c.list("MLSD")
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
	for _, want := range []string{"type", "size", "modify"} {
		if f := c.feature("MLST"); !strings.Contains(f, want+"*;") {
			t.Errorf("FEAT: %q, not %s", f, want)
		}
	}
}

// Section 7.1: MLSx takes what begins with "-" for a name.
func TestMLSxHasNoOptions(t *testing.T) {
	c := newSite(t, settings{}).login(t)
	c.want("550 ", "MLST -la")
	if _, r := c.download("MLSD -la"); !strings.HasPrefix(r, "550 ") {
		t.Errorf("MLSD -la: %q", r)
	}
	c.must("257", "MKD -la")
	c.store("-la/f", "x")
	if got := c.names("MLSD -la"); !slices.Equal(got, []string{"f"}) {
		t.Errorf("MLSD -la: %q", got)
	}
}
