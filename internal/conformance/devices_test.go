package conformance_test

import (
	"encoding/hex"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// deviceNames returns names as bytes sent by devices, by charset. Many of them are also valid UTF-8 (RFC 2640, A.1
// and A.2). To add a case, add it to the table.
func deviceNames(t *testing.T) map[string][]string {
	t.Helper()
	table, err := os.ReadFile("../pathname/testdata/names.tsv")
	must.OK(t, err)
	names := map[string][]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(table)), "\n")[1:] {
		columns := strings.Split(line, "\t")
		bytes, err := hex.DecodeString(columns[2])
		must.OK(t, err)
		names[columns[0]] = append(names[columns[0]], string(bytes))
	}
	return names
}

// TestNamesComeBack: a device gets each name back byte for byte, in the session that wrote it and in other
// sessions, and can use it to access the file, whatever it sent before.
func TestNamesComeBack(t *testing.T) {
	for label, yaml := range map[string]string{
		"network": "compatibility_by_network: {127.0.0.0/8: {charset: %}}",
		"tenant":  "compatibility: {charset: %}",
	} {
		for charset, names := range deviceNames(t) {
			t.Run(label+"/"+charset, func(t *testing.T) {
				t.Parallel()
				s := newSite(t, settings{acme: strings.ReplaceAll(yaml, "%", charset)})
				for _, name := range names {
					if label == "tenant" && slices.Contains(onlyTheSessionTells, charset+" "+name) {
						continue
					}
					keepsName(t, s, nvt(name))
				}
			})
		}
	}
}

// onlyTheSessionTells lists names that are common in UTF-8 and that other clients of a tenant may write:
// docs/pathnames.md.
var onlyTheSessionTells = []string{"iso-8859-1 \xc2\xb0C", "iso-8859-1 \xc3\xa9t\xc3\xa9", "windows-1256 \xd8\xba"}

// keepsName writes, lists and deletes a file. Each step with several commands is one session.
func keepsName(t *testing.T, s *site, name string) {
	t.Helper()
	const listed = "NLST"
	for _, session := range [][]string{
		{"STOR " + name, listed},
		{listed, "RETR " + name, "RNFR " + name, "RNTO x" + name},
		{"RNFR x" + name, "RNTO " + name, listed, "DELE " + name, "MKD " + name, "CWD " + name, "STOR " + name, listed},
		{"RETR " + name + "/" + name, "DELE " + name + "/" + name, "RMD " + name},
	} {
		c := s.login(t)
		for _, line := range session {
			switch verb, arg, _ := strings.Cut(line, " "); verb {
			case "STOR":
				c.Store(arg, "content")
			case "RETR":
				c.Want("content", line)
			case listed:
				if got := c.list(line); !slices.Equal(got, []string{name}) {
					t.Errorf("%q in %q: %q", line, session, got)
				}
			default:
				if r := c.send(line); r[0] != '2' && r[0] != '3' {
					t.Errorf("%q in %q: %q", line, session, r)
				}
			}
		}
		c.want("221 ", "QUIT")
	}
	if keys := s.keys(t); len(keys) > 0 {
		t.Fatalf("%q: unexpected objects %q", name, keys)
	}
}

