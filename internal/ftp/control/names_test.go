package control_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
	"github.com/babelftp/babelftp/internal/users/account"
)

// One name in two Unicode normalization forms.
const (
	composed   = "caf\u00e9"
	decomposed = "cafe\u0301"
)

// putNames stores objects whose content is their name.
func (s *site) putNames(keys ...string) {
	s.t.Helper()
	for _, key := range keys {
		s3test.Put(s.t, s.client, s.bucket, key, key)
	}
}

func (s *site) wantObjects(want ...string) {
	s.t.Helper()
	if got := s.objects(); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		s.t.Errorf("objects: got %+q, want %+q", got, want)
	}
}

func normalized(n pathname.Normalization) account.Login {
	return loginTo(config.Tenant{Compatibility: config.Compatibility{Normalization: n}})
}

// If one spelling of a name is too long for a key, it is treated as missing.
func TestNormalizationOfLongNames(t *testing.T) {
	for _, n := range []pathname.Normalization{pathname.NFC, pathname.NFD} {
		s := newTenantSite(t, normalized(n))
		c := s.login()
		segment := strings.Repeat("\u00e9", 100) // 200 bytes composed, 300 decomposed
		name := segment + "/" + segment + "/" + segment + "/" + segment
		s.putNames(name)
		c.do("SIZE "+name, "213 ")
		c.do("SIZE "+name+"x", "550 ")
		if n == pathname.NFC {
			c.Store(name+"y", "")
		}
		c.Store(strings.Repeat(strings.Repeat("\r\x00", 200)+"/", 4)+"f", "")
		c.do("QUIT", "221 ")
	}
}

// Replies are encoded in the charset if it has their characters.
func TestCharsetOfReplies(t *testing.T) {
	demo := loginTo(config.Tenant{
		Compatibility: config.Compatibility{Charset: servicetest.Encoding(t, "windows-1251")},
		Greeting:      map[language.Tag]string{language.Russian: "\u0414\u0430, \u20ac\u65e5!"},
	})
	demo.Tenant.DefaultLanguage = language.Russian
	c := newTenantSite(t, demo).connect()
	c.do("USER demo", "331 ")
	c.do("PASS demo", "230-\u0414\u0430, \u20ac\u65e5!\n230 \xc2\xf5\xee\xe4 ") // the charset lacks 日
	c.do("OPTS UTF8 ON", "200 \u0418\u043c\u0435\u043d\u0430")
	c.do("OPTS UTF8 OFF", "200 \xc8\xec\xe5\xed\xe0")
	c.do("LANG", "200-\u0414\u0430, \u20ac\u65e5!\n200 \u0422\u0435\u043f\u0435\u0440\u044c")
	c.do("LANG ru", "200-\u0414\u0430, ")
	// OPTS UTF8 OFF changes the charset of names, but after LANG the texts stay in UTF-8 (RFC 2640, 4.1)
	c.do("OPTS UTF8 OFF", "200 \u0418\u043c\u0435\u043d\u0430")
	c.do("SIZE \xc4\xe0", "550 \u041d\u0435\u0442 ")
}

// Most clients do not implement Telnet, and send the letter 0xFF as a single byte.
func TestCharsetWithIACAlone(t *testing.T) {
	for _, test := range []struct {
		name    string
		charset string
		bytes   []string
		want    []string
	}{
		{
			"windows-1251", "windows-1251",
			[]string{"\xd1\xf2\xe0\xf2\xfc\xff.txt", "\xff\xf1", "\xf1\xe8\xff\xfe", "\xff\xf0\xff\xf4 \xff"},
			[]string{"Статья.txt", "яс", "сияю", "яряф я"},
		},
		{"raw", "raw", []string{"\xff\xf1", "\xff\xfe"}, []string{"\u201bFF\u201bF1", "\u201bFF\u201bFE"}},
		{"telnet", "utf-8", []string{"a\xff\xf1b", "ab\xff\xfec"}, []string{"ab"}}, // 0xFF is not a letter
	} {
		t.Run(test.name, func(t *testing.T) {
			quirks := config.Compatibility{Charset: servicetest.Encoding(t, test.charset)}
			s := newTenantSite(t, loginTo(config.Tenant{Compatibility: quirks}))
			c := s.login()
			for _, name := range test.bytes {
				c.Store(name, "")
			}
			s.wantObjects(test.want...)
		})
	}
}

// TestNameInNoCharset: a name that is neither valid UTF-8 nor valid in the charset of the tenant is refused, and
// the reply names the charset.
func TestNameInNoCharset(t *testing.T) {
	c := newTenantSite(t, loginTo(config.Tenant{
		Compatibility: config.Compatibility{Charset: servicetest.Encoding(t, "shift_jis")},
	})).login()
	c.do("LANG en", "200 ")
	c.do("DELE \xfd\xfd", "501 The file name is neither valid UTF-8 nor valid ")
}

// TestBackslashSeparates: if the tenant is configured so, a backslash in a pathname is a slash, in every encoding
// that has a backslash.
func TestBackslashSeparates(t *testing.T) {
	demo := loginTo(config.Tenant{
		Compatibility: config.Compatibility{
			Backslash: pathname.BackslashSeparates, Charset: servicetest.Encoding(t, "shift_jis"),
		},
	})
	demo.DirectoryEncodings = map[string]*pathname.Encoding{"/mirror": servicetest.Encoding(t, "raw").Encoding}
	s := newTenantSite(t, demo)
	c := s.login()
	c.do("MKD scans", "257 ")
	c.do(`MKD \scans\2026`, `257 "/scans/2026" `)
	c.do(`CWD scans\2026`, "250 ")
	c.do("PWD", `257 "/scans/2026" `)
	c.do(`CWD \`, "250 ")
	c.do("PWD", `257 "/" `)
	c.Store(`scans\2026\a.jpg`, "a")
	c.Store("scans\\\x83\x5c.jpg", "KATAKANA SO, whose second byte is that of a backslash")
	c.Store(`mirror/a\b`, "raw")
	s.wantObjects("scans/", "scans/2026/", "scans/2026/a.jpg", "scans/\u30bd.jpg", `mirror/a\b`)
	for _, argument := range []string{`scans\2026`, `scans\2026\*.jpg`, `\scans\2026\`, `scans\2026\a.jpg`} {
		c.Want("/scans/2026/a.jpg\r\n", "NLST "+argument)
	}
	c.Want("a", `RETR scans\..\scans\2026\a.jpg`)
	for _, argument := range []string{`scans\`, `scans\.`, `scans\..`} {
		conn := c.Data()
		c.do("STOR "+argument, "550 ")
		conn.Close()
	}
}
