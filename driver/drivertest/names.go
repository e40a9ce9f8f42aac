package drivertest

import "strings"

// A Name is a pathname that some layer between a client and a bucket could handle wrongly.
type Name struct {
	// Label describes the difficulty and can be used as the name of a test.
	Label string
	// Path is the pathname, relative to some directory.
	Path string
	// Needs lists what a server must support to store the name.
	Needs []Limit
}

// Names returns the table of names. All of them can be in one directory at the same time.
func Names() []Name {
	return []Name{
		{Label: "plain", Path: "plain.txt"},
		{Label: "space-first", Path: " space first"},
		{Label: "space-last", Path: "space last "},
		{Label: "spaces-only", Path: "   "},
		{Label: "two-spaces", Path: "two  spaces"},
		{Label: "tab", Path: "tab\there"},
		{Label: "plus", Path: "1+1"},
		{Label: "plus-as-space", Path: "1 1"},
		{Label: "percent", Path: "100%"},
		{Label: "percent-encoded", Path: "%41"},
		{Label: "percent-decoded", Path: "A"},
		{Label: "percent-twice", Path: "%2541"},
		{Label: "percent-slash", Path: "a%2Fb"},
		{Label: "percent-broken", Path: "%zz"},
		{Label: "quotation-mark", Path: `say "hi"`},
		{Label: "apostrophe", Path: "it's"},
		{Label: "backslash", Path: `back\slash`},
		{Label: "asterisk", Path: "*"},
		{Label: "question-mark", Path: "what?"},
		{Label: "hash", Path: "#1"},
		{Label: "ampersand", Path: "you & me"},
		{Label: "entity", Path: "&amp;"},
		{Label: "markup", Path: "<Key>x</Key>"},
		{Label: "equals", Path: "a=b;c,d:e"},
		{Label: "at", Path: "@home $HOME"},
		{Label: "tilde", Path: "~"},
		{Label: "minus-first", Path: "-la"},
		{Label: "brackets", Path: "[1](2){3}|^`"},
		{Label: "dot-first", Path: ".hidden"},
		{Label: "dot-last", Path: "end."},
		{Label: "three-dots", Path: "..."},
		{Label: "dots-in-the-middle", Path: "a..b"},
		{Label: "device-name", Path: "CON"},
		{Label: "case-upper", Path: "CASE"},
		{Label: "case-lower", Path: "case"},
		{Label: "composed", Path: "caf\u00e9"},
		{Label: "decomposed", Path: "cafe\u0301"},
		{Label: "hangul-composed", Path: "\ud55c"},
		{Label: "hangul-decomposed", Path: "\u1112\u1161\u11ab"},
		{Label: "kelvin-sign", Path: "\u212a"},
		{Label: "latin-k", Path: "K"},
		{Label: "french", Path: "été à la plage.jpg"},
		{Label: "cyrillic", Path: "отчёт за год.txt"},
		{Label: "greek", Path: "Ελληνικά"},
		{Label: "arabic", Path: "تقرير ٢٠٢٦.pdf"},
		{Label: "hebrew", Path: "שלום.txt"},
		{Label: "chinese", Path: "报告.docx"},
		{Label: "japanese", Path: "レポート　最終.txt"},
		{Label: "thai", Path: "รายงาน"},
		{Label: "emoji", Path: "\U0001F600"},
		{Label: "emoji-joined", Path: "\U0001F468\u200D\U0001F469\u200D\U0001F467"},
		{Label: "right-to-left-override", Path: "a\u202Egpj.exe"},
		{Label: "byte-order-mark", Path: "\uFEFFmarked"},
		{Label: "no-break-space", Path: "no\u00A0break"},
		{Label: "line-separator", Path: "line\u2028separator"},
		{Label: "plane-sixteen", Path: "\U0010FFFD"},
		{Label: "carriage-return", Path: "carriage\rreturn"},
		{Label: "line-feed", Path: "line\nfeed"},
		{Label: "both-line-ends", Path: "line\r\nends"},
		{Label: "line-feed-last", Path: "last\n"},
		{Label: "delete", Path: "delete\x7f"},
		{Label: "c1-control", Path: "next\u0085line"},
		{Label: "start-of-heading", Path: "\x01", Needs: []Limit{ListControlCharacters}},
		{Label: "escape", Path: "\x1b[31mred", Needs: []Limit{ListControlCharacters}},
		{Label: "noncharacter", Path: "\uFFFF", Needs: []Limit{ListControlCharacters}},
		{Label: "replacement-character", Path: "\uFFFD", Needs: []Limit{ListControlCharacters}},
		{Label: "prefix-of-another", Path: "foo/in"},
		{Label: "continued", Path: "foobar"},
		{Label: "before-slash", Path: "foo!"},
		{Label: "after-slash", Path: "foo0"},
		{Label: "deep", Path: "d/e/e/p/er"},
		{Label: "directory-beside", Path: "beside/in", Needs: []Limit{ListFileBesideDirectory}},
		{Label: "file-beside", Path: "beside", Needs: []Limit{FileBesideDirectory}},
		{Label: "segment-255", Path: strings.Repeat("s", 255)},
		{Label: "segment-255-umlauts", Path: strings.Repeat("ü", 127) + "u"},
		{Label: "segment-256", Path: strings.Repeat("l", 256), Needs: []Limit{LongSegments}},
		{Label: "segment-900", Path: strings.Repeat("l", 900), Needs: []Limit{LongSegments}},
	}
}

// UnrepresentableKeys returns pathnames that no file can have.
func UnrepresentableKeys() []Name {
	return []Name{
		{Label: "latin-1", Path: "caf\xe9"},
		{Label: "cut-off", Path: "caf\xc3"},
		{Label: "continuation-alone", Path: "\x80"},
		{Label: "overlong-slash", Path: "a\xc0\xafb"},
		{Label: "overlong-nul", Path: "\xc0\x80"},
		{Label: "surrogate", Path: "\xed\xa0\x80"},
		{Label: "above-10ffff", Path: "\xf4\x90\x80\x80"},
		{Label: "five-bytes", Path: "\xf8\x88\x80\x80\x80"},
		{Label: "nul", Path: "a\x00b"},
		{Label: "in-a-directory", Path: "\xff/b"},
		{Label: "reserved", Path: ".babelftp"},
		{Label: "in-the-reserved", Path: ".babelftp/uploads"},
	}
}
