package i18n_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// head is the beginning of a valid language.yaml.
const head = "reviewed: a reader\nreviewed_on: 2026-11-23\n"

// lintWithRules returns the diagnostics of a catalog and its rules, except for missing texts.
func lintWithRules(t *testing.T, tag, rules, messages string) []string {
	t.Helper()
	report, err := i18n.Lint(fstest.MapFS{
		tag + "/messages.gotext.json": catalogFile(tag, messages),
		tag + "/language.yaml":        {Data: []byte(rules)},
	})
	must.OK(t, err)
	var shown []string
	for _, d := range report.Diagnostics {
		if text := d.Error(); !strings.Contains(text, ": warning: lacks ") &&
			!strings.Contains(text, "missing; add its translation") {
			shown = append(shown, strings.TrimPrefix(text, tag+"/"))
		}
	}
	return shown
}

func TestLintRules(t *testing.T) {
	const glossary = head + "glossary:\n"
	tests := []struct{ name, tag, rules, messages, want string }{
		{"term-in-capitals", "fo", glossary + "  directory: {say: [Skjátt, annað]}",
			text("not-a-directory", "Eingin skjátta."), ""},
		{"term-missing", "fo", glossary + "  directory: {say: [skjátt, mappu]}", text("not-a-directory", "Horvin."),
			`messages.gotext.json:1: message "not-a-directory": lacks the glossary form of the term "directory"; use skjátt or mappu`},
		{"command-is-no-term", "fo", glossary + "  user: {say: [brúkar]}", text("user-first", "Fyrst USER."), ""},
		{"placeholder-is-no-term", "fo", glossary + "  user: {say: [brúkar]}", text("password-required", "{User}."),
			""},
		{"exception", "fo", glossary + "  directory: {say: [skjátt], except: [not-a-directory]}",
			text("not-a-directory", "Horvin."), ""},
		{"exception-of-english", "fo", glossary + "  log-in: {say: [innrit]}", text("login-failed", "Skeivt."), ""},
		{"excluded", "fo", glossary + "  directory: {say: [skjátt], not: [mapp]}",
			text("file-deleted", "Mappan er strikað."),
			`messages.gotext.json:1: message "file-deleted": "Mapp" is excluded by the glossary for the term "directory"; use skjátt`},
		{"excluded-word-in-every-script", "el", glossary + `  directory: {say: [κατάλογ], not: ['\bμαπα\b']}`,
			text("renamed", "Η (Μαπα) μετονομάστηκε."),
			`messages.gotext.json:1: message "renamed": "(Μαπα)" is excluded by the glossary for the term "directory"; use κατάλογ`},
		{"excluded-word-within-another", "el", glossary + `  directory: {say: [κατάλογ], not: ['\bμαπα\b']}`,
			text("renamed", "Η μαπαδα μετονομάστηκε."), ""},
		{"term-of-another-thing", "fo", glossary + "  ban: {say: [bann]}", text("page-limit-deny", "Bannað net"),
			`messages.gotext.json:1: message "page-limit-deny": "Bann" is the term "ban", which means something else; use another word`},
		{"term-of-another-thing-to-this-language", "fo", glossary + "  file: {say: [fíl], unlike: [page-path]}",
			text("page-path", "Fílleið"),
			`messages.gotext.json:1: message "page-path": "Fíl" is the term "file", which means something else; use another word`},
		{"term-of-no-such-message", "fo", glossary + "  file: {say: [fíl], unlike: [page-pat]}",
			text("goodbye", "Farvæl."), `language.yaml: message "page-pat": unknown message; remove it`},
		{"log-is-no-log-in", "fo", glossary + "  log: {say: [gerðabók]}",
			text("not-logged-in", "Rita inn við USER og PASS.") + ",\n" + text("page-log-out", "Rita út") + ",\n" +
				text("page-audit", "Eftirlit"),
			`messages.gotext.json:3: message "page-audit": lacks the glossary form of the term "log"; use gerðabók`},
		{"host-in-a-longer-word", "fo", glossary + "  host: {say: [vert]}", text("syntax-hostname", "navn"),
			`messages.gotext.json:1: message "syntax-hostname": lacks the glossary form of the term "host"; use vert`},
		{"plural-form", "fo", glossary + "  time-out: {say: [tíð]}",
			`{"id": "idle-timeout", "translation": {"select": {"feature": "plural", "arg": "Seconds", "cases": {"one": "{Seconds} tíð.", "other": "{Seconds}."}}}}`,
			`messages.gotext.json:1: message "idle-timeout": plural form "other": lacks the glossary form of the term "time-out"; use tíð`},

		{"end-of-a-heading", "fo", head, text("features-intro", "Evni"),
			`messages.gotext.json:1: message "features-intro": does not end in ":" although the English text ends in ":"; correct the end`},
		{"own-end-missing", "th", head + `ends: {".": ""}`, text("goodbye", "ลาก่อน."),
			`messages.gotext.json:1: message "goodbye": ends in punctuation that does not belong there; remove it`},
		{"own-question", "el", head + `ends: {"?": ";"}`, text("page-unban-question", "Άρση αποκλεισμού;"), ""},
		{"unknown-end", "fo", head + `ends: {"!": "."}`, text("goodbye", "Farvæl."),
			`language.yaml: "ends" has "!"; write only . : ? there`},

		{"typography", "fo", head + "typography: [{rule: no ASCII apostrophe, wrong: \"'\"}]",
			text("goodbye", "Far'vel."),
			`messages.gotext.json:1: message "goodbye": breaks the rule "no ASCII apostrophe": "'"`},
		{"typography-of-a-word", "el", head + `typography: [{rule: two accents, wrong: 'ονομα\b'}]`,
			text("goodbye", "Αντίο όνομα ονομα."),
			`messages.gotext.json:1: message "goodbye": breaks the rule "two accents": "ονομα."`},
		{"typography-without-rule", "fo", head + "typography: [{wrong: \"'\"}]", text("goodbye", "Farvæl."),
			`language.yaml: typography rule "": "wrong" is not a regular expression, or "rule" is missing: <nil>`},

		{"script", "el", head, text("page-user", "User name"),
			"messages.gotext.json:1: message \"page-user\": has no letters in the script of the language; translate it\n" +
				`messages.gotext.json:1: message "page-user": has the word "User" in Latin letters; translate it, or add it to "names"` + "\n" +
				`messages.gotext.json:1: message "page-user": has the word "name" in Latin letters; translate it, or add it to "names"`},
		{"no-letters", "el", head, text("page-of", "{Part} / {Whole}"), ""},
		{"names-and-commands", "el", head + "names: [PuTTY]", text("goodbye", "Αντίο PuTTY, babelftp, QUIT."), ""},
		{"english-word", "fo", head, text("session-ended", "Fundurin endaði á server."),
			`messages.gotext.json:1: message "session-ended": has the English word "server"; translate it, or add it to "cognates"`},
		{"cognate", "fo", head + "cognates: [server]", text("session-ended", "Fundurin endaði á Server."), ""},
		{"english-word-on-the-page", "fo", head, text("page-connecting", "Bindur í server."), ""},
		{"english-word-in-english", "en-GB", head, text("session-ended", "Session finished by the server."), ""},
		{"right-english-text", "fo", head + "same_as_english: [page-server]", text("page-server", "Server"), ""},

		{"button-like-cancel", "fo", head,
			text("page-cancel", "Avlýs") + ",\n" + text("page-unban", "Avlýs bann"),
			`messages.gotext.json:2: message "page-unban": starts like "page-cancel", the button next to it; use another verb`},
		{"button-like-cancel-that-is-built-in", "cs", head, text("page-delete", "zrušit nahrávání"),
			`messages.gotext.json:1: message "page-delete": starts like "page-cancel", the button`},
		{"no-such-message", "fo", head + "same_as_english: [page-sever]", text("goodbye", "Farvæl."),
			`language.yaml: message "page-sever": unknown message; remove it`},
		{"no-such-term", "fo", glossary + "  folder: {say: [x]}", text("goodbye", "Farvæl."),
			`language.yaml: term "folder": unknown term; the terms are abort, ban, bucket, client, command,`},
		{"term-without-form", "fo", glossary + "  directory: {not: [x]}", text("goodbye", "Farvæl."),
			`language.yaml: term "directory": missing "say"; add the translation of the term`},
		{"wrong-form", "fo", glossary + "  directory: {say: ['(']}", text("goodbye", "Farvæl."),
			`language.yaml: term "directory": error parsing regexp:`},
		{"unknown-key", "fo", head + "glosary: {}", text("goodbye", "Farvæl."),
			`language.yaml: invalid language.yaml: yaml: construct errors: line 3: field glosary not found in type i18n.languageFile`},
		{"no-yaml", "fo", "reviewed: [", text("goodbye", "Farvæl."), "language.yaml: invalid language.yaml: "},
		{"no-reviewer", "fo", "reviewed_on: 2026-11-23", text("goodbye", "Farvæl."),
			`language.yaml: missing "reviewed"; write who reviewed the texts, or how`},
		{"no-day", "fo", "reviewed: x\nreviewed_on: May", text("goodbye", "Farvæl."),
			`language.yaml: "reviewed_on" is "May"; write the day of the review, such as 2026-11-23`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := strings.Join(lintWithRules(t, test.tag, test.rules, test.messages), "\n")
			if test.want == "" && got != "" || !strings.HasPrefix(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// Every language must have all terms of the English glossary.
func TestLintWantsEachTerm(t *testing.T) {
	report, err := i18n.Lint(fstest.MapFS{
		"fo/messages.gotext.json": catalogFile("fo", ""),
		"fo/language.yaml":        {Data: []byte(head + "glossary: {file: {say: [fíl]}}")},
	})
	must.OK(t, err)
	var missing []string
	for _, d := range report.Diagnostics {
		if term, ok := strings.CutSuffix(d.Problem, ": missing; add its translation"); ok &&
			d.File == "fo/language.yaml" && !d.Warning {
			missing = append(missing, strings.TrimPrefix(term, "term "))
		}
	}
	if len(missing) < 15 || !slices.Contains(missing, `"directory"`) || slices.Contains(missing, `"file"`) {
		t.Errorf("missing: %v", missing)
	}
}
