package conformance_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// charsets lists tenants with a charset, the bytes of a name that clients write, and the stored name. Package
// pathname tests all charsets.
var charsets = []struct{ charset, bytes, name string }{
	{"iso-8859-8", "\xe5", "ו"}, // VAV from section 2.3.1, which wrongly uses E4 (HE) for it
	{"windows-1251", "\xcf\xf0\xe8\xe2\xe5\xf2 \xff", "Привет я"},
	{"windows-874", "\xab", "ซ"}, // SO SO from section 2.3.2
	// the second byte of a character is 5C, a backslash
	{"shift_jis", "\x93\xfa\x96\x7b\x8c\xea \x83\x5c.txt", "日本語 ソ.txt"},
}

// Section 3.1 and 3.1.1: the administrator configures a charset. The server translates its UTF-8 names for clients
// that do not know UTF-8, and accepts names in either encoding.
func TestConfiguredCharset(t *testing.T) {
	for _, tt := range charsets {
		t.Run(tt.charset, func(t *testing.T) {
			s := newSite(t, settings{acme: "compatibility: {charset: " + tt.charset + "}"})
			c := s.login(t)
			c.Store(nvt(tt.bytes), "content")
			if keys := s.keys(t); !slices.Equal(keys, []string{tt.name}) {
				t.Fatalf("got keys %q, want %q", keys, tt.name)
			}
			for _, spelling := range []string{nvt(tt.bytes), tt.name} {
				c.Want("content", "RETR "+spelling)
				c.want("213 7", "SIZE "+spelling)
			}
			shows := func(name string) {
				t.Helper()
				if got := c.list("NLST"); !slices.Equal(got, []string{name}) {
					t.Errorf("NLST: got %q, want %q", got, name)
				}
				if got := c.names("MLSD"); !slices.Equal(got, []string{name}) {
					t.Errorf("MLSD: got %q, want %q", got, name)
				}
				if got := c.list("LIST"); len(got) != 1 || nameInLIST.ReplaceAllString(got[0], "") != name {
					t.Errorf("LIST: got %q, want %q", got, name)
				}
				if r := c.want("213-", "STAT "+nvt(name)); !strings.Contains(r, " "+nvt(name)+"\r\n") {
					t.Errorf("STAT: got %q, want %q", r, name)
				}
			}
			shows(tt.bytes)
			c.want("200 ", "OPTS UTF8 ON")
			shows(tt.name)
			c.want("200 ", "OPTS UTF8 OFF")
			shows(tt.bytes)
			c.want("200 ", "LANG en") // a client that knows RFC 2640 also knows UTF-8
			shows(tt.name)
			c.want("200 ", "OPTS UTF8 OFF")

			sent := nvt(tt.bytes)
			c.want("250 ", "DELE "+sent)
			c.want(`257 "/`+sent+`" `, "MKD "+sent)
			c.want("250 ", "CWD "+sent)
			c.want(`257 "/`+sent+`" `, "PWD")
			c.want(`257 "/`+sent+`/`+sent+`" `, "MKD "+sent)
			c.want("250 ", "CWD /")
			c.want("250 ", "RMD "+sent+"/"+tt.name)
			c.want("350 ", "RNFR "+sent)
			c.want("250 ", "RNTO new "+sent)
			c.want("250 ", "RMD new "+tt.name)
		})
	}
}

// Section 3.1.1: the network of a client determines the charset, before and after the login. After the login the
// tenant of the user decides, and other tenants may not configure this network.
func TestCharsetOfANetwork(t *testing.T) {
	s := newSite(t, settings{acme: "compatibility_by_network: {127.0.0.0/8: {charset: windows-1252}}"})
	c := s.connect(t)
	for _, line := range []string{"NOOP", "HOST ftp.acme.example"} { // without a tenant, and with it
		c.send(line)
		// ÿûs are also the bytes of a Telnet request
		if r := c.want("331 ", "USER m\xfcller\xff\xfbs"); !strings.Contains(r, "m\xfcller\xff\xff\xfbs") {
			t.Errorf("after %s: %q", line, r)
		}
	}
	c.login()
	c.Store("caf\xe9", "content")
	if keys, shown := s.keys(t), c.list("NLST"); !slices.Equal(keys, []string{"café"}) || !slices.Equal(shown, []string{"caf\xe9"}) {
		t.Errorf("got keys %q, NLST %q", keys, shown)
	}
	other := s.connect(t)
	other.Login("ursula", password)
	other.want("504 MODE unterstützt ", "MODE B")
}

