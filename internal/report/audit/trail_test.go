package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/report/audit"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// auditLine returns a line of a user of the tenant acme with the root s3://data/inbox. n is the second of its time.
func auditLine(n int, event, command, outcome, path, to string) string {
	encode := func(path string) string { return "s3://data/inbox" + strings.ReplaceAll(path, " ", "%20") }
	line := fmt.Sprintf(`{"time":"2026-03-01T12:00:%02d.5Z","event":%q,"session":"9f0c","client":"192.0.2.7:50122","tenant":"acme",`+
		`"user":"alice","tls":true,"outcome":%q,"command":%q,"code":226,"path":%q,"s3_uri":%q`, n, event, outcome, command, path,
		encode(strings.TrimPrefix(path, "/.versions/2026-02-01")))
	if to != "" {
		line += fmt.Sprintf(`,"to_path":%q,"to_s3_uri":%q`, to, encode(to))
	}
	return line + "}\n"
}

// TestFollow follows one file in one log, starting from each of its names.
func TestFollow(t *testing.T) {
	log := auditLine(0, "upload", "STOR", "ok", "/other", "") +
		auditLine(1, "upload", "STOR", "ok", "/in/a b.part", "") +
		auditLine(2, "rename", "RNTO", "ok", "/in/a b.part", "/in/a b") +
		auditLine(3, "download", "RETR", "ok", "/in/a b", "") +
		auditLine(4, "rename", "RNTO", "ok", "/in", "/done") +
		auditLine(5, "upload", "STOR", "ok", "/in/a b", "") + // another file
		auditLine(6, "rename", "RNTO", "failed", "/done/a b", "/nowhere") +
		auditLine(7, "copy", "SITE CPTO", "ok", "/done/a b", "/copy") +
		auditLine(8, "delete", "DELE", "ok", "/done/a b", "") +
		auditLine(9, "upload", "STOR", "ok", "/done/a b", "") + // another file
		auditLine(10, "download", "RETR", "ok", "/copy", "") +
		auditLine(11, "restore", "RNTO", "ok", "/.versions/2026-02-01/done", "/back") +
		auditLine(12, "download", "RETR", "ok", "/back/a b", "") +
		auditLine(13, "rmdir", "SITE RMDIR", "ok", "/back", "") +
		auditLine(14, "mkdir", "MKD", "ok", "/done", "") +
		auditLine(15, "download", "RETR", "ok", "/copying", "")
	for _, test := range []struct {
		name string
		want string // seconds of the lines
	}{
		{"/in/a b.part", "1 2 3 4 6 7 8 10 11 12 13"},
		{"in/a b.part", "1 2 3 4 6 7 8 10 11 12 13"},
		{"/in/a b", "1 2 3 4 5 6 7 8 10 11 12 13"},
		{"/done/a b", "1 2 3 4 6 7 8 9 10 11 12 13"},
		{"/copy", "1 2 3 4 6 7 10"},
		{"/back/a b", "1 2 3 4 6 7 8 9 11 12 13"},
		{"s3://data/inbox/other", "0"},
		{"/other", "0"},
		{"/nothing", ""},
		{"/copying", "15"},
		{"/back", "1 2 3 4 6 7 8 9 11 12 13"},
	} {
		t.Run(test.name, func(t *testing.T) {
			entries, skipped, err := audit.ReadEntries(strings.NewReader(log), time.Time{})
			must.OK(t, err)
			if skipped != 0 {
				t.Errorf("got %d skipped lines", skipped)
			}
			slices.Reverse(entries) // the lines of several replicas are unsorted
			var got []string
			for _, e := range audit.Follow(entries, test.name) {
				got = append(got, fmt.Sprint(e.Time.Second()))
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("lines %v, want %s", got, test.want)
			}
		})
	}
}

// TestFollowRestored follows a file that was deleted and restored, starting from each of its names.
func TestFollowRestored(t *testing.T) {
	log := auditLine(0, "upload", "STOR", "ok", "/other", "") +
		auditLine(1, "upload", "STOR", "ok", "/in/a", "") +
		auditLine(2, "delete", "DELE", "ok", "/in/a", "") +
		auditLine(3, "rmdir", "RMD", "ok", "/in", "") +
		auditLine(4, "restore", "RNTO", "ok", "/.versions/2026-02-01/in", "/back") +
		auditLine(5, "restore", "SITE", "ok", "/.versions/2026-02-01/in/a", "/again") +
		auditLine(6, "rename", "RNTO", "ok", "/back", "/done") +
		auditLine(7, "rename", "RNTO", "ok", "/done/a", "/end") +
		auditLine(8, "upload", "STOR", "ok", "/back/a", "") + // another file
		auditLine(9, "download", "RETR", "ok", "/end", "")
	for name, want := range map[string]string{
		"/in/a": "1 2 4 5 6 7 9", "/in": "1 2 3 4 5 6 7 9", "/done/a": "1 2 4 6 7 9", "/end": "1 2 4 6 7 9",
		"/again": "1 2 4 5", "/other": "0",
	} {
		entries, _, err := audit.ReadEntries(strings.NewReader(log), time.Time{})
		must.OK(t, err)
		var got []string
		for _, e := range audit.Follow(entries, name) {
			got = append(got, fmt.Sprint(e.Time.Second()))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: lines %v, want %s", name, got, want)
		}
	}
}

// TestReadEntries reads lines about files between other events, arrays of a webhook, and invalid lines.
func TestReadEntries(t *testing.T) {
	upload := strings.TrimSpace(auditLine(5, "upload", "STOR", "ok", "/a", ""))
	for _, test := range []struct {
		name, log        string
		entries, skipped int
	}{
		{"empty", "", 0, 0},
		{"login", `{"time":"2026-03-01T12:00:07Z","event":"login","outcome":"failed"}`, 0, 0},
		{"array", "[" + upload + "," + upload + "]\n\n", 2, 0},
		{"before", auditLine(1, "upload", "STOR", "ok", "/a", "") + upload, 1, 0},
		{"cut", upload + "\n" + upload[:40], 1, 1},
		{"log-of-the-server", "level=INFO msg=serving\n" + `{"time":"2026-03-01T12:00:07Z","msg":"serving"}`, 0, 2},
		{"broken-array", "[" + upload + "\n", 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			entries, skipped, err := audit.ReadEntries(
				strings.NewReader(test.log), time.Date(2026, 3, 1, 12, 0, 4, 0, time.UTC))
			if err != nil || len(entries) != test.entries || skipped != test.skipped {
				t.Errorf("got %d entries, %d skipped, %v", len(entries), skipped, err)
			}
		})
	}
	if _, _, err := audit.ReadEntries(strings.NewReader(strings.Repeat("x", 3<<20)), time.Time{}); err == nil {
		t.Error("read a line of 3 MiB")
	}
}
