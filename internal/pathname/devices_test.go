package pathname_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A store holds the names in one directory.
type store map[string]bool

// A visit is a session of a device with the store.
type visit struct {
	codec pathname.Codec
	store store
	asked int // number of requests to the storage
}

func (s store) visit(rules pathname.Rules) *visit {
	return &visit{codec: pathname.Codec{Rules: rules}, store: s}
}

func (v *visit) stat(name string) error {
	v.asked++
	if v.store[name] {
		return nil
	}
	return fs.ErrNotExist
}

// do calls work with a resolver and the decoded name, like a session does for each command.
func (v *visit) do(
	bytes string, work func(r *pathname.Resolver, name string) (string, error),
) (key string, err error) {
	r := &pathname.Resolver{Rules: v.codec.Rules, WorkingDirectory: "/",
		StatDir: func(name string) (fs.FileInfo, error) { return nil, v.stat(name) }}
	name, err := v.codec.Absolute("/", bytes)
	if err != nil {
		return "", err
	}
	r.Sent(name)
	key, err = work(r, name.Path)
	if v.codec.Choice == pathname.Undecided {
		v.codec.Choice = r.Choice
	}
	return key, err
}

func (v *visit) create(bytes string) (string, error) {
	key, err := v.do(bytes, func(r *pathname.Resolver, name string) (string, error) {
		return r.ResolveForCreate(name, v.stat)
	})
	if err == nil {
		v.store[key] = true
	}
	return key, err
}

func (v *visit) find(bytes string) (string, error) {
	return v.do(bytes, func(r *pathname.Resolver, name string) (string, error) { return r.Lookup(name, v.stat) })
}

// list returns the bytes with which a listing shows a key.
func (v *visit) list(key string) string {
	v.codec.Listed = true
	return v.codec.EncodeName("/", path.Base(key))
}

// wordLists pairs charsets of old devices with languages that they write, for which there are catalogs.
var wordLists = []struct{ charset, language string }{
	{"gbk", "zh-Hans"}, {"gb18030", "zh-Hans"}, {"big5", "zh-Hant"}, {"euc-jp", "ja"}, {"shift_jis", "ja"},
	{"euc-kr", "ko"}, {"koi8-r", "ru"}, {"koi8-u", "uk"}, {"windows-1251", "ru"}, {"windows-1251", "uk"},
	{"windows-1251", "sr"}, {"windows-1251", "bg"}, {"windows-1253", "el"}, {"iso-8859-7", "el"},
	{"windows-1256", "ar"}, {"windows-1256", "fa"}, {"windows-1255", "he"}, {"windows-874", "th"},
	{"windows-1252", "fr"}, {"iso-8859-15", "de"}, {"ibm850", "es"}, {"windows-1250", "pl"}, {"iso-8859-2", "cs"},
	{"windows-1254", "tr"}, {"windows-1257", "lt"}, {"windows-1258", "vi"}, {"macintosh", "it"},
}

// wordsOf returns the words of a language as bytes in a charset. It includes parts of words, because some languages
// have no spaces between words.
func wordsOf(t *testing.T, charset, language string) []string {
	t.Helper()
	text, err := os.ReadFile("../../locales/" + language + "/messages.gotext.json")
	must.OK(t, err)
	var catalog struct {
		Messages []struct{ Translation any }
	}
	must.OK(t, json.Unmarshal(text, &catalog))
	encoding := parseEncoding(t, charset)
	seen := map[string]bool{}
	for _, m := range catalog.Messages {
		sentence, _ := m.Translation.(string)
		for _, word := range strings.FieldsFunc(sentence, func(r rune) bool {
			return r < 0x80 && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		}) {
			runes := []rune(word)
			for _, length := range []int{1, 2, 3, len(runes)} {
				for i := 0; i+length <= len(runes); i++ {
					name := string(runes[i : i+length])
					if strings.Trim(name, "\u200c\u00a0\u202f") != name {
						continue // names do not begin or end with a Persian joiner or a French space
					}
					bytes, _ := encoding.Encode(name)
					if all := readings(t, encoding, bytes); bytes != name && all[0] == name {
						seen[bytes] = true
					}
				}
			}
		}
	}
	words := make([]string, 0, len(seen))
	for word := range seen {
		words = append(words, word)
	}
	slices.Sort(words)
	return words
}

