package conformance_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// invalid lists byte sequences that no decoder may turn into a character: RFC 2279 2 and its security
// considerations, the draft of 2002 at <26>, <31> and <50>. RFC 3629 adds that nothing is above U+10FFFF, so that
// forms with five or six bytes are invalid too.
var invalid = []pathname{
	// Overlong forms: each character has one form (RFC 2279 2, step 1).
	{"overlong-2-nul", "\xc0\x80"},
	{"overlong-2-dot", "\xc0\xae"},
	{"overlong-2-slash", "\xc0\xaf"},
	{"overlong-2-cr", "\xc0\x8d"},
	{"overlong-2-lf", "\xc0\x8a"},
	{"overlong-2-space", "\xc0\xa0"},
	{"overlong-2-A", "\xc1\x81"},
	{"overlong-2-last", "\xc1\xbf"},
	{"overlong-3-nul", "\xe0\x80\x80"},
	{"overlong-3-slash", "\xe0\x80\xaf"},
	{"overlong-3-last", "\xe0\x9f\xbf"},
	{"overlong-4-slash", "\xf0\x80\x80\xaf"},
	{"overlong-4-last", "\xf0\x8f\xbf\xbf"},
	{"overlong-5-slash", "\xf8\x80\x80\x80\xaf"},
	{"overlong-5-last", "\xf8\x87\xbf\xbf\xbf"},
	{"overlong-6-slash", "\xfc\x80\x80\x80\x80\xaf"},
	{"overlong-6-last", "\xfc\x83\xbf\xbf\xbf\xbf"},
	// Surrogates, which are reserved for UTF-16.
	{"surrogate-first", "\xed\xa0\x80"},
	{"surrogate-high-last", "\xed\xaf\xbf"},
	{"surrogate-low-first", "\xed\xb0\x80"},
	{"surrogate-last", "\xed\xbf\xbf"},
	{"surrogate-pair-U+10000", "\xed\xa0\x80\xed\xb0\x80"},
	{"surrogate-pair-U+233B4", "\xed\xa1\x8c\xed\xbe\xb4"}, // <31>
	{"surrogate-pair-U+10FFFF", "\xed\xaf\xbf\xed\xbf\xbf"},
	{"surrogates-the-wrong-way-round", "\xed\xb0\x80\xed\xa0\x80"},
	// Above U+10FFFF.
	{"U+110000", "\xf4\x90\x80\x80"},
	{"U+13FFFF", "\xf4\xbf\xbf\xbf"},
	{"U+140000", "\xf5\x80\x80\x80"},
	{"U+1FFFFF", "\xf7\xbf\xbf\xbf"},
	{"5-bytes-first", "\xf8\x88\x80\x80\x80"},
	{"5-bytes-last", "\xfb\xbf\xbf\xbf\xbf"},
	{"6-bytes-first", "\xfc\x84\x80\x80\x80\x80"},
	{"6-bytes-last", "\xfd\xbf\xbf\xbf\xbf\xbf"},
	// Cut short, at each length.
	{"cut-2-at-1", "\xc3"},
	{"cut-3-at-1", "\xe2"},
	{"cut-3-at-2", "\xe2\x89"},
	{"cut-4-at-1", "\xf0"},
	{"cut-4-at-2", "\xf0\xa3"},
	{"cut-4-at-3", "\xf0\xa3\x8e"},
	{"cut-5-at-4", "\xf8\x88\x80\x80"},
	{"cut-6-at-5", "\xfc\x84\x80\x80\x80"},
	{"cut-then-another", "\xe2\x89\xc3\xa9"},
	{"cut-then-ascii", "\xe2\x89a"},
	{"cut-then-slash", "\xe2/\x89\xa2"},
	{"cut-then-space", "\xc3 \xa9"},
	// Continuation bytes without a first byte.
	{"stray-80", "\x80"},
	{"stray-bf", "\xbf"},
	{"stray-two", "\x80\xbf"},
	{"stray-behind-a-character", "é\xa9"},
	{"one-too-many", "\xe2\x89\xa2\xa2"},
	// Bytes that never appear.
	{"fe", "\xfe"},
	{"ff", "\xff"},
	{"utf-16-mark", "\xfe\xff"},
	{"utf-16-mark-turned", "\xff\xfe"},
	// Other charsets.
	{"latin-1", "\xe9t\xe9"},
	{"shift-jis", "\x93\xfa\x96{"},
	{"euc-jp", "\xc6\xfc\xcb\xdc"},
	{"koi8-r", "\xd0\xd2\xc9"},
	{"java-nul", "a\xc0\x80b"},
	{"cesu-8", "\xed\xa0\xbd\xed\xb8\x80"},
}