// RFC 2640 4.1: a client that sends LANG knows UTF-8. HOST alone proves nothing, because simple clients send it
// too, and REIN resets the state.
func TestCommandsThatSelectUTF8(t *testing.T) {
	s := newSite(t, settings{acme: "compatibility: {charset: iso-8859-15}"})
	s.put(t, "été", "x")
	for _, tt := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"nothing", nil, "\xe9t\xe9"},
		{"feat", []string{"FEAT", "NOOP"}, "\xe9t\xe9"},
		{"host", []string{"HOST ftp.acme.example"}, "\xe9t\xe9"},
		{"lang", []string{"LANG fr"}, "été"},
		{"lang-without-tag", []string{"LANG"}, "été"},
		{"lang-refused", []string{"LANG tlh"}, "\xe9t\xe9"},
		{"opts", []string{"OPTS UTF8 ON"}, "été"},
		{"opts-on-and-off", []string{"HOST ftp.acme.example", "OPTS UTF8 ON", "OPTS UTF8 OFF"}, "\xe9t\xe9"},
		{"rein", []string{"LANG fr", "OPTS UTF8 ON", "REIN"}, "\xe9t\xe9"},
		{"host-behind-lang", []string{"LANG fr", "HOST ftp.acme.example"}, "été"},
		{"host-behind-opts", []string{"OPTS UTF8 ON", "HOST ftp.acme.example"}, "été"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := s.connect(t)
			for _, line := range tt.lines {
				c.send(line)
			}
			c.login()
			if got := c.list("NLST"); !slices.Equal(got, []string{tt.want}) {
				t.Errorf("NLST: got %q, want %q", got, tt.want)
			}
		})
	}
}

// RFC 2640 3.1: names that the charset cannot represent are shown in UTF-8, so that no information is lost, and can
// be used in this form.
func TestNamesThatTheCharsetLacks(t *testing.T) {
	s := newSite(t, settings{acme: "compatibility: {charset: iso-8859-15}"})
	names := []string{"plain", "été", "日本語", "été 日本", "Привет"}
	for _, name := range names {
		s.put(t, name, "content of "+name)
	}
	c := s.login(t)
	shown := c.list("NLST")
	want := []string{"plain", "\xe9t\xe9", "日本語", "été 日本", "Привет"}
	if slices.Sort(shown); !slices.Equal(shown, slices.Sorted(slices.Values(want))) {
		t.Errorf("NLST: got %q, want %q", shown, want)
	}
	for i, name := range want {
		c.Want("content of "+names[i], "RETR "+name)
	}
}

// Section 3.1: a name that is valid in neither UTF-8 nor the charset is rejected. If it is valid in both, its
// characters decide.
func TestCharsetAndUTF8(t *testing.T) {
	s := newSite(t, settings{acme: "compatibility: {charset: euc-jp}"})
	c := s.login(t)
	for _, name := range []string{"\xff\xff", "\xa4", "a\x8f", "\xa4\x20"} {
		c.want("501 ", "MKD "+name)
	}
	const both = "\xc3\xa9" // é in UTF-8, 辿 in EUC-JP
	c.Store(both, "content")
	if keys := s.keys(t); !slices.Equal(keys, []string{"辿"}) {
		t.Errorf("unexpected keys %q", keys)
	}
	s.put(t, "é", "the other")
	var contents []string
	for _, name := range append(c.list("NLST"), both, "\x8f\xab\xb1") { // every listed name refers to its own file
		contents = append(contents, c.Transfer("RETR "+name))
	}
	slices.Sort(contents)
	if want := []string{"content", "content", "the other", "the other"}; !slices.Equal(contents, want) {
		t.Errorf("RETR of the name from NLST: got %q, want %q", contents, want)
	}
}