// TestWordsComeBack: a device gets all words of its language back byte for byte, even if the word is the first name of
// a session, and no word replaces another.
func TestWordsComeBack(t *testing.T) {
	for _, list := range wordLists {
		t.Run(list.charset+"/"+list.language, func(t *testing.T) {
			t.Parallel()
			words := wordsOf(t, list.charset, list.language)
			if len(words) < 50 {
				t.Fatalf("got %d words", len(words))
			}
			rules := pathname.Rules{Encoding: parseEncoding(t, list.charset)}
			all := store{}
			for _, word := range words {
				wantBack(t, store{}, rules, word)
				if !slices.Contains(onlyTheSessionTells(list.charset), word) {
					wantBack(t, store{}, pathname.Rules{Encoding: rules.Encoding, Mixed: true}, word)
				}
				wantBack(t, all, rules, word)
			}
			if len(all) != len(words) {
				t.Errorf("%d words have %d keys", len(words), len(all))
			}
		})
	}
}

// TestNamesOfFourBytes: if clients with UTF-8 use the same tenant, four bytes are read as two characters of the
// charset, unless they are a known character in UTF-8.
func TestNamesOfFourBytes(t *testing.T) {
	for _, test := range []struct{ charset, bytes, key string }{
		{"gbk", "\xf0\xaf\xbd\xad", "/鸠江"},
		{"gbk", "\xf0\xae\xbd\xad", "/甬江"},
		{"gb18030", "\xf1\xa8\xb7\xbd", "/瘿方"},
		{"euc-jp", "\xf1\xa1\xb0\xa1", "/顱亜"},
		{"gb18030", "\xf0\xa4\xb6\x9f", "/黏稛"},
		{"gbk", "\xf0\xa9\xb8\xbd", "/皓附"},
		{"gbk", "\xf0\x9f\x87\xa8\xf0\x9f\x87\xb3", "/🇨🇳"},
		{"euc-jp", "\xf0\xa9\xb8\xbd", "/𩸽"},
		{"gbk", "\xf0\x9f\x98\x80", "/😀"},
		{"gbk", "\xf0\xa0\xae\xb7", "/𠮷"},
	} {
		s := store{}
		rules := pathname.Rules{Encoding: parseEncoding(t, test.charset), Mixed: true}
		if key, err := s.visit(rules).create(test.bytes); key != test.key || err != nil {
			t.Errorf("%s: %q: got key %q, %v, want %q", test.charset, test.bytes, key, err, test.key)
		}
		if key, err := s.visit(rules).find(test.bytes); key != test.key || err != nil {
			t.Errorf("%s: lookup of %q: got %q, %v, want %q", test.charset, test.bytes, key, err, test.key)
		}
	}
}

// TestNamesWithInvisibleReadings: a name is read as UTF-8 if its reading in the charset has an invisible character and
// therefore could not be created. A session that has decided on the charset gets an error.
func TestNamesWithInvisibleReadings(t *testing.T) {
	for _, test := range []struct{ charset, before, bytes, key string }{
		{"windows-1252", "", "día.txt", "/día.txt"},
		{"iso-8859-2", "", "中", "/中"},
		{"windows-1256", "", "癞", "/癞"},
		{"windows-1252", "", "ñ", "/Ã±"},
		{"windows-1252", "caf\xe9", "día.txt", ""},
	} {
		rules := pathname.Rules{Encoding: parseEncoding(t, test.charset)}
		v := store{}.visit(rules)
		if test.before != "" {
			_, err := v.create(test.before)
			must.OK(t, err)
		}
		key, err := v.create(test.bytes)
		var invisible *pathname.InvisibleError
		if test.key == "" {
			if !errors.As(err, &invisible) {
				t.Errorf("%s: %q: got key %q, %v", test.charset, test.bytes, key, err)
			}
			continue
		}
		if key != test.key || err != nil {
			t.Errorf("%s: %q: got key %q, %v, want %q", test.charset, test.bytes, key, err, test.key)
		}
		if got := v.list(key); got != test.bytes {
			t.Errorf("%s: %q: unexpected name %q in the listing", test.charset, test.bytes, got)
		}
	}
}

// onlyTheSessionTells returns names in a charset whose bytes are also common names in UTF-8, which other clients of the
// tenant may write.
func onlyTheSessionTells(charset string) []string {
	return map[string][]string{
		"iso-8859-1": {"\xc2\xb0C", "\xc3\xa9t\xc3\xa9"}, "windows-1256": {"\xd8\xba"}, "koi8-u": {"\xd0\xa6"},
	}[charset]
}