// TestReadingOfNames: if a name is valid in both UTF-8 and the charset, earlier commands of the session and
// existing files decide how it is read. Without such evidence, the charset applies if it is configured for devices,
// and UTF-8 if it is configured for a whole tenant.
func TestReadingOfNames(t *testing.T) {
	const device, tenant = "compatibility_by_network: {127.0.0.0/8: {charset: gbk}}", "compatibility: {charset: gbk}"
	const both = "\xe6\x97\xa5\xe6\x9c\xac" // 日本 in UTF-8, 鏃ユ湰 in GBK
	for _, test := range []struct {
		name, config string
		before       []string // commands
		there        []string // existing keys
		keys         []string // keys after STOR of both
	}{
		{"device", device, nil, nil, []string{"鏃ユ湰"}},
		{"tenant", tenant, nil, nil, []string{"日本"}},
		{"opts-utf8", device, []string{"OPTS UTF8 ON"}, nil, []string{"日本"}},
		{"opts-utf8-off", tenant, []string{"OPTS UTF8 OFF"}, nil, []string{"鏃ユ湰"}},
		{"lang", device, []string{"LANG en"}, nil, []string{"日本"}},
		{"rein", device, []string{"LANG en", "REIN", "USER alice", "PASS " + password}, nil, []string{"鏃ユ湰"}},
		{"valid-in-utf8-only", device, []string{"SIZE \xe4\xb8\xad"}, nil, []string{"日本"}},
		{"valid-in-the-charset-only", tenant, []string{"SIZE \xd6\xd0"}, nil, []string{"鏃ユ湰"}},
		{"the-charset-lacks-utf8", tenant, []string{"SIZE \xc4\xbf\xc2\xbc"}, nil, []string{"鏃ユ湰"}},
		{"decided-once", device, []string{"SIZE \xd6\xd0", "SIZE \xe4\xb8\xad"}, nil, []string{"鏃ユ湰"}},
		{"decided-once-in-utf8", tenant, []string{"SIZE \xe4\xb8\xad", "SIZE \xd6\xd0"}, nil, []string{"日本"}},
		{"exists-in-utf8", tenant, nil, []string{"日本"}, []string{"日本"}},
		{"shown-as-other-bytes", device, nil, []string{"日本"}, []string{"日本", "鏃ユ湰"}},
		{"exists-in-the-charset", tenant, nil, []string{"鏃ユ湰"}, []string{"鏃ユ湰"}},
		{"both-exist", tenant, nil, []string{"日本", "鏃ユ湰"}, []string{"日本", "鏃ユ湰"}},
		{"a-file-tells", tenant, []string{"SIZE \xe6\x96\xb0\xe6\x97\xa7"}, []string{"鏂版棫"}, []string{"鏂版棫", "鏃ユ湰"}},
		// U+1F389 in UTF-8, as shown by NLST
		{"shown-in-utf8", device, []string{"STAT /", "SIZE \xf0\x9f\x8e\x89a"}, []string{"🎉a"}, []string{"🎉a", "鏃ユ湰"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t, settings{acme: test.config})
			for _, key := range test.there {
				s.put(t, key, "x")
			}
			c := s.login(t)
			for _, line := range test.before {
				c.send(line)
			}
			c.Store(both, "content")
			want := slices.Sorted(slices.Values(test.keys))
			if keys := slices.Sorted(slices.Values(s.keys(t))); !slices.Equal(keys, want) {
				t.Errorf("got keys %q, want %q", keys, want)
			}
			c.Want("content", "RETR "+both)
		})
	}
}

// TestUTF8OfATenant: curl, wget, Python's ftplib and many others write UTF-8 without announcing it. If a charset is
// configured for a whole tenant, their names are stored unchanged.
func TestUTF8OfATenant(t *testing.T) {
	for charset, names := range map[string][]string{
		"windows-1252": {"é", "Müller.txt", "été/日本", "日本語.pdf", "Привет", "한국어", "🎉", "中"},
		"windows-1251": {"Привет.txt", "é", "Köln", "日本語", "Ελλάδα"},
		"koi8-r":       {"Привет.txt", "é", "Müller", "日本語", "Ελλάδα"},
		"gbk":          {"中文", "日本", "新旧.txt", "报告", "一", "中"},
		"shift_jis":    {"日本語", "データ.csv", "報告書", "一"},
		"euc-kr":       {"한국어", "보고서.txt"},
		"big5":         {"中文", "報告", "日本"},
	} {
		t.Run(charset, func(t *testing.T) {
			t.Parallel()
			for _, name := range names {
				s := newSite(t, settings{acme: "compatibility: {charset: " + charset + "}"})
				c := s.login(t)
				c.Store(name, "content")
				if keys := s.keys(t); !slices.Equal(keys, []string{name}) {
					t.Errorf("got keys %q, want %q", keys, name)
				}
				if got := c.list("NLST " + path.Dir(name)); !slices.Contains(got, path.Join(path.Dir(name), path.Base(name))) &&
					!slices.Contains(got, "./"+name) {
					t.Errorf("%q: unexpected name %q in the listing", name, got)
				}
				c.want("221 ", "QUIT")
				c = s.login(t)
				c.Want("content", "RETR "+name)
			}
		})
	}
}

