package pathname_test

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// readings returns the possible meanings of bytes.
func readings(t testing.TB, e *pathname.Encoding, bytes string) (names []string) {
	t.Helper()
	all, err := e.Readings(bytes)
	must.OK(t, err)
	for _, r := range all {
		names = append(names, r.Name)
	}
	return names
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

func parseEncoding(t testing.TB, labels ...string) *pathname.Encoding {
	t.Helper()
	e, err := pathname.ParseEncoding(labels...)
	must.OK(t, err)
	return e
}

// charsets returns all charsets that are supported for pathnames.
func charsets(t testing.TB) []*pathname.Encoding {
	t.Helper()
	var allowed []*pathname.Encoding
	var refused []string
	for _, candidate := range slices.Concat(
		charmap.All, japanese.All, korean.All, simplifiedchinese.All, traditionalchinese.All) {
		name, err := htmlindex.Name(candidate)
		if err != nil {
			if name, err = ianaindex.IANA.Name(candidate); err != nil {
				t.Fatalf("%v: %v", candidate, err)
			}
		}
		e, err := pathname.ParseEncoding(name)
		if err != nil {
			refused = append(refused, name)
		} else if !slices.ContainsFunc(allowed, func(a *pathname.Encoding) bool { return a.String() == e.String() }) {
			allowed = append(allowed, e)
		}
	}
	_, err := pathname.ParseEncoding("")
	for _, e := range allowed {
		if !strings.Contains(err.Error(), " "+e.String()) {
			t.Errorf("the error about an unknown charset does not name %s", e)
		}
	}
	want := []string{"IBM037", "IBM1047", "IBM01140", "x-user-defined", "iso-2022-jp", "HZ-GB-2312"}
	if !slices.Equal(refused, want) {
		t.Errorf("got refused names %q, want %q", refused, want)
	}
	return allowed
}

// Thousands of tenants may have the same charset.
func TestEncodingsShareTables(t *testing.T) {
	const encodings, most = 1000, 500 << 10
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, label := range []string{"shift_jis", "big5"} {
		all := []*pathname.Encoding{parseEncoding(t, label)}
		before := heap()
		for range encodings {
			all = append(all, parseEncoding(t, label))
		}
		if after := heap(); after > before+most {
			t.Errorf("%d encodings of %s use %d KiB", encodings, label, (after-before)>>10)
		}
		runtime.KeepAlive(all)
	}
}

func TestParseEncoding(t *testing.T) {
	tests := []struct{ label, name string }{
		{"utf-8", "utf-8"},
		{" UTF-8 ", "utf-8"},
		{"raw", "raw"},
		{"RAW", "raw"},
		{"Shift-JIS", "shift_jis"},
		{"windows-31j", "shift_jis"},
		{"gb2312", "gbk"},
		{"cp936", "gbk"},
		{"cp932", "shift_jis"},
		{"ms932", "shift_jis"},
		{"cp949", "euc-kr"},
		{"ms949", "euc-kr"},
		{"uhc", "euc-kr"},
		{"cp950", "big5"},
		{"eucJP-ms", "euc-jp"},
		{"cp65001", "utf-8"},
		{"big5-hkscs", "big5"},
		{"windows-949", "euc-kr"},
		{"tis-620", "windows-874"},
		{"cp437", "ibm437"},
		{"us-ascii", "windows-1252"},
		{"iso-8859-1", "windows-1252"},
		{"ISO_8859-1:1987", "windows-1252"},
		{"iso-8859-8-i", "iso-8859-8-i"},
		{"iso-8859-9", "windows-1254"},
		{"iso-8859-11", "windows-874"},
	}
	for _, tt := range tests {
		t.Run(strings.TrimSpace(tt.label), func(t *testing.T) {
			e := parseEncoding(t, tt.label)
			if e.String() != tt.name {
				t.Errorf("got %s, want %s", e, tt.name)
			}
			if e.Raw() != (tt.name == "raw") || e.UTF8() != (tt.name == "utf-8") {
				t.Errorf("Raw() = %t, UTF8() = %t", e.Raw(), e.UTF8())
			}
			if again := parseEncoding(t, e.String()); again.String() != tt.name {
				t.Errorf("%s is parsed as %s", e, again)
			}
		})
	}
}

func TestParseEncodingRefuses(t *testing.T) {
	tests := []struct{ label, says string }{
		{"", "unknown charset"},
		{"utf-9", "unknown charset"},
		{"utf-7", "unknown charset"}, // registered, but without a codec in x/text
		{"johab", "euc-jp, euc-kr, gb18030"},
		{"ibm864", "windows-1255, windows-1256"},
		{"utf-16", "does not extend ASCII"},
		{"iso-2022-jp", "does not extend ASCII"},
		{"hz-gb-2312", "does not extend ASCII"},
		{"x-user-defined", "does not extend ASCII"},
		{"ibm037", "does not extend ASCII"},
	}
	for _, tt := range tests {
		t.Run("label-"+tt.label, func(t *testing.T) {
			_, err := pathname.ParseEncoding(tt.label)
			if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "write utf-8") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestNilEncodingIsUTF8(t *testing.T) {
	for _, e := range []*pathname.Encoding{nil, {}} {
		if e.String() != "utf-8" || !e.UTF8() || e.Raw() {
			t.Errorf("%#v is %s", e, e)
		}
		if name, err := e.Decode("日本"); name != "日本" || err != nil {
			t.Errorf("Decode: %q, %v", name, err)
		}
		if _, err := e.Decode("\xff"); !errors.Is(err, pathname.ErrNotInEncoding) {
			t.Errorf("Decode: %v", err)
		}
		if name, ok := e.Encode("日本"); name != "日本" || !ok {
			t.Errorf("Encode: %q, %t", name, ok)
		}
	}
}

// TestEncodingNames tests bytes that systems with each charset write.
func TestEncodingNames(t *testing.T) {
	tests := []struct{ label, bytes, name string }{
		{"utf-8", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", "日本語"},
		{"utf-8", "\xef\xbb\xbfname", "\ufeffname"}, // a pathname does not start a stream
		{"shift_jis", "\x93\xfa\x96\x7b\x8c\xea", "日本語"},
		{"shift_jis", "\xb6\xc5.txt", "ｶﾅ.txt"},
		{"shift_jis", "\x95\x5c\x8e\xa6.doc", "表示.doc"}, // 5C, a backslash, is a trail byte
		{"shift_jis", "\x81\x60", "～"},
		{"shift_jis", "\xfb\xfc\x8b\xb4", "髙橋"}, // the last trail byte
		{"shift_jis", "\xfa\xb1", "﨑"},
		{"shift_jis", "\xfa\x40", "ⅰ"},
		{"euc-jp", "\xc6\xfc\xcb\xdc\xb8\xec", "日本語"},
		{"euc-jp", "\x8f\xb0\xa1", "丂"}, // JIS X 0212
		{"gbk", "\x80", "€"},
		{"gbk", "\xe9\x46", "镕"}, // in GBK, not in GB 2312
		{"gb18030", "\xa2\xe3", "€"},
		{"gb18030", "\x81\x39\xee\x39", "㐀"},
		{"gb18030", "\x94\x39\xda\x33", "\U0001f4a9"},
		{"big5", "\xa4\xa4\xa4\xe5", "中文"},
		{"big5", "\xa5\x5c\xaf\xe0", "功能"}, // the second byte of the first character is 5C, a backslash
		{"big5", "\xa4\x51", "十"},
		{"big5", "\x88\x66", "Ê"}, // Hong Kong's supplement
		{"euc-kr", "\xc7\xd1\xb1\xb9\xbe\xee", "한국어"},
		{"euc-kr", "\x8c\x63", "똠"}, // Microsoft's extension
		{"koi8-r", "\xe6\xc1\xca\xcc", "Файл"},
		{"macintosh", "caf\x8e", "café"},
		{"iso-8859-1", "\x93quoted\x94 \x80", "“quoted” €"}, // Windows writes these bytes under this label
		{"iso-8859-9", "\xddstanbul", "İstanbul"},
		{"iso-8859-15", "5\xa4 caf\xe9", "5€ café"},
		{"ibm852", "\x9d\xa2d\xab", "Łódź"},
		{"iso-8859-8", "\xe4", "ה"},
		{"tis-620", "\xab", "ซ"}, // SO SO, RFC 2640, annex B.2.4
		{"windows-1258", "Vi\xea\xf2t", "Viê\u0323t"},
	}
	for _, tt := range tests {
		t.Run(tt.label, func(t *testing.T) {
			e := parseEncoding(t, tt.label)
			name, err := e.Decode(tt.bytes)
			if err != nil || name != tt.name {
				t.Errorf("Decode(%q) = %q, %v, want %q", tt.bytes, name, err, tt.name)
			}
			bytes, ok := e.Encode(tt.name)
			if !ok || bytes != tt.bytes {
				t.Errorf("Encode(%q) = %q, %t, want %q", tt.name, bytes, ok, tt.bytes)
			}
			if !slices.Contains(readings(t, e, tt.name), tt.name) {
				t.Errorf("%q: UTF-8 is not among the readings", tt.name)
			}
		})
	}
}

func TestEncodingRefuses(t *testing.T) {
	tests := []struct{ label, bytes, why string }{
		{"utf-8", "caf\xe9", "latin-1"},
		{"utf-8", "\xc0\xaf", "overlong slash"},
		{"utf-8", "\xed\xa0\x80", "surrogate"},
		{"utf-8", "\xe6\x97", "cut off"},
		{"shift_jis", "\x93", "cut off"},
		{"shift_jis", "\x93/", "slash as a trail byte"},
		{"shift_jis", "\x80", "undefined"},
		{"shift_jis", "\xee\xe0", "second spelling of 髙"},
		{"shift_jis", "\xfa\x54", "second spelling of ￢"},
		{"shift_jis", "\x87\x90", "second spelling of ≒"},
		{"euc-jp", "\xad\xf0", "second spelling of ≒"},
		{"euc-jp", "\x8f\xa1\xa1", "undefined"},
		{"gbk", "\xa2\xe3", "second spelling of €"},
		{"gbk", "\x81\x39\xee\x39", "gb18030 only"},
		{"gb18030", "\x80", "second spelling of €"},
		{"gb18030", "\x84\x31\xa4\x37", "U+FFFD"},
		{"gb18030", "\xfe\x39\xfe\x39", "above U+10FFFF"},
		{"big5", "\xfd\xbb", "second spelling of 港"},
		{"big5", "\xa2\xcc", "second spelling of 十"},
		{"big5", "\x88\x64", "two characters that Encode has not"},
		{"big5", "\x80", "undefined"},
		{"euc-kr", "\xfe\xa1", "undefined"},
		{"iso-8859-1", "\x81", "undefined"},
		{"iso-8859-7", "\xff", "undefined"},
		{"iso-8859-8", "\xbf", "undefined"},
		{"tis-620", "\xdb", "undefined"},
	}
	for _, tt := range tests {
		t.Run(tt.label+"-"+strings.ReplaceAll(tt.why, " ", "-"), func(t *testing.T) {
			name, err := parseEncoding(t, tt.label).Decode(tt.bytes)
			if !errors.Is(err, pathname.ErrNotInEncoding) || name != "" {
				t.Errorf("Decode(%q) = %q, %v", tt.bytes, name, err)
			}
		})
	}
}

// TestEncodingFallsBackToUTF8 tests names that the charset cannot encode, or only with bytes that mean another
// character.
func TestEncodingFallsBackToUTF8(t *testing.T) {
	tests := []struct{ label, name, why string }{
		{"iso-8859-1", "日本語", "not in the charset"},
		{"iso-8859-1", "café 日", "one character is not in the charset"},
		{"iso-8859-15", "½", "not in the charset"},
		{"shift_jis", "¥", "5C is the backslash"},
		{"shift_jis", "〜", "81 60 is U+FF5E"},
		{"gb18030", "\ufffd", "replacement character"},
	}
	for _, tt := range tests {
		t.Run(tt.label+"-"+strings.ReplaceAll(tt.why, " ", "-"), func(t *testing.T) {
			e := parseEncoding(t, tt.label)
			if bytes, ok := e.Encode(tt.name); bytes != tt.name || !ok {
				t.Errorf("Encode(%q) = %q, %t", tt.name, bytes, ok)
			}
			if !slices.Contains(readings(t, e, tt.name), tt.name) {
				t.Errorf("%q: UTF-8 is not among the readings", tt.name)
			}
		})
	}
}

func TestEncodeNotUTF8(t *testing.T) {
	for _, label := range []string{"utf-8", "raw", "iso-8859-1", "gb18030"} {
		if bytes, ok := parseEncoding(t, label).Encode("caf\xe9"); ok {
			t.Errorf("%s: Encode = %q", label, bytes)
		}
	}
}

// TestCharsetBytes decodes each byte and each pair of bytes in every charset. Only the bytes of "/" and "." decode to
// these characters, and Encode returns the same bytes.
func TestCharsetBytes(t *testing.T) {
	for _, e := range charsets(t) {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			seen := make(map[string]string)
			for first := range 256 {
				checkBytes(t, e, string([]byte{byte(first)}), seen)
				for second := range 256 {
					checkBytes(t, e, string([]byte{byte(first), byte(second)}), seen)
				}
			}
		})
	}
}

func checkBytes(t *testing.T, e *pathname.Encoding, bytes string, seen map[string]string) {
	t.Helper()
	all, err := e.Readings(bytes)
	if err != nil {
		if !errors.Is(err, pathname.ErrNotInEncoding) {
			t.Errorf("Readings(%q): %v", bytes, err)
		}
		return
	}
	if all[0].Charset == nil && !isASCII(bytes) {
		return // valid in UTF-8 only
	}
	name := all[0].Name
	for _, char := range []string{"/", ".", "\x00", "\r", "\n"} {
		if strings.Count(name, char) != strings.Count(bytes, char) {
			t.Errorf("Decode(%q) = %q", bytes, name)
		}
	}
	if other, ok := seen[name]; ok {
		t.Errorf("%q and %q are both %q", bytes, other, name)
	}
	seen[name] = bytes
	if encoded, ok := e.Encode(name); encoded != bytes || !ok {
		t.Errorf("Decode(%q) = %q, but Encode gives %q, %t", bytes, name, encoded, ok)
	}
}

// TestCharsetCharacters encodes every character, in every charset.
func TestCharsetCharacters(t *testing.T) {
	for _, e := range charsets(t) {
		last := rune(0xffff)
		if e.String() == "gb18030" || e.String() == "big5" {
			last = 0x2ffff // they have characters outside the Basic Multilingual Plane
		}
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			for r := rune(0x80); r <= last; r++ {
				name := string(r)
				bytes, ok := e.Encode(name)
				if !ok || !slices.Contains(readings(t, e, bytes), name) {
					t.Fatalf("Encode(%q) = %q, %t; the readings are %q", name, bytes, ok, readings(t, e, bytes))
				}
				if strings.ContainsAny(bytes, "/?.&#;\x1a") {
					t.Fatalf("Encode(%q) = %q", name, bytes)
				}
			}
		})
	}
}

// TestBig5Itself checks that no bytes of Big5 itself are refused because Hong Kong's supplement has the same character
// a second time. Big5 itself has a few characters twice.
func TestBig5Itself(t *testing.T) {
	e := parseEncoding(t, "big5")
	twice := []string{"\xa2\xa4", "\xa2\xa5", "\xa2\xa6", "\xa2\xa7", "\xa2\xcc", "\xa2\xce"}
	for lead := 0xa1; lead <= 0xf9; lead++ {
		for trail := 0x40; trail <= 0xfe; trail++ {
			bytes := string([]byte{byte(lead), byte(trail)})
			// In the ranges that start at C6A1 and F9D6, vendors have defined their own characters.
			if 0x7f <= trail && trail <= 0xa0 || "\xc6\xa1" <= bytes && bytes < "\xc9\x40" || "\xf9\xd6" <= bytes {
				continue
			}
			decoded, err := traditionalchinese.Big5.NewDecoder().String(bytes)
			if err != nil || strings.Contains(decoded, "\ufffd") || slices.Contains(twice, bytes) {
				continue
			}
			if name, err := e.Decode(bytes); name != decoded {
				t.Errorf("Decode(%q) = %q, %v, want %q", bytes, name, err, decoded)
			}
		}
	}
}

// FuzzEncodings checks the documented properties of every encoding.
func FuzzEncodings(f *testing.F) {
	for _, seed := range []string{"", "name", "日本語", "\x93\xfa\x96\x7b\x8c\xea", "\xc6\xfc\xcb\xdc", "caf\xe9",
		"\xc3\xa9", "\x84\x31\xa4\x37", "\x81\x30\x81\x30", "\x8f\xb0\xa1", "‛FF", "‛‛", "\xed\xa0\x80", "\x88\x66/."} {
		f.Add(seed, seed)
	}
	encodings := append(charsets(f), nil, parseEncoding(f, "raw"))
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, e := range encodings {
			nameA, nameB := checkDecode(t, e, a), checkDecode(t, e, b)
			if a != b && nameA.Name != "" && nameA == nameB {
				t.Errorf("%s: %q and %q are both %q", e, a, b, nameA.Name)
			}
			if !utf8.ValidString(a) {
				continue
			}
			bytes, ok := e.Encode(a)
			if !ok {
				if !e.Raw() {
					t.Errorf("%s: Encode(%q) gives nothing", e, a)
				}
				continue
			}
			if !slices.Contains(readings(t, e, bytes), a) {
				t.Errorf("%s: Encode(%q) = %q, whose readings are %q", e, a, bytes, readings(t, e, bytes))
			}
		}
	})
}