// TestNormalFormsComeBack: some charsets have characters that Unicode's normal forms replace. KS X 1001 has some
// Chinese characters twice, and Shift_JIS has the ångström sign.
func TestNormalFormsComeBack(t *testing.T) {
	for _, charset := range []string{
		"big5", "euc-jp", "euc-kr", "gbk", "shift_jis", "windows-1255", "windows-1256", "windows-1258",
	} {
		t.Run(charset, func(t *testing.T) {
			t.Parallel()
			rules := pathname.Rules{Encoding: parseEncoding(t, charset)}
			s := store{}
			for lead := 0x80; lead < 0x100; lead++ {
				for trail := 0x41; trail < 0x100; trail++ {
					bytes := string([]byte{byte(lead), byte(trail)})
					all, err := rules.Encoding.Readings(bytes)
					if err == nil && all[0].Charset != nil && !norm.NFC.IsNormalString(all[0].Name) {
						wantBack(t, s, rules, bytes)
					}
				}
			}
		})
	}
}

// wantBack checks that a device can create a name, and that other sessions list and find it with the same bytes.
func wantBack(t *testing.T, s store, rules pathname.Rules, bytes string) {
	t.Helper()
	first := s.visit(rules)
	key, err := first.create(bytes)
	if err != nil {
		t.Errorf("%q: %v", bytes, err)
		return
	}
	for _, v := range []*visit{first, s.visit(rules)} {
		if got := v.list(key); got != bytes {
			t.Errorf("%q: got key %q and listed name %q", bytes, key, got)
		}
	}
	if found, err := s.visit(rules).find(bytes); found != key {
		t.Errorf("%q: got key %q, and lookup %q, %v", bytes, key, found, err)
	}
	if again, err := s.visit(rules).create(bytes); again != key || err != nil {
		t.Errorf("%q: got key %q, and then %q, %v", bytes, key, again, err)
	}
}

// TestShownNamesLeadBack: for random keys, a new session finds each key by the bytes with which a listing shows it,
// unless two keys are shown with the same bytes.
func TestShownNamesLeadBack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	letters := []rune("aé中目录日本与辿Ŀ¼一λ位ΩŴƻΆωЖжїдا،؛ُﾃｽ港髙한글樂樂🎉ñ")
	for _, charset := range []string{"gbk", "big5", "euc-jp", "shift_jis", "euc-kr", "koi8-u", "windows-1251",
		"windows-1256", "windows-1258", "iso-8859-15", "gb18030"} {
		for _, mixed := range []bool{false, true} {
			rules := pathname.Rules{Encoding: parseEncoding(t, charset), Mixed: mixed, Normalization: pathname.None}
			for range 2000 {
				s, shown := store{}, map[string]string{}
				for range 6 {
					name := "/"
					for range 1 + random.IntN(3) {
						name += string(letters[random.IntN(len(letters))])
					}
					s[name] = true
				}
				for key := range s {
					v := s.visit(rules)
					bytes := v.list(key)
					if other, twice := shown[bytes]; twice {
						delete(s, other)
					}
					shown[bytes] = key
				}
				for bytes, key := range shown {
					if !s[key] {
						continue
					}
					if got, err := s.visit(rules).find(bytes); got != key {
						t.Fatalf("%s, mixed %t: %q is listed as %q, which leads to %q, %v", charset, mixed, key, bytes, got, err)
					}
				}
			}
		}
	}
}

// TestRequestsForNames: names that are valid in only one charset cost no additional request.
func TestRequestsForNames(t *testing.T) {
	for _, test := range []struct {
		bytes        string
		create, find int
	}{
		{"report.pdf", 0, 1},
		{"\xd6\xd0\xce\xc4", 0, 1}, // not UTF-8
		{"\xe4\xb8\xad", 0, 1},     // not GBK
		{"\xc4\xbf\xc2\xbc", 1, 1}, // both
	} {
		s := store{}
		rules := pathname.Rules{Encoding: parseEncoding(t, "gbk")}
		v := s.visit(rules)
		_, err := v.create(test.bytes)
		must.OK(t, err)
		if v.asked != test.create {
			t.Errorf("create %q: got %d requests, want %d", test.bytes, v.asked, test.create)
		}
		v = s.visit(rules)
		_, err = v.find(test.bytes)
		must.OK(t, err)
		if v.asked != test.find {
			t.Errorf("find %q: got %d requests, want %d", test.bytes, v.asked, test.find)
		}
	}
}

