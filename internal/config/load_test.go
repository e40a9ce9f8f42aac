package config

import (
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A Loader returns the same tenants as long as they are unchanged. It rejects the same configurations as a new
// process, with the same positions.
func TestLoader(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "babelftp.yaml")
	write := func(name, text string) {
		t.Helper()
		writeFile(t, filepath.Join(dir, name), text)
	}
	const text = `
idle_timeout: 5m
ca_file: server.crt
auth: {hook: {url: "https://auth.example"}}
tenants:
  acme:
    bucket: acme-data
    prefix: inbox
    resume: keep
    users:
      alice: {password_hash_file: alice.hash}
  umbrella:
    bucket: umbrella-data
    users_file: users
    ca_file: ca.crt
    auth: {hook: {url: "https://auth.umbrella.example"}}
`
	write("babelftp.yaml", text)
	write("alice.hash", hash)
	write("ca.crt", must.NewAuthority(t, "one").Certificate)
	write("server.crt", must.NewAuthority(t, "one").Certificate)
	const catalog = `{"language": "fr", "messages": [{"id": "goodbye", "message": "Goodbye.", "translation": "Salut."}]}`
	write("texts/fr/messages.gotext.json", catalog)
	write("users/a.yaml", `users: {bob: {password_hash: "`+hash+`"}}`)
	l := NewLoader(file, nil)
	load := func() *Config {
		t.Helper()
		cfg, err := l.Load()
		must.OK(t, err)
		return cfg
	}
	before := load()
	if before.Tenants["acme"].Prefix != "inbox/" || l.Changed() ||
		!slices.Contains(l.Files(), filepath.Join(dir, "users")) {
		t.Errorf("got prefix %s, changed %v, files %q", before.Tenants["acme"].Prefix, l.Changed(), l.Files())
	}
	for _, tc := range []struct {
		name, file, text string
		fresh            []string // tenants that are replaced
		catalogs         bool     // the catalogs are replaced too
	}{
		{"nothing", "babelftp.yaml", text, nil, false},
		{"server", "babelftp.yaml", strings.Replace(text, "5m", "6m", 1), nil, false},
		{"tenant", "babelftp.yaml", strings.Replace(text, "inbox", "outbox", 1), []string{"acme"}, false},
		{"again", "babelftp.yaml", text, []string{"acme"}, false},
		{"user", "users/b.yaml", `users: {carol: {password_hash: "` + hash + `"}}`, []string{"umbrella"}, false},
		{"secret", "alice.hash", strings.Replace(hash, "t=2", "t=3", 1), []string{"acme"}, false},
		{"authorities", "ca.crt", must.NewAuthority(t, "two").Certificate, []string{"umbrella"}, false},
		{"authorities-of-the-server", "server.crt", must.NewAuthority(t, "two").Certificate, nil, false},
		{"auth-of-the-server", "babelftp.yaml", strings.Replace(text, "//auth.example", "//login.example", 1), nil, false},
		{"catalogs", "babelftp.yaml", "locales_dir: texts\n" + text, nil, true},
		{"catalog", "texts/fr/messages.gotext.json", strings.Replace(catalog, "Salut", "Bonsoir", 1), nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			write(tc.file, tc.text)
			if tc.name != "nothing" && !l.Changed() {
				t.Error("the change is not detected")
			}
			after := load()
			for name := range after.Tenants {
				if fresh := slices.Contains(tc.fresh, name); (after.Tenants[name] == before.Tenants[name]) == fresh {
					t.Errorf("the tenant %s was replaced: %v", name, !fresh)
				}
			}
			if fresh := strings.HasSuffix(tc.name, "-of-the-server") || tc.name == "catalogs"; (after.ServerAuth() ==
				before.ServerAuth()) == fresh {
				t.Errorf("the auth of the server was replaced: %v", !fresh)
			}
			first, err := before.Bundle()
			must.OK(t, err)
			second, err := after.Bundle()
			if err != nil || (first != second) != tc.catalogs {
				t.Errorf("the catalogs were replaced: %v, %v", first != second, err)
			}
			if same := after.Hash() == before.Hash(); same != (tc.name == "nothing") {
				t.Errorf("the hash did not change: %v", same)
			}
			if after.Tenants["acme"].Prefix != "inbox/" && after.Tenants["acme"].Prefix != "outbox/" {
				t.Errorf("got prefix %q", after.Tenants["acme"].Prefix)
			}
			before = after
		})
	}

	write("babelftp.yaml", strings.Replace(text, "idle_timeout: 5m", "abandoned_uploads: 0s", 1))
	if _, err := l.Load(); err == nil || !strings.HasPrefix(err.Error(), file+":9:13: tenants.acme.resume: requires ") {
		t.Errorf("got %v", err)
	}
	write("babelftp.yaml", "locales_dir: texts\n"+text)
	if after := load(); after.Tenants["acme"] != before.Tenants["acme"] {
		t.Error("a rejected configuration replaced tenants")
	}
	must.OK(t, os.Remove(file))
	if _, err := l.Load(); err == nil || !strings.HasPrefix(err.Error(), "cannot read the configuration") {
		t.Errorf("got %v", err)
	}
}