// pathnameCommands lists the commands whose argument is only a pathname.
var pathnameCommands = []string{
	"CWD", "XCWD", "MKD", "XMKD", "RMD", "XRMD", "DELE", "RNFR", "SIZE", "MDTM", "MLST", "STAT", "RETR", "STOR", "APPE",
	"LIST", "NLST", "MLSD",
	"SITE MKDIR", "SITE RMDIR", "MFMT 20260102030405",
}

// RFC 2279 2 and 6, the draft <31>, <49>, <50>: every command rejects invalid UTF-8 anywhere in a name with 501,
// without looking up or creating anything.
func TestInvalidUTF8IsRefused(t *testing.T) {
	s := newSite(t, settings{})
	s.login(t).Store("keep", "x")
	for _, tt := range invalid {
		t.Run(tt.label, func(t *testing.T) {
			c := s.login(t)
			bytes := nvt(tt.bytes)
			for _, name := range []string{bytes, "a" + bytes, bytes + "z", "a" + bytes + "z", "/" + bytes, bytes + "/x",
				"x/" + bytes, "é" + bytes + "é"} {
				for _, command := range pathnameCommands {
					c.want("501 ", command+" "+name)
				}
			}
			c.must("350 ", "RNFR keep")
			c.want("501 ", "RNTO "+bytes)
			c.want("213 1", "SIZE keep")
		})
	}
	if keys := s.keys(t); !slices.Equal(keys, []string{"keep"}) {
		t.Errorf("unexpected keys %q", keys)
	}
}

// The draft <50>: forms that only a careless decoder reads as "." or "/" are not separators or parents.
func TestInvalidUTF8IsRejected(t *testing.T) {
	s := newSite(t, settings{})
	s.put(t, "secret", "x")
	s.put(t, "inner/f", "x")
	c := s.connect(t)
	c.Login("bob", password) // with the root inner
	for _, name := range []string{
		"/\xc0\xae./secret", // 2F C0 AE 2E 2F, the document's own example
		"\xc0\xae\xc0\xae/secret", "..\xc0\xafsecret", "\xe0\x80\xae\xe0\x80\xae/secret", "\xf0\x80\x80\xae./secret",
		"..\xe0\x80\xafsecret",
		"\xfc\x80\x80\x80\x80\xae\xfc\x80\x80\x80\x80\xae/secret", "inner\xc0\xaff", "f\xc0\x80", "f\xc0\x80.txt",
	} {
		for _, command := range pathnameCommands {
			c.want("501 ", command+" "+name)
		}
	}
	// Plain parents do not leave the root either.
	for _, name := range []string{"/../secret", "../secret", "../../secret", "/inner/../../secret"} {
		c.want("550 ", "SIZE "+name)
	}
	c.want("213 1", "SIZE f")
	if keys := s.keys(t); !slices.Equal(keys, []string{"inner/f", "secret"}) {
		t.Errorf("unexpected keys %q", keys)
	}
}

// RFC 2279 6: verbs are ASCII, even if careless decoding or uppercasing turns other bytes into a verb.
func TestVerbsAreASCII(t *testing.T) {
	c := newSite(t, settings{}).login(t)
	for _, line := range []string{
		"QU\xc1\x89T", "\xc1\x91UIT", "ſize keep", "lıst", "ＮＯＯＰ", "NOOP\u00a0", "ÉSTAT", "\xe9STAT", "N\xc0\x80OP",
		"\ufeffNOOP", "N\u200bOOP", "NOOP\x00",
	} {
		c.want("500 ", line)
	}
	c.want("200 ", "NOOP")
}