// FuzzHistories: whatever bytes a device writes as a name, it gets the same bytes back, or an error.
func FuzzHistories(f *testing.F) {
	f.Add("gbk", "\xc4\xbf\xc2\xbc", "\xce\xbb", false)
	f.Add("euc-jp", "\x8f\xab\xb1", "\xc3\xa9", true)
	f.Add("windows-1258", "Vi\xea\xf2t", "e\xec", false)
	f.Fuzz(func(t *testing.T, charset, a, b string, list bool) {
		encoding, err := pathname.ParseEncoding(charset)
		if err != nil || strings.ContainsAny(a+b, "/\x00\r\n") || a == b {
			return
		}
		rules := pathname.Rules{Encoding: encoding}
		s := store{}
		for _, bytes := range []string{a, b} {
			if bytes == "" || bytes == "." || bytes == ".." || !inCharset(encoding, bytes) {
				return
			}
			v := s.visit(rules)
			if list {
				v.list("/x")
			}
			key, err := v.create(bytes)
			if err != nil && !errors.Is(err, pathname.ErrNotInEncoding) {
				t.Fatal(err)
			}
			if got := s.visit(rules).list(key); got != bytes {
				t.Errorf("%s: %q has the key %q and is listed as %q", encoding, bytes, key, got)
			}
		}
		for _, bytes := range []string{a, b} {
			key, err := s.visit(rules).find(bytes)
			if got := s.visit(rules).list(key); got != bytes || err != nil {
				t.Errorf("%s: %q leads to %q, listed as %q, %v", encoding, bytes, key, got, err)
			}
		}
	})
}

// inCharset reports whether a device with this charset can write the bytes, and may create a file with this name.
func inCharset(e *pathname.Encoding, bytes string) bool {
	all, err := e.Readings(bytes)
	return err == nil && (all[0].Charset != nil || e.UTF8() || e.Raw()) &&
		!strings.ContainsAny(all[0].Name, "\u00ad\u200c\u200d\u200e\u200f\u3164")
}

// TestExistingNameInUTF8: if the configuration lists UTF-8, an existing name in UTF-8 decides for the session, unless
// the client may have copied it from a listing.
func TestExistingNameInUTF8(t *testing.T) {
	for _, test := range []struct {
		name     string
		labels   []string
		mixed    bool
		listed   bool
		existing string
		first    string
		want     string // expected key of a new name with the bytes C5 B4 C6 BC
	}{
		{"user", []string{"euc-jp", "shift_jis", "utf-8"}, false, false, "/Ŵƻ", "Ŵƻ", "/ŴƼ"},
		{"tenant", []string{"euc-jp", "shift_jis", "utf-8"}, true, false, "/Ŵƻ", "Ŵƻ", "/ŴƼ"},
		{"utf-8-first", []string{"utf-8", "euc-jp"}, false, false, "/Ŵƻ", "Ŵƻ", "/ŴƼ"},
		{"listed", []string{"euc-jp", "shift_jis", "utf-8"}, false, true, "/Ŵƻ", "Ŵƻ", "/鉄銅"},
		{"other-name", []string{"euc-jp", "shift_jis", "utf-8"}, false, false, "/鉄道", "\xc5\xb4\xc6\xbb", "/鉄銅"},
		{"not-there", []string{"euc-jp", "shift_jis", "utf-8"}, false, false, "/x", "Ŵƻ", "/鉄銅"},
		{"without-utf-8", []string{"euc-jp"}, false, false, "/Ŵƻ", "Ŵƻ", "/鉄銅"},
	} {
		t.Run(test.name, func(t *testing.T) {
			rules := pathname.Rules{Encoding: parseEncoding(t, test.labels...), Mixed: test.mixed}
			v := store{test.existing: true}.visit(rules)
			v.codec.Listed = test.listed
			_, _ = v.find(test.first)
			if got, err := v.create("\xc5\xb4\xc6\xbc"); got != test.want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// TestSyllablesByLetters: devices with KS X 1001 write a syllable that it lacks as a filler and the letters of the
// syllable.
func TestSyllablesByLetters(t *testing.T) {
	rules := pathname.Rules{Encoding: parseEncoding(t, "euc-kr")}
	for _, bytes := range []string{
		"\xa4\xd4\xa4\xa8\xa4\xc7\xa4\xb1", "\xb0\xa2\xa4\xd4\xa4\xa9\xa4\xcb\xa4\xd4", "\xa4\xd4\xa4\xa8\xa4\xc7\xa4\xb1.txt",
	} {
		wantBack(t, store{}, rules, bytes)
	}
}