// checkDecode checks the readings of bytes and returns the first one, or the zero Reading if there is none.
func checkDecode(t *testing.T, e *pathname.Encoding, bytes string) pathname.Reading {
	t.Helper()
	all, err := e.Readings(bytes)
	if err != nil {
		if e.Raw() || utf8.ValidString(bytes) || !errors.Is(err, pathname.ErrNotInEncoding) {
			t.Errorf("%s: Readings(%q): %v", e, bytes, err)
		}
		return pathname.Reading{}
	}
	for _, r := range all {
		if !utf8.ValidString(r.Name) || strings.Count(r.Name, "/") != strings.Count(bytes, "/") {
			t.Errorf("%s: %q can be %q", e, bytes, r.Name)
		}
	}
	encoded, ok := e.Encode(all[0].Name)
	if !ok || encoded != bytes && (e.Raw() || all[0].Charset != nil) {
		t.Errorf("%s: %q is read as %q, but Encode gives %q, %t", e, bytes, all[0].Name, encoded, ok)
	}
	return all[0]
}

func TestEncodingASCIIDoesNotAllocate(t *testing.T) {
	for _, label := range []string{"utf-8", "raw", "shift_jis", "iso-8859-1"} {
		e := parseEncoding(t, label)
		allocations := testing.AllocsPerRun(100, func() {
			name, err := e.Decode("2026-10-17 report.pdf")
			must.OK(t, err)
			if _, ok := e.Encode(name); !ok {
				t.Fatal("Encode returned false")
			}
		})
		if allocations != 0 {
			t.Errorf("%s: got %v allocations", label, allocations)
		}
	}
}

func BenchmarkEncoding(b *testing.B) {
	for _, bb := range []struct{ label, kind, bytes string }{
		{"utf-8", "ascii", "report.pdf"},
		{"shift_jis", "ascii", "report.pdf"},
		{"shift_jis", "japanese", "\x93\xfa\x96\x7b\x8c\xea.pdf"},
		{"windows-1252", "french", "caf\xe9.pdf"},
	} {
		e := parseEncoding(b, bb.label)
		name, err := e.Decode(bb.bytes)
		must.OK(b, err)
		b.Run("decode-"+bb.label+"-"+bb.kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Decode(bb.bytes); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("encode-"+bb.label+"-"+bb.kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := e.Encode(name); !ok {
					b.Fatal("Encode returned false")
				}
			}
		})
	}
}
