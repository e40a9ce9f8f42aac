package main

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/doctor"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// The exit code tells scripts whether there is a problem, and the output tells people how to fix it.
func TestDoctorLog(t *testing.T) {
	const fine = "level=INFO msg=serving version=1\n"
	const missed = `level=INFO msg="no data connection came" session=1 remote=192.0.2.7:1 user=scanner ` +
		`data_address=:30012 err="the client did not connect to port 30012 within 9s"` + "\n"
	file := filepath.Join(t.TempDir(), "log")
	must.WriteFile(t, file, fine+missed+missed)
	dir := servicetest.SocketDir(t)
	socket := filepath.Join(dir, "admin.sock")
	l, err := admin.Listen(t.Context(), socket)
	must.OK(t, err)
	defer l.Close()
	discard := slog.New(slog.DiscardHandler)
	tail := admin.NewLogTail()
	slog.New(slog.NewTextHandler(tail, nil)).Info(
		"no data connection came", "session", 1, "remote", "192.0.2.7:1", "user", "scanner", "data_address", ":30012",
		"err", "the client did not connect to port 30012 within 9s")
	bundle, err := i18n.Load()
	must.OK(t, err)
	handler := admin.NewHandler(admin.Options{Tail: tail, Log: discard, Bundle: func() *i18n.Bundle { return bundle }})
	go serveSocket(l, handler)
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		t.Setenv(name, "")
	}
	for _, test := range []struct {
		args, stdin string
		code        int
		want        []string
	}{
		{"--log -", fine, 0, []string{"No problems found.\n"}},
		{"--log -", "hello\n", 1, []string{"no line of a babelftp log"}},
		{"--log " + file, "", 1, []string{
			"! scanner (192.0.2.7): 192.0.2.7 cannot reach the passive ports 30012. (2 ×)\n",
			"    > level=INFO msg=\"no data connection came\"", "    = Open these ports in firewalls", "    @ babelftp.yaml: passive.ports\n"}},
		{"--json --log " + file, "", 1, []string{`"finding": "ports-unreachable"`, `"client": "192.0.2.7"`, `"times": 2`}},
		{"--log " + file + ".gone", "", 1, []string{"no such file"}},
		{"", "", 2, []string{"--log"}},
		{"--log - --address 192.0.2.7", "", 2, []string{"expected one URL"}},
		{"--address 192.0.2.7 --socket " + socket, "", 1, []string{"! scanner (192.0.2.7): 192.0.2.7 cannot reach"}},
		{"--address 192.0.2.0/24 --json --socket " + socket, "", 1, []string{`"finding": "ports-unreachable"`}},
		{"--address 198.51.100.1 --since 5m --socket " + socket, "", 1, []string{"no line about 198.51.100.1 in the last 5m0s"}},
		{"--address alice --socket " + socket, "", 1, []string{"invalid address"}},
		{"--address 192.0.2.7 --ca-file x --socket " + socket, "", 2, []string{"--ca-file requires --url"}},
	} {
		var out bytes.Buffer
		code := run(t.Context(), append([]string{"doctor"}, strings.Fields(test.args)...), strings.NewReader(test.stdin),
			&out, &out)
		if code != test.code {
			t.Errorf("%q: exit code %d, want %d", test.args, code, test.code)
		}
		for _, want := range test.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q: output lacks %q: %s", test.args, want, out.String())
			}
		}
	}
	// the server translates the findings, but the command renders them in its own language
	t.Setenv("LANG", "fr_FR.UTF-8")
	var out bytes.Buffer
	_ = run(t.Context(), []string{"doctor", "--address", "192.0.2.7", "--socket", socket}, nil, &out, &out)
	if !strings.Contains(out.String(), "scanner (192.0.2.7)\u00a0: 192.0.2.7 ne peut pas joindre") {
		t.Errorf("French output: %s", &out)
	}
	for _, test := range []struct{ all, messages, lang, want string }{
		{"", "", "fr_CA.UTF-8", "Aucun problème n’a été trouvé.\n"},
		{"", "pt_BR", "fr_FR.UTF-8", "Nenhum problema encontrado.\n"},
		{"zh_TW.UTF-8", "pt_BR", "", "未發現問題。\n"},
		{"C.UTF-8", "", "de_DE.UTF-8", "No problems found.\n"},
	} {
		t.Setenv("LC_ALL", test.all)
		t.Setenv("LC_MESSAGES", test.messages)
		t.Setenv("LANG", test.lang)
		var out bytes.Buffer
		if run(t.Context(), []string{"doctor", "--log", "-"}, strings.NewReader(fine), &out, &out); out.String() != test.want {
			t.Errorf("%+v: %q", test, out.String())
		}
	}
}