// RFC 2279 6: an overlong form of CR LF does not end a line.
func TestInvalidUTF8EndsNoLine(t *testing.T) {
	c := newSite(t, settings{}).login(t)
	c.Store("keep", "x")
	c.want("501 ", "SIZE x\xc0\x8d\xc0\x8aDELE keep")
	c.want("501 ", "SIZE x\xe0\x80\x8d\xe0\x80\x8aDELE keep")
	c.want("550 ", "SIZE x\u2028DELE keep")
	c.want("550 ", "SIZE x\u0085DELE keep")
	c.want("213 1", "SIZE keep")
}

// Whatever a client sends, the reply to it is one line of UTF-8 (RFC 2640 4.1).
func TestRepliesAreUTF8WhateverIsSent(t *testing.T) {
	s := newSite(t, settings{})
	for _, tt := range invalid {
		t.Run(tt.label, func(t *testing.T) {
			c := s.connect(t)
			bytes := nvt(tt.bytes)
			for _, line := range []string{
				bytes, bytes + " x", "USER " + bytes, "PASS " + bytes, "LANG " + bytes, "HOST " + bytes,
				"OPTS " + bytes, "OPTS UTF8 " + bytes, "OPTS MLST " + bytes,
				"HELP " + bytes, "CLNT " + bytes, "ACCT " + bytes, "AUTH " + bytes, "FEAT " + bytes, "EPRT " + bytes,
				"SITE " + bytes, "STAT " + bytes,
				"TYPE " + bytes, "MODE " + bytes, "STRU " + bytes, "REST " + bytes, "ALLO " + bytes, "PROT " + bytes,
				"PBSZ " + bytes, "EPSV " + bytes,
			} {
				if r := c.send(line); !utf8.ValidString(r) {
					t.Errorf("%q: reply %q is not UTF-8", line, r)
				}
			}
			c.Login("alice", password)
			for _, line := range []string{"TYPE " + bytes, "MODE " + bytes, "STRU " + bytes, "REST " + bytes,
				"SITE " + bytes, "CWD " + bytes, "EPSV " + bytes} {
				if r := c.send(line); !utf8.ValidString(r) || !strings.HasPrefix(r, "50") &&
					!strings.HasPrefix(r, "522 ") {
					t.Errorf("%q: reply %q", line, r)
				}
			}
		})
	}
}

