package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"": "0001-01-01T00:00:00Z", "30m": "2026-11-28T11:30:00Z", "1d": "2026-11-27T12:00:00Z", "2w": "2026-11-14T12:00:00Z",
		"2026-11-01": "2026-11-01T00:00:00Z", "2026-11-01T12:00:00+01:00": "2026-11-01T12:00:00+01:00",
		"d": "", "-1d": "", "0s": "", "yesterday": "", "1.5d": "", "9999999999d": "", "1": "",
	} {
		got, err := parseSince(text, now)
		if shown := got.Format(time.RFC3339); err == nil && shown != want || err != nil && want != "" {
			t.Errorf("%q: got %s, %v; want %s", text, shown, err, want)
		}
	}
}

// TestAudit follows a file through the audit logs of two replicas. One of the logs was rotated and
// compressed.
func TestAudit(t *testing.T) {
	dir := t.TempDir()
	line := func(at time.Duration, event, path, to string) string {
		text := `{"time":"` + time.Now().Add(-at).UTC().Format(time.RFC3339) + `","event":"` + event +
			`","client":"192.0.2.7:1","tenant":"acme","user":"alice","outcome":"ok","path":"` + path + `","s3_uri":"s3://data` + path + `"`
		if to != "" {
			text += `,"to_path":"` + to + `","to_s3_uri":"s3://data` + to + `"`
		}
		return text + "}\n"
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	must.Write(t, w, line(30*time.Hour, "upload", "/in/a.part", ""))
	must.OK(t, w.Close())
	must.OK(t, os.WriteFile(filepath.Join(dir, "audit.log.2.gz"), packed.Bytes(), 0o600))
	must.WriteFile(t, filepath.Join(dir, "audit.log.1"), line(20*time.Hour, "rename", "/in/a.part", "/in/a"))
	must.WriteFile(t, filepath.Join(dir, "audit.log"), line(10*time.Hour, "rename", "/in", "/done")+"not JSON\n")
	must.WriteFile(t, filepath.Join(dir, "audit.logrotate"), line(9*time.Hour, "delete", "/done/a", ""))
	other := filepath.Join(dir, "other.log")
	must.WriteFile(t, other, line(5*time.Hour, "download", "/done/a", ""))
	must.WriteFile(t, filepath.Join(dir, "broken.gz"), "this is not compressed")
	config := func(name, audit string) string {
		file := filepath.Join(dir, name)
		must.WriteFile(t, file, "s3: {endpoint: \"http://127.0.0.1:9\"}\n"+audit+
			"tenants:\n  acme:\n    bucket: data\n    users: {alice: {password_hash: \"$2y$05$abcdefghijklmnopqrstuuKx0sX9cY7mVJHhJQeBkwuBzcXjX2y5m\"}}\n")
		return " --config " + file
	}
	given := config("babelftp.yaml", "audit: {file: "+filepath.Join(dir, "audit.log")+"}\n")
	for _, test := range []struct {
		args, stdin string
		code        int
		want, never []string
	}{
		{"--path /done/a" + given, "", 0, []string{
			"TIME", "upload  ok       alice@acme  192.0.2.7:1  /in/a.part  -", "/in/a.part  /in/a", "/in         /done",
			"skipped 1 line"}, []string{"delete"}},
		{"--path /in/a.part --since 1d" + given, "", 0, []string{"/in/a.part  /in/a"}, []string{"upload"}},
		{"--path /done/a " + other + " " + filepath.Join(dir, "audit.log"), "", 0, []string{"download"}, []string{"upload"}},
		{"--path /done/a --json " + other, "", 0, []string{`"event": "download"`, "[\n"}, nil},
		{"--path s3://data/done/a -", line(time.Hour, "download", "/done/a", ""), 0, []string{"download"}, nil},
		{"--path /done/a --tenant globex " + other, "", 1, []string{"/done/a not found in the 0 lines"}, nil},
		{"--path /none" + given, "", 1, []string{"/none not found in the 3 lines", "correct --path"}, nil},
		{"--path /done/a " + other + ".gone", "", 1, []string{"cannot read the audit log", "no such file"}, nil},
		{"--path /done/a " + filepath.Join(dir, "broken.gz"), "", 1, []string{"broken.gz", "invalid header"}, nil},
		{"--path /a --since soon", "", 2, []string{`--since "soon": want a time such as 30m`}, nil},
		{"", "", 2, []string{"missing --path"}, nil},
		{"--path /a" + config("stdout.yaml", "audit: {file: \"-\"}\n"), "", 1, []string{"audit.file is standard output"}, nil},
		{"--path /a" + config("none.yaml", ""), "", 1, []string{"the configuration has no audit.file"}, nil},
		{"--path /a" + config("later.yaml", "audit: {file: "+filepath.Join(dir, "later.log")+"}\n"), "", 1,
			[]string{filepath.Join(dir, "later.log") + " does not exist"}, nil},
	} {
		var out bytes.Buffer
		code := run(t.Context(), append([]string{"audit"}, strings.Fields(test.args)...), strings.NewReader(test.stdin), &out, &out)
		if code != test.code {
			t.Errorf("%q: exit code %d, want %d: %s", test.args, code, test.code, &out)
		}
		for _, want := range test.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q: output lacks %q:\n%s", test.args, want, &out)
			}
		}
		for _, never := range test.never {
			if strings.Contains(out.String(), never) {
				t.Errorf("%q: unexpected %q in the output:\n%s", test.args, never, &out)
			}
		}
	}
}