// Each kind of finding shows the texts of the catalog as they are, and its arguments escaped, in every
// language. In right-to-left text, an argument keeps its own direction.
func TestDoctorInEveryLanguage(t *testing.T) {
	bundle, err := i18n.Load()
	must.OK(t, err)
	asJSON := false
	f := doctorFlags{asJSON: &asJSON}
	for _, tag := range bundle.Tags() {
		texts := bundle.Localizer(tag)
		for _, kind := range doctor.Kinds() {
			found := []doctor.Finding{{ID: kind.ID, Args: []string{"30012-30015, 30040\u202e", "--insecure", "x"}, Client: "192.0.2.7"}}
			doctor.Render(found, f.render(texts))
			var out bytes.Buffer
			writeFinding(&out, found[0], texts)
			shown := out.String()
			if strings.Contains(shown, `\u{200`) || strings.Contains(shown, "\u202e") {
				t.Errorf("%s, %s: %q", tag, kind.ID, shown)
			}
			isolated := strings.Contains(shown, "\u206830012-30015, 30040\\u{202E}\u2069")
			if strings.Contains(shown, "30012") && isolated != texts.RightToLeft() {
				t.Errorf("%s, %s: the ports are isolated: %t: %q", tag, kind.ID, isolated, shown)
			}
			if strings.Contains(shown, "--insecure") && strings.Contains(shown, "\u2068--insecure\u2069") != texts.RightToLeft() {
				t.Errorf("%s, %s: %q", tag, kind.ID, shown)
			}
		}
	}
}

// A missing password is reported in the language of the reader, with the flag and the variable that supply it.
func TestDoctorWithoutPassword(t *testing.T) {
	for _, test := range []struct{ lang, flags, stdin, want string }{
		{"C.UTF-8", "", "", "babelftp: Password required for alice. (--password-file, BABELFTP_DOCTOR_PASSWORD)\n"},
		{"de_DE.UTF-8", "", "\n", "Passwort"},
		{"ja_JP.UTF-8", " --password-file /dev/null", "", "aliceのパスワード"},
		{"fa_IR.UTF-8", "", "", "\u2068alice\u2069"},
	} {
		t.Setenv("LC_ALL", test.lang)
		t.Setenv(doctorPassword, "")
		var out bytes.Buffer
		args := strings.Fields("doctor ftp://alice@127.0.0.1" + test.flags)
		if code := run(t.Context(), args, strings.NewReader(test.stdin), &out, &out); code != 1 {
			t.Errorf("%+v: exit code %d", test, code)
		}
		if got := out.String(); !strings.Contains(got, test.want) || strings.Contains(got, "password is empty") {
			t.Errorf("%+v: %q", test, got)
		}
	}
}

// The prompt for the password is in the language of the reader.
func TestDoctorPrompt(t *testing.T) {
	bundle, err := i18n.Load()
	must.OK(t, err)
	for tag, want := range map[string]string{
		"en": "Password required for alice: ", "fa": "\u2068alice\u2069", "ja": "alice",
	} {
		texts := bundle.Localizer(language.MustParse(tag))
		if got := texts.Prompt(i18n.PasswordRequired, texts.Isolate("alice")); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", tag, got, want)
		}
	}
}