// GOGC is lowered while a configuration is loaded, unless the operator has set a lower value or disabled it.
func TestCollectOften(t *testing.T) {
	usual := debug.SetGCPercent(100)
	defer debug.SetGCPercent(usual)
	for before, want := range map[int]int{100: gcPercent, 10: 10, -1: -1} {
		debug.SetGCPercent(before)
		restore := collectOften()
		if got := debug.SetGCPercent(want); got != want {
			t.Errorf("GOGC is %d while a configuration is loaded, want %d", got, want)
		}
		restore()
		if got := debug.SetGCPercent(before); got != before {
			t.Errorf("GOGC is %d after that, want %d", got, before)
		}
	}
}

// A tenant with all keys compares equal to itself.
func TestLoaderKeepsEachKindOfValue(t *testing.T) {
	l := NewLoader(filepath.Join("testdata", "full.yaml"), nil)
	before, err := l.Load()
	must.OK(t, err)
	after, err := l.Load()
	if err != nil || !maps.Equal(before.Tenants, after.Tenants) {
		t.Errorf("the tenants changed, %v", err)
	}
}

// Invalid message texts are reported with their position, but do not make the configuration invalid.
func TestRefusedTexts(t *testing.T) {
	dir := t.TempDir()
	file, catalog := filepath.Join(dir, "babelftp.yaml"), filepath.Join(dir, "texts", "is", "messages.gotext.json")
	const wrong = `{"language": "is", "messages": [
{"id": "ok", "message": "OK.", "translation": "{User}"}]}`
	writeFile(t, catalog, wrong)
	const text = `
idle_timeout: 5m
tenants:
  acme:
    bucket: acme-data
    users:
      alice: {password_hash: "` + hash + `"}
  umbrella:
    bucket: umbrella-data
    messages:
      goodbye: {fr: "Salut.", is: "Bless."}
    users:
      bob: {password_hash: "` + hash + `"}
`
	broken := strings.Replace(text, `fr: "Salut."`, `fr: "Salut {User}."`, 1)
	const (
		overlay    = "locales_dir: texts"
		unknown    = "the placeholder {User} is unknown; this message has none"
		notOffered = "tenants.umbrella.messages.goodbye.is: the language is not offered; write one of en, "
	)
	l := NewLoader(file, nil)
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"catalog", overlay + text, []string{catalog + `:2:1: locales_dir: message "ok": ` + unknown}},
		{"tenant", overlay + broken, []string{
			file + ":11:21: tenants.umbrella.messages.goodbye.fr: " + unknown,
			catalog + `:2:1: locales_dir: message "ok": ` + unknown,
		}},
		{"moved", overlay + "\n\n" + broken, []string{
			file + ":13:21: tenants.umbrella.messages.goodbye.fr: " + unknown,
			catalog + `:2:1: locales_dir: message "ok": ` + unknown,
		}},
		{"mended", overlay + text, []string{catalog + `:2:1: locales_dir: message "ok": ` + unknown}},
		{"language-removed", text, []string{file + ":11:35: " + notOffered}},
		{"language-still-removed", strings.Replace(text, "5m", "6m", 1),
			[]string{file + ":11:35: " + notOffered}},
		{"none", strings.Replace(text, `, is: "Bless."`, "", 1), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			writeFile(t, file, tc.text)
			cfg, err := l.Load()
			must.OK(t, err)
			refused := cfg.RefusedTexts()
			if len(refused) != len(tc.want) {
				t.Fatalf("got %v, want %q", refused, tc.want)
			}
			for i, want := range tc.want {
				if got := refused[i].Error(); !strings.HasPrefix(got, want) {
					t.Errorf("got %s, want %s", got, want)
				}
			}
		})
	}
}

// A dash instead of a file means standard output, and not a file next to the configuration.
func TestAuditToStandardOutput(t *testing.T) {
	cfg, err := load(t, `audit: {file: "-"}`+minimal, nil)
	if err != nil || !cfg.Audit.Stdout() {
		t.Errorf("got file %q, %v", cfg.Audit.File, err)
	}
}