// valid lists characters at the limits of each length, and the examples of both documents (RFC 2279 4, the draft
// <39> to <42>).
var valid = []pathname{
	{"U+007F", "\x7f"},
	{"U+0080", "\xc2\x80"},
	{"U+07FF", "\xdf\xbf"},
	{"U+0800", "\xe0\xa0\x80"},
	{"U+D7FF", "\xed\x9f\xbf"},
	{"U+E000", "\xee\x80\x80"},
	{"U+10000", "\xf0\x90\x80\x80"},
	{"U+10FFFF", "\xf4\x8f\xbf\xbf"},
	{"not-identical-to-alpha", "A\xe2\x89\xa2\xce\x91."},
	{"hangugo", "\xed\x95\x9c\xea\xb5\xad\xec\x96\xb4"},
	{"nihongo", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e"},
	{"stump-of-tree", "\xf0\xa3\x8e\xb4"},
	{"vav", "\xd7\x95"},       // RFC 2640 B.2.3
	{"so-so", "\xe0\xb8\x8b"}, // RFC 2640 B.2.4
	{"nel", "a\xc2\x85b"},     // a line end in Unicode but not in FTP
	{"no-break-space", "a\u00a0b"},
	{"full-width-slash", "a\uff0fb"}, // not a separator
	{"full-width-dots", "\uff0e\uff0e"},
	{"two-dot-leader", "\u2025"},
	{"one-dot-leader", "\u2024\u2024"},
	{"division-slash", "..\u2215secret"},
}

// RFC 2279 2 and 4: valid UTF-8 is accepted and returned byte for byte.
func TestValidUTF8IsKept(t *testing.T) {
	s := newSite(t, settings{})
	storeAndDeleteAll(t, s, valid)
	t.Run("listings", func(t *testing.T) {
		wantListed(t, s, bytesOf(valid))
	})
}

// U+FFFD may represent a damaged character, and U+FFFE and U+FFFF are noncharacters, but all are valid in UTF-8
// (RFC 3629 3). Not every S3 server can list them.
func TestNoncharactersAreKept(t *testing.T) {
	names := []pathname{
		{"U+FFFD", "\ufffd"},
		{"U+FFFE", "a\ufffe"},
		{"U+FFFF", "a\uffff"},
		{"U+1FFFE", "a\U0001fffe"},
		{"U+10FFFF", "a\U0010ffff"},
		{"U+FDD0", "\ufdd0"},
	}
	s := newSite(t, settings{storage: "minio"})
	storeAndDeleteAll(t, s, names)
	t.Run("listings", func(t *testing.T) { wantListed(t, s, bytesOf(names)) })
}

// RFC 2279 1, the draft <35> to <38>: names that look alike or differ only in case are kept apart, byte by byte.
// U+FEFF is an ordinary character in names stored by another program.
func TestNamesAreBytes(t *testing.T) {
	s := newSite(t, settings{acme: "compatibility: {normalization: none}"})
	c := s.login(t)
	names := []string{"A", "a", "À", "à", "ß", "ss", "SS", "ﬁ", "fi", "K", "\u212a", "i", "ı", "İ", "ａ", "Ω", "\u2126"}
	for _, name := range names {
		c.Store(name, "content of "+name)
	}
	// the last one is the fourth example of the draft <42>
	for _, name := range []string{"\ufeffa", "a\ufeff", "\ufeff", "\ufeff\ufeffa", "\ufeff𣎴"} {
		c.want("553 ", "MKD "+name)
		s.put(t, name, "content of "+name)
		names = append(names, name)
	}
	for _, name := range names {
		c.Want("content of "+name, "RETR "+name)
	}
	if got := len(s.keys(t)); got != len(names) {
		t.Errorf("got %d objects, want %d", got, len(names))
	}
}

// draft-masinter-url-i18n 5: new names cannot contain invisible characters, because they would look like other
// names. Existing files with such names, stored by other programs, can be listed, read, replaced, renamed and
// deleted.
func TestInvisibleCharacters(t *testing.T) {
	s := newSite(t, settings{acme: "directory_encodings: {/mirror: raw}"})
	c := s.login(t)
	c.Store("look", "the first")
	for _, name := range []string{"look\u200b", "look\u200e", "\ufefflook", "lo\u00adok", "a/look\u2060", "loo\u200dk/x"} {
		if r, err := c.Upload("STOR "+name, "x"); err != nil || !strings.HasPrefix(r, "553 ") {
			t.Errorf("STOR %+q: %q, %v", name, r, err)
		}
		c.want("553 ", "MKD "+name)
		c.want("553 ", "SITE MKDIR "+name)
		c.want("350 ", "RNFR look")
		c.want("553 ", "RNTO "+name)
		c.want("553 ", "SITE COPY look "+name)
	}
	const name = "look\u200b"
	s.put(t, name, "the second")
	if got := slices.Sorted(slices.Values(c.list("NLST"))); !slices.Equal(got, []string{"look", name}) {
		t.Errorf("NLST: %+q", got)
	}
	c.Want("the second", "RETR "+name)
	c.Want("the first", "RETR look")
	c.Store(name, "the third")
	c.Want("the third", "RETR "+name)
	c.want("350 ", "RNFR "+name)
	c.want("250 ", "RNTO seen")
	s.put(t, name, "again")
	c.want("250 ", "DELE "+name)
	c.Store("mirror/"+name, "bytes")
	if keys := s.keys(t); !slices.Equal(keys, []string{"look", "mirror/" + name, "seen"}) {
		t.Errorf("unexpected keys %+q", keys)
	}
}