// Section 3.1.1: directories with their own charsets.
func TestCharsetsOfDirectories(t *testing.T) {
	s := newSite(t, settings{acme: `directory_encodings: {/japan: shift_jis, /mirror: raw, /mirror/utf: utf-8}`})
	c := s.login(t)
	const sjis, name = "\x93\xfa\x96\x7b", "日本"
	c.want("501 ", "MKD "+sjis)
	c.want(`257 "/japan/`+sjis+`" `, "MKD japan/"+sjis)
	c.want("250 ", "CWD japan")
	c.want("250 ", "CWD "+sjis)
	c.want(`257 "/japan/`+sjis+`" `, "PWD")
	c.Store("f\x83\x5c", "content")
	if keys := s.keys(t); !slices.Contains(keys, "japan/"+name+"/fソ") {
		t.Errorf("unexpected keys %q", keys)
	}
	c.want("250 ", "CWD /")
	c.Store("mirror/\xff\xff\xfe", "raw")
	c.want("501 ", "MKD mirror/utf/"+sjis)
	c.want("257 ", "MKD mirror/utf/"+name)
	if got := c.names("MLSD mirror"); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"utf", "\xff\xfe"}) {
		t.Errorf("MLSD mirror: %q", got)
	}
	if got := c.names("MLSD japan/" + sjis); !slices.Equal(got, []string{"f\x83\x5c"}) {
		t.Errorf("MLSD japan: %q", got)
	}
	c.Want("content", "RETR japan/"+name+"/fソ")
}

// Section 3.1.1, RFC 2640 3.1 and 3.2: a mirror, or a server without a charset, keeps names byte for byte.
func TestRawNames(t *testing.T) {
	s := newSite(t, settings{acme: "compatibility: {charset: raw}"})
	names := []pathname{}
	for _, tt := range slices.Concat(invalid, valid, spaces, lineEnds) {
		if !strings.Contains(tt.bytes, "/") {
			names = append(names, tt)
		}
	}
	names = append(
		names, pathname{"composed", "caf\u00e9"}, pathname{"decomposed", "cafe\u0301"},
		pathname{"latin-1-cafe", "caf\xe9"})
	c := s.login(t)
	seen := map[string]bool{}
	for _, tt := range names {
		if seen[tt.bytes] {
			continue
		}
		seen[tt.bytes] = true
		sent := nvt(tt.bytes)
		c.Store(sent, "content of "+tt.bytes)
		c.Want("content of "+tt.bytes, "RETR "+sent)
		if _, got := c.entry("MLST " + sent); got != shown(tt.bytes) && got != "/"+shown(tt.bytes) {
			t.Errorf("%s: MLST %q: got %q", tt.label, sent, got)
		}
	}
	for _, utf8 := range []string{"NOOP", "OPTS UTF8 ON", "LANG fr"} {
		c.want("200 ", utf8)
		got := c.list("NLST")
		for name := range seen {
			if !strings.ContainsAny(name, "\r\n") && !slices.Contains(got, name) {
				t.Errorf("after %s: NLST lacks %q", utf8, name)
			}
		}
		if len(got) != len(seen) {
			t.Errorf("after %s: NLST has %d names, want %d", utf8, len(got), len(seen))
		}
	}
	for name := range seen {
		c.want("250 ", "DELE "+nvt(name))
	}
	if keys := s.keys(t); len(keys) > 0 {
		t.Errorf("unexpected keys %q", keys)
	}
}

// Raw names are still pathnames: "/" separates them, ".." is the parent, and no other bytes are mistaken for
// either.
func TestRawNamesLeadNowhereElse(t *testing.T) {
	s := newSite(t, settings{acme: "compatibility: {charset: raw}"})
	s.put(t, "secret", "x")
	c := s.connect(t)
	c.Login("bob", password) // with the root inner
	for _, name := range []string{"\xc0\xae\xc0\xae/secret", "..\xc0\xafsecret", "\xc0\xae./secret", "../secret",
		"/../secret", "\xe0\x80\xae./secret"} {
		c.want("550 ", "SIZE "+name)
	}
	c.Store("\xc0\xae\xc0\xae", "two overlong dots")
	c.want("213 17", "SIZE \xc0\xae\xc0\xae")
	c.want("553 ", "MKD a\x00")
	keys := s.keys(t)
	if len(keys) != 2 || !slices.Contains(keys, "secret") || !strings.HasPrefix(keys[0], "inner/") {
		t.Errorf("unexpected keys %q", keys)
	}
	for _, key := range keys {
		if !utf8.ValidString(key) {
			t.Errorf("key %q is not UTF-8", key)
		}
	}
}
