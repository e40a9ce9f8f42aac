package i18n_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/locales"
)

func TestCatalogsAreFormatted(t *testing.T) {
	formatted, err := i18n.Format(locales.FS())
	must.OK(t, err)
	for name := range formatted {
		t.Errorf("%s is not formatted: run go run ./cmd/babelftp languages --format ./locales", name)
	}
}

func TestFormat(t *testing.T) {
	const begin, end = "{\n  \"language\": \"is\",\n  \"messages\": [\n", "\n  ]\n}\n"
	const goodbye = "    {\n      \"id\": \"goodbye\",\n      \"translation\": " +
		"\"Bless.\"\n    }"
	tests := []struct{ name, messages, want string }{
		{"one", text("goodbye", "Bless."), goodbye},
		{"order-of-english", text("ok", "Já <b> & nei.") + "," + text("goodbye", "Bless."),
			goodbye +
				",\n    {\n      \"id\": \"ok\",\n      \"translation\": \"Já <b> & " +
				"nei.\"\n    }"},
		{"unknown-message-stays", text("good-bye", "Bless.") + "," + text("goodbye", "Bless."),
			goodbye + ",\n    {\n      \"id\": \"good-bye\",\n      \"translation\": \"Bless.\"\n    }"},
		{"twice-stays", text("goodbye", "Bless.") + "," + text("goodbye", "Bless."), goodbye + ",\n" + goodbye},
		{"english-has-changed", `{"id": "goodbye", "message": "Bye.", "translation": "Bless."}`,
			strings.TrimSuffix(goodbye, "\n    }") + ",\n      \"fuzzy\": true\n    }"},
		{"english-has-changed-without-a-translation", `{"id": "goodbye", "message": "Bye.", "translation": ""}`,
			strings.Replace(goodbye, "Bless.", "", 1)},
		{"comment-of-english-goes",
			`{"id": "goodbye", "message": "Goodbye.", "translation": "Bless.", "translatorComment": "221"}`, goodbye},
		{"what-tools-add",
			`{"id": ["goodbye"], "message": {"msg": "Goodbye."}, "translation": {"msg": "Bless."}, "meaning": "m", "key": "k", "comment": "c", "translatorComment": "t", "position": "p", "fuzzy": true}`,
			strings.TrimSuffix(goodbye, "\n    }") +
				",\n      \"translatorComment\": \"t\",\n      \"comment\": \"c\",\n      \"key\": \"k\",\n      " +
				"\"meaning\": \"m\",\n      \"fuzzy\": true,\n      \"position\": \"p\"\n    }"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := fstest.MapFS{"is/messages.gotext.json": catalogFile("is", test.messages)}
			for range 2 { // formatting is idempotent
				formatted, err := i18n.Format(dir)
				must.OK(t, err)
				for name, data := range formatted {
					dir[name] = &fstest.MapFile{Data: data}
				}
			}
			if got := string(dir["is/messages.gotext.json"].Data); got != begin+test.want+end {
				t.Errorf("got\n%s\nwant\n%s", got, begin+test.want+end)
			}
		})
	}
}

func TestFormatPluralForms(t *testing.T) {
	tests := []struct{ name, tag, cases, want string }{
		{"numbers-first", "is", `"other": "{Seconds}", "one": {"msg": "1"}, "=2": "2", "=10": "10"`,
			"=2 2, =10 10, one 1, other {Seconds}"},
		{"empty", "is", `"one": "", "other": "{Seconds}"`, "other {Seconds}"},
		{"other-by-position", "fr", `"one": "1", "many": "{Seconds}", "other": ""`, "one 1, other {Seconds}"},
		{"own-many", "fr", `"one": "1", "many": "de {Seconds}", "other": "{Seconds}"`,
			"one 1, many de {Seconds}, other {Seconds}"},
		{"without-other", "pl", `"one": "1", "few": "{Seconds} f", "many": "{Seconds} m"`,
			"one 1, few {Seconds} f, many {Seconds} m, other {Seconds} m"},
		{"many-of-hebrew", "he", `"one": "1", "two": "2", "many": "{Seconds}", "other": ""`,
			"one 1, two 2, other {Seconds}"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			formatted, err := i18n.Format(fstest.MapFS{test.tag + "/messages.gotext.json": catalogFile(test.tag,
				`{"id": "idle-timeout", "translation": {"select": {"feature": "plural", "arg": "Seconds", "cases": {`+
					test.cases+`}}}}`)})
			must.OK(t, err)
			_, cases, _ := strings.Cut(string(formatted[test.tag+"/messages.gotext.json"]), `"cases": {`)
			cases, _, _ = strings.Cut(cases, "\n          }\n")
			got := strings.Join(
				strings.Fields(
					strings.NewReplacer(`"msg": `, "", `": {`, "", "},", ",", "}\n", "\n", `"`, "").Replace(
						cases)), " ")
			if got = strings.TrimSuffix(strings.ReplaceAll(got, " ,", ","), " }"); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// A file that cannot be decoded completely is not rewritten, because parts of it would be lost.
func TestFormatRefuses(t *testing.T) {
	for name, dir := range map[string]fstest.MapFS{
		"wrong-field": {"is/messages.gotext.json": catalogFile("is", `{"id": "goodbye", "translaton": "Bless."}`)},
		"not-json":    {"is/messages.gotext.json": {Data: []byte("{")}},
		"no-tag":      {"íslenska/messages.gotext.json": catalogFile("is", "")},
		"nothing":     {},
	} {
		t.Run(name, func(t *testing.T) {
			if formatted, err := i18n.Format(dir); err == nil || len(formatted) > 0 {
				t.Errorf("got %q, %v", formatted, err)
			}
		})
	}
}
