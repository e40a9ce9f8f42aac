package i18n_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/locales"
)

// A catalogue is read here without the package's own reader, so that a text
// which it would pass over shows.
type catalogue struct {
	Language string
	Messages []message
}

type message struct {
	ID                i18n.ID
	Message           string
	Translation       translation
	TranslatorComment string
	Placeholders      []struct {
		ID, String, Type, UnderlyingType, Expr string
		ArgNum                                 int
	}
}

// A translation is its texts by plural form, by "" where there are no forms.
type translation map[string]string

func (tr *translation) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		var text string
		err := json.Unmarshal(data, &text)
		*tr = translation{"": text}
		return err
	}
	var t struct {
		Select struct{ Cases map[string]string }
	}
	err := json.Unmarshal(data, &t)
	*tr = t.Select.Cases
	return err
}

func readCatalogue(t *testing.T, tag string) catalogue {
	t.Helper()
	data, err := fs.ReadFile(locales.FS(), tag+"/messages.gotext.json")
	if err != nil {
		t.Fatal(err)
	}
	var c catalogue
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// eachText calls f for every text of a language, plural forms included.
func eachText(t *testing.T, tag string, f func(id i18n.ID, text string)) {
	t.Helper()
	for _, m := range readCatalogue(t, tag).Messages {
		for _, form := range slices.Sorted(maps.Keys(m.Translation)) {
			f(m.ID, m.Translation[form])
		}
	}
}

// sameAsEnglish are the translations that are rightly the English text.
var sameAsEnglish = map[string][]i18n.ID{
	"de":    {i18n.Syntax, i18n.PathStatusIntro, "page-server", "page-version", "page-bucket"},
	"es":    {"page-bucket"},
	"fr":    {"page-version", "page-configuration", "page-sessions", "page-actions", "page-bucket", "page-quota"},
	"id":    {"page-server", "page-bucket"},
	"it":    {"page-server", "page-replica", "page-tenant", "page-bucket", "page-quota"},
	"nl":    {"page-server", "page-replica", "page-tenant", "page-tenants", "page-bucket"},
	"pl":    {"page-limit"},
	"pt-BR": {"page-download", "page-bucket"},
	"tr":    {"page-bucket"},
	"vi":    {"page-bucket"},
}

// TestCataloguesPassLint shows that Lint finds nothing wrong with the catalogues that are built in.
func TestCataloguesPassLint(t *testing.T) {
	report, err := i18n.Lint(locales.FS())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range report.Diagnostics {
		same := strings.HasPrefix(d.Problem, "is the English text") && slices.Contains(sameAsEnglish[path.Dir(d.File)], d.Message)
		if !same {
			t.Error(d)
		}
	}
	if len(report.Languages) != len(locales.Tags()) {
		t.Errorf("%d languages, want %d", len(report.Languages), len(locales.Tags()))
	}
}

func TestCataloguesAreComplete(t *testing.T) {
	english := readCatalogue(t, "en")
	for _, m := range english.Messages {
		if m.TranslatorComment == "" {
			t.Errorf("en: %s has no comment for translators", m.ID)
		}
		if text, ok := m.Translation[""]; ok && text != m.Message {
			t.Errorf("en: %s has the source %q and the text %q", m.ID, m.Message, text)
		}
	}
	for _, tag := range locales.Tags()[1:] {
		t.Run(tag, func(t *testing.T) {
			c := readCatalogue(t, tag)
			if len(c.Messages) != len(english.Messages) {
				t.Fatalf("%d messages, want the %d of English", len(c.Messages), len(english.Messages))
			}
			for i, m := range c.Messages {
				source := english.Messages[i]
				if m.ID != source.ID {
					t.Fatalf("message %d is %s, want %s", i+1, m.ID, source.ID)
				}
				if m.Message == "" {
					t.Errorf("%s does not show what it translates", m.ID)
				}
				if !reflect.DeepEqual(m.Placeholders, source.Placeholders) {
					t.Errorf("%s has the placeholders %v, English has %v", m.ID, m.Placeholders, source.Placeholders)
				}
				if len(m.Translation) == 0 {
					t.Errorf("%s has no text", m.ID)
				}
			}
		})
	}
}

// Every message shows each of its arguments, in every language.
func TestCataloguesShowArguments(t *testing.T) {
	bundle := load(t)
	for _, tag := range bundle.Tags() {
		l := bundle.Localizer(tag)
		for _, m := range readCatalogue(t, "en").Messages {
			args := make([]string, len(m.Placeholders))
			for i := range args {
				args[i] = fmt.Sprint(4071 + i)
			}
			text := l.Text(m.ID, args...)
			for _, arg := range args {
				if strings.Count(text, arg) != 1 {
					t.Errorf("%v: %s shows argument %s other than once: %q", tag, m.ID, arg, text)
				}
			}
			if strings.ContainsAny(text, "%{}") {
				t.Errorf("%v: %s is not rendered: %q", tag, m.ID, text)
			}
		}
	}
}

// A text ends as the English one does, in the language's own punctuation.
func TestCataloguesEndAlike(t *testing.T) {
	ends := strings.NewReplacer("。", ".", "।", ".", "：", ":")
	punctuation := func(text string) string {
		text = ends.Replace(text)
		switch last := text[len(text)-1:]; last {
		case ".", ":":
			return last
		}
		return ""
	}
	english := make(map[i18n.ID]string)
	for _, m := range readCatalogue(t, "en").Messages {
		english[m.ID] = punctuation(m.Message)
	}
	for _, tag := range locales.Tags() {
		eachText(t, tag, func(id i18n.ID, text string) {
			if got := punctuation(text); got != english[id] {
				t.Errorf("%s: %s ends in %q, in English in %q: %q", tag, id, got, english[id], text)
			}
		})
	}
}

func TestTypography(t *testing.T) {
	tests := []struct {
		tag, rule string
		wrong     *regexp.Regexp
	}{
		{"fr", "U+00A0 stands before ; : ! ?", regexp.MustCompile("[^\u00a0][;:!?]")},
		{"fr", "the apostrophe is U+2019", regexp.MustCompile("'")},
		{"fr", "no other narrow or fixed spaces", regexp.MustCompile("[\u2000-\u200a\u202f]")},
		{"es", "? and ! open with ¿ and ¡", regexp.MustCompile(`^[^¿]*\?|^[^¡]*!`)},
		{"ja", "punctuation is full-width", regexp.MustCompile(`[,.;:!?()]`)},
		{"ja", "no space around Latin letters", regexp.MustCompile(`[\p{Han}\p{Hiragana}\p{Katakana}] | [\p{Han}\p{Hiragana}\p{Katakana}]`)},
		{"zh-Hans", "punctuation is full-width", regexp.MustCompile(`[,.;:!?()]`)},
		{"zh-Hans", "a space around Latin letters", regexp.MustCompile(`\p{Han}[A-Za-z{]|[A-Za-z}]\p{Han}`)},
		{"ar", "comma, semicolon and question mark are Arabic", regexp.MustCompile(`[,;?]`)},
		{"zh-Hant", "punctuation is full-width", regexp.MustCompile(`[,.;:!?()]`)},
		{"zh-Hant", "characters are traditional", regexp.MustCompile(`[连传档录请数据发关开务态]`)},
		{"ru", "ё is written", regexp.MustCompile(`(?i)учетн|начнется|удален\b|идет|остается`)},
	}
	for _, test := range tests {
		eachText(t, test.tag, func(id i18n.ID, text string) {
			if found := test.wrong.FindString(text); found != "" {
				t.Errorf("%s: %s breaks the rule %q: %q in %q", test.tag, id, test.rule, found, text)
			}
		})
	}
}

// One language has one word for one thing.
func TestTerms(t *testing.T) {
	tests := []struct{ tag, term, others string }{
		{"fr", "répertoire, fichier, connexion de données, de contrôle", `dossier|canal|connexion (TCP|des données)|commande de contrôle|login`},
		{"de", "Verzeichnis, Datenverbindung, Steuerverbindung, Befehl", `Ordner|Datenkanal|Kontroll|Kommando|Transfer|Kennwort`},
		{"es", "directorio, archivo, contraseña", `carpeta|fichero|orden|clave|canal`},
		{"pt-BR", "diretório, arquivo, conexão, senha", `pasta|ficheiro|directório|ligação|palavra-passe|canal`},
		{"ja", "ディレクトリ, データ接続, サーバー, パラメーター", `フォルダ|ディレクトリー|データコネクション|サーバ[^ー]|パラメータ[^ー]|データチャ`},
		{"zh-Hans", "目录, 数据连接, 控制连接, 登录, 账户", `文件夹|数据通道|控制通道|登陆|帐户|帐号|账号|[連傳檔錄請數據]`},
		{"ar", "دليل, اتصال البيانات, اتصال التحكم, أمر", `مجلد|قناة|فهرس|إيعاز`},
		{"ru", "каталог, соединение данных, команда", `папк|директори|канал|логин`},
	}
	for _, test := range tests {
		wrong := regexp.MustCompile(`(?i)` + test.others)
		eachText(t, test.tag, func(id i18n.ID, text string) {
			if found := wrong.FindString(text); found != "" {
				t.Errorf("%s: %s says %q; the terms are %s", test.tag, id, found, test.term)
			}
		})
	}
}

// In a language with another script, only names stay in Latin letters.
func TestNoEnglishLeftOver(t *testing.T) {
	scripts := map[string][]*unicode.RangeTable{
		"ja":      {unicode.Han, unicode.Hiragana, unicode.Katakana},
		"zh-Hans": {unicode.Han},
		"ar":      {unicode.Arabic},
		"ru":      {unicode.Cyrillic},
		"uk":      {unicode.Cyrillic},
		"he":      {unicode.Hebrew},
		"hi":      {unicode.Devanagari},
		"ko":      {unicode.Hangul},
		"zh-Hant": {unicode.Han},
	}
	placeholder := regexp.MustCompile(`\{\w+\}`)
	latin := regexp.MustCompile(`[A-Za-z]+`)
	for tag, script := range scripts {
		eachText(t, tag, func(id i18n.ID, text string) {
			text = placeholder.ReplaceAllString(text, "")
			if !strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, script...) }) {
				t.Errorf("%s: %s is in another script: %q", tag, id, text)
			}
			for _, word := range latin.FindAllString(text, -1) {
				if word != strings.ToUpper(word) && !slices.Contains([]string{"babelftp", "IPv", "JavaScript"}, word) {
					t.Errorf("%s: %s has the word %q: %q", tag, id, word, text)
				}
			}
		})
	}
}