// TestListOfCharsets: the server uses the first charset in which a name is valid and exists, or else the first in
// which it is valid (draft-masinter-url-i18n, section 3.4). Names are listed in the charset that the session has
// settled on, or else in the first that can represent them.
func TestListOfCharsets(t *testing.T) {
	const (
		euc, sjis = "\xc6\xfc\xcb\xdc.txt", "\x93\xfa\x96\x7b.txt" // 日本.txt
		kana      = "\xb1\xb2"                                     // 渦 in EUC-JP, ｱｲ in Shift_JIS
	)
	s := newSite(t, settings{acme: "compatibility: {charset: [euc-jp, cp932, utf-8]}"})
	for _, name := range []string{euc, sjis, "日本.txt"} {
		c := s.login(t)
		c.Store(name, "content")
		if keys := s.keys(t); !slices.Equal(keys, []string{"日本.txt"}) {
			t.Errorf("%q: unexpected keys %q", name, keys)
		}
		if got := c.list("NLST"); !slices.Equal(got, []string{name}) {
			t.Errorf("%q: unexpected name %q in the listing", name, got)
		}
		c = s.login(t)
		c.Want("content", "RETR "+name)
		c.want("250 ", "DELE "+name)
	}
	for _, tt := range []struct {
		before, there, want string
	}{
		{"NOOP", "", "渦"},
		{"NOOP", "ｱｲ", "ｱｲ"},
		{"SIZE " + sjis, "", "ｱｲ"},
		{"SIZE " + euc, "", "渦"},
	} {
		s := newSite(t, settings{acme: "compatibility: {charset: [euc-jp, cp932, utf-8]}"})
		if tt.there != "" {
			s.put(t, tt.there, "x")
		}
		c := s.login(t)
		c.send(tt.before)
		c.Store(kana, "content")
		if keys := s.keys(t); !slices.Equal(keys, []string{tt.want}) {
			t.Errorf("after %q: got keys %q, want %q", tt.before, keys, tt.want)
		}
		if got := c.list("NLST"); !slices.Equal(got, []string{kana}) {
			t.Errorf("after %q: unexpected NLST %q", tt.before, got)
		}
	}
	s = newSite(t, settings{acme: "compatibility: {charset: [euc-jp, windows-1251]}"})
	for _, key := range []string{"日本", "Їжак", "한국"} {
		s.put(t, key, "x")
	}
	want := slices.Sorted(slices.Values([]string{"\xc6\xfc\xcb\xdc", "\x8f\xa7\xc7\xa7\xd8\xa7\xd1\xa7\xdc", "한국"}))
	if got := slices.Sorted(slices.Values(s.login(t).list("NLST"))); !slices.Equal(got, want) {
		t.Errorf("NLST: got %q, want %q", got, want)
	}
}

// TestNamesDoNotReplaceEachOther: é and 辿 have different bytes in EUC-JP, and the second ones are é in UTF-8.
func TestNamesDoNotReplaceEachOther(t *testing.T) {
	s := newSite(t, settings{acme: "compatibility_by_network: {127.0.0.0/8: {charset: euc-jp}}"})
	names := []string{"\x8f\xab\xb1", "\xc3\xa9"}
	for _, name := range names {
		s.login(t).Store(name, "content of "+name)
	}
	if got := s.login(t).list("NLST"); !slices.Equal(got, []string{names[0], names[1]}) {
		t.Errorf("NLST: got %q, want %q", got, names)
	}
	for _, name := range names {
		s.login(t).Want("content of "+name, "RETR "+name)
	}
}

// TestUTF8BesideADevice: clients of both kinds work in one directory, each with its own bytes, and never overwrite
// each other's files.
func TestUTF8BesideADevice(t *testing.T) {
	s := newSite(t, settings{acme: "compatibility: {charset: gbk}"})
	utf8, device := s.login(t), s.login(t)
	utf8.want("200 ", "OPTS UTF8 ON")
	files := map[string]string{} // by key
	for i, name := range []string{"\xc4\xbf\xc2\xbc", "\xc4\xbf\xc2\xbc.txt", "\xd6\xd0\xce\xc4", "\xce\xbb"} {
		for _, c := range []struct {
			*client
			who string
		}{{device, "device"}, {utf8, "utf-8"}} {
			if i == 2 && c.who == "utf-8" { // not valid UTF-8
				continue
			}
			c.Store(name, c.who+name)
		}
	}
	for key, content := range map[string]string{
		"Ŀ¼": "utf-8\xc4\xbf\xc2\xbc", "Ŀ¼.txt": "utf-8\xc4\xbf\xc2\xbc.txt", "λ": "utf-8\xce\xbb",
		"目录": "device\xc4\xbf\xc2\xbc", "目录.txt": "device\xc4\xbf\xc2\xbc.txt", "中文": "device\xd6\xd0\xce\xc4",
		"位": "device\xce\xbb",
	} {
		files[key] = content
		if got := s.object(t, key); got != content {
			t.Errorf("%s: got %q, want %q", key, got, content)
		}
		utf8.Want(content, "RETR "+key)
	}
	if keys := s.keys(t); len(keys) != len(files) {
		t.Errorf("unexpected keys %q", keys)
	}
	if got := slices.Sorted(slices.Values(utf8.list("NLST"))); !slices.Equal(got, slices.Sorted(maps.Keys(files))) {
		t.Errorf("UTF-8 client: got %q", got)
	}
	for _, name := range []string{"\xc4\xbf\xc2\xbc", "\xc4\xbf\xc2\xbc.txt", "\xd6\xd0\xce\xc4", "\xce\xbb"} {
		device.Want("device"+name, "RETR "+name)
	}
}
