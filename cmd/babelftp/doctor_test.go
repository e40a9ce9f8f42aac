package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The exit code tells a script whether something is wrong, and a person reads what to do.
func TestDoctorLog(t *testing.T) {
	const fine = "level=INFO msg=serving version=1\n"
	const missed = `level=INFO msg="no data connection came" session=1 remote=192.0.2.7:1 user=scanner ` +
		`data_address=:30012 err="the client did not connect to port 30012 within 9s"` + "\n"
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte(fine+missed+missed), 0o600); err != nil {
		t.Fatal(err)
	}
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
			"    > level=INFO msg=\"no data connection came\"", "    = Start the server, and open its ports"}},
		{"--json --log " + file, "", 1, []string{`"finding": "ports-unreachable"`, `"client": "192.0.2.7"`, `"times": 2`}},
		{"--log " + file + ".gone", "", 1, []string{"no such file"}},
		{"", "", 2, []string{"--log"}},
	} {
		var out bytes.Buffer
		code := run(t.Context(), append([]string{"doctor"}, strings.Fields(test.args)...), strings.NewReader(test.stdin),
			&out, &out)
		if code != test.code {
			t.Errorf("%q: exit code %d, want %d", test.args, code, test.code)
		}
		for _, want := range test.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q: no %q in %s", test.args, want, out.String())
			}
		}
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
