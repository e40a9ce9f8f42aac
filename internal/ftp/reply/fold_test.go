package reply

import (
	"encoding/json"
	"io/fs"
	"testing"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/locales"
)

// newLocale returns the locale of a tenant with a language and a charset.
func newLocale(t *testing.T, tag, label string) *Locale {
	t.Helper()
	bundle, err := i18n.Load()
	must.OK(t, err)
	encoding, err := pathname.ParseEncoding(label)
	must.OK(t, err)
	l := NewLocale(Preferences{Bundle: bundle})
	l.SetTenant(Preferences{DefaultLanguage: language.MustParse(tag), Encoding: encoding}, language.Und)
	return l
}

// Every reply in a language fits into the charsets that clients with this language use.
func TestMessagesInCharsets(t *testing.T) {
	data, err := fs.ReadFile(locales.FS(), "en/messages.gotext.json")
	must.OK(t, err)
	var catalog struct {
		Messages []struct {
			ID           i18n.ID
			Placeholders []struct{ ID string }
		}
	}
	must.OK(t, json.Unmarshal(data, &catalog))
	for _, tt := range []struct{ tag, charset string }{
		{"fr", "ibm850"}, {"fr", "iso-8859-15"}, {"fr", "windows-1252"}, {"it", "ibm850"}, {"nl", "ibm850"},
		{"de", "iso-8859-1"}, {"es", "ibm850"},
		{"pt-BR", "ibm850"}, {"pl", "iso-8859-2"}, {"pl", "ibm852"}, {"ru", "koi8-r"}, {"ru", "ibm866"},
		{"ru", "windows-1251"}, {"uk", "koi8-u"},
		{"uk", "windows-1251"}, {"tr", "iso-8859-9"}, {"he", "ibm862"}, {"he", "windows-1255"}, {"ar", "windows-1256"},
		{"vi", "windows-1258"},
		{"ca", "ibm850"}, {"da", "iso-8859-1"}, {"el", "iso-8859-7"}, {"el", "windows-1253"}, {"fi", "ibm850"},
		{"hr", "iso-8859-2"},
		{"lt", "iso-8859-13"}, {"lt", "windows-1257"}, {"lv", "iso-8859-13"}, {"lv", "windows-1257"},
		{"nb", "iso-8859-1"}, {"sl", "ibm852"}, {"sr", "iso-8859-5"},
		{"sr", "windows-1251"},
		{"bg", "windows-1251"}, {"bg", "ibm866"}, {"et", "iso-8859-15"}, {"et", "windows-1257"}, {"cs", "ibm852"},
		{"cs", "windows-1250"}, {"hu", "iso-8859-2"}, {"hu", "ibm852"}, {"pt-PT", "ibm850"},
		{"ro", "ibm852"}, {"ro", "iso-8859-2"}, {"ro", "iso-8859-16"}, {"ro", "windows-1250"}, {"sk", "ibm852"},
		{"sk", "windows-1250"},
		{"sv", "ibm850"}, {"th", "windows-874"}, {"ja", "shift_jis"}, {"ja", "euc-jp"}, {"zh-Hans", "gbk"},
		{"zh-Hant", "big5"}, {"ko", "euc-kr"},
	} {
		t.Run(tt.tag+"-"+tt.charset, func(t *testing.T) {
			l := newLocale(t, tt.tag, tt.charset)
			for _, m := range catalog.Messages {
				if !m.ID.InReply() {
					continue // for administrators, always in UTF-8
				}
				args := make([]string, len(m.Placeholders))
				for i := range args {
					args[i] = "5"
				}
				if text := l.Text(m.ID, args...); text == l.lang.Text(m.ID, args...) && !isASCII(text) {
					t.Errorf("%s is not in the charset: %q", m.ID, text)
				}
			}
		})
	}
}

func TestEncode(t *testing.T) {
	for _, tt := range []struct{ tag, charset, text, want string }{
		{"fr", "iso-8859-15", "L’été", "L'\xe9t\xe9"},
		{"fr", "windows-1252", "L’été", "L\x92\xe9t\xe9"}, // all characters in the charset
		{"he", "ibm862", "ב־USER", "\x81-USER"},
		{"vi", "windows-1258", "Đã đặt", "\xd0a\xde \xf0\xe3\xf2t"},
		{"ro", "iso-8859-16", "Ștergeți", "\xaaterge\xfei"}, // all characters in the charset
		{"ro", "windows-1250", "Ștergeți", "\xaaterge\xfei"},
		{"fr", "iso-8859-15", "日本’", "日本’"}, // all of it in UTF-8
		{"fr", "utf-8", "L’été", "L’été"},
		{"en", "ibm850", "Login’", "Login'"},
	} {
		if got := newLocale(t, tt.tag, tt.charset).Encode(tt.text); got != tt.want {
			t.Errorf("%s, %s: %q, want %q", tt.text, tt.charset, got, tt.want)
		}
	}
}
