package audit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// noon is the time of the first line in these tests.
func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// auditText returns a line that the audit log writes n seconds after noon.
func auditText(n int, event string, about ...any) string {
	var line bytes.Buffer
	log := New(To(&line), func() bool { return true }, nil)
	log.out.Info(event, about...)
	_, rest, _ := strings.Cut(line.String(), `",`)
	return fmt.Sprintf(`{"time":%q,%s`, noon().Add(time.Duration(n)*time.Second).Format(time.RFC3339Nano), rest)
}

// stored returns a line about a file of the user alice of acme, whose root is s3://data/inbox.
func stored(n int, event, path, to string) string {
	about := []any{"client", "192.0.2.7:50122", "tenant", "acme", "user", "alice", "outcome", "ok", "command", "X",
		"path", path, "s3_uri", "s3://data/inbox" + strings.ReplaceAll(path, " ", "%20")}
	if to != "" {
		about = append(about, "to_path", to, "to_s3_uri", "s3://data/inbox"+strings.ReplaceAll(to, " ", "%20"))
	}
	return auditText(n, event, about...)
}

// A searched is an audit log in a folder, and a searcher of it.
type searched struct {
	*Searcher
	path string
}

func newSearched(t *testing.T, files map[string]string) *searched {
	t.Helper()
	s := &searched{path: filepath.Join(t.TempDir(), "audit.log")}
	for name, text := range files {
		s.write(t, name, text)
	}
	s.Searcher = NewSearcher(config.Audit{File: s.path}, nil)
	return s
}

func (s *searched) write(t *testing.T, suffix, text string) {
	t.Helper()
	if isCompressed(suffix) {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write([]byte(text))
		must.OK(t, w.Close())
		text = packed.String()
	}
	must.OK(t, os.WriteFile(s.path+suffix, []byte(text), 0o600))
}

// pages returns the seconds of all lines that a query selects, and the last result.
func (s *searched) pages(t *testing.T, q Query) (seconds []string, last *Result) {
	t.Helper()
	next := ""
	for {
		r, err := s.Search(t.Context(), q, next)
		must.OK(t, err)
		for _, found := range r.Lines {
			var e Entry
			must.OK(t, json.Unmarshal(found.Line, &e))
			if !e.Time.Equal(found.Time) {
				t.Errorf("%s has the time %v", found.Line, found.Time)
			}
			seconds = append(seconds, fmt.Sprint(int(e.Time.Sub(noon()).Seconds())))
		}
		if r.Complete != (r.Next == "") {
			t.Errorf("Complete is %v with the cursor %q", r.Complete, r.Next)
		}
		if r.Complete {
			return seconds, r
		}
		next = r.Next
	}
}

func TestSearch(t *testing.T) {
	const lines = 12
	text := auditText(0, "login", "client", "192.0.2.7:1", "tenant", "acme", "user", "alice", "outcome", "ok") +
		stored(1, "upload", "/in/a b.part", "") +
		stored(2, "rename", "/in/a b.part", "/in/a b") +
		auditText(3, "login", "client", "[2001:db8::7]:2", "outcome", "failed", "reason", "unknown_user") +
		auditText(4, "login", "client", "192.0.2.70:1", "tenant", "acme", "user", "alice@home", "outcome", "failed") +
		stored(5, "rename", "/in", "/done") +
		auditText(6, "ban", "client", "192.0.2.1:3", "administrator", "ann", "banned", "192.0.2.7") +
		stored(7, "download", "/done/a b", "") +
		auditText(8, "upload", "client", "198.51.100.1:1", "tenant", "labo", "user", "ad\u202eam", "outcome", "failed",
			"path", "/in/a b", "s3_uri", "s3://labo/in/a%20b") +
		auditText(9, "refused", "client", "2001:db8::/64", "outcome", "failed", "limit", "sessions") +
		stored(10, "delete", "/done/a b", "") +
		stored(11, "upload", "/done/a b", "") // another file
	cut := func(n int) int { return strings.Index(text, strings.SplitAfter(text, "\n")[n]) }
	s := newSearched(t, map[string]string{
		"": text[cut(8):] + text[:40], ".1": text[cut(5):cut(8)], ".2.gz": text[cut(2):cut(5)],
		"-20260301": text[:cut(2)], ".3": "\nnot a log\n", "x": "ignored", ".4": "",
	})
	all := Query{From: noon(), To: noon().Add(time.Hour)}
	for _, tt := range []struct {
		name string
		q    Query
		want string
	}{
		{"all", all, "11 10 9 8 7 6 5 4 3 2 1 0"},
		{"tenant", Query{Tenant: "labo"}, "8"},
		{"user", Query{User: "alice"}, "11 10 7 5 2 1 0"},
		{"user-of-tenant", Query{User: "alice@acme"}, "11 10 7 5 2 1 0"},
		{"user-with-at", Query{User: "alice@home"}, "4"},
		{"user-prefix", Query{User: "ali"}, ""},
		{"unprintable-user", Query{User: "ad\u202eam"}, "8"},
		{"written-user", Query{User: `ad\u{202E}am`}, "8"},
		{"administrator", Query{User: "ann"}, "6"},
		{"address", Query{Address: "192.0.2.7"}, "11 10 7 6 5 2 1 0"},
		{"address-with-port", Query{Address: "[2001:db8::7]:2"}, "9 3"},
		{"network", Query{Address: "192.0.2.64/26"}, "4"},
		{"IPv6", Query{Address: "2001:db8::8"}, "9"},
		{"events", Query{Events: []string{"ban", "refused"}}, "9 6"},
		{"failed-logins", Query{Events: []string{"login"}, Outcome: "failed"}, "4 3"},
		{"from", Query{From: noon().Add(9 * time.Second)}, "11 10 9"},
		{"to", Query{To: noon().Add(2 * time.Second)}, "2 1 0"},
		{"later", Query{From: noon().Add(time.Hour)}, ""},
		{"first-name", Query{Path: "/in/a b.part"}, "10 7 5 2 1"},
		{"same-name", Query{Path: "/in/a b"}, "10 8 7 5 2 1"},
		{"last-name", Query{Path: "/done/a b"}, "11 10 7 5 2 1"},
		{"path-of-tenant", Query{Path: "/in/a b.part", Tenant: "acme"}, "10 7 5 2 1"},
		{"path-and-event", Query{Path: "/in/a b.part", Events: []string{"rename"}}, "5 2"},
		{"URI", Query{Path: "s3://labo/in/a%20b"}, "8"},
		{"unknown-path", Query{Path: "/nothing"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, limit := range []int{0, 1, 2, 5} {
				tt.q.Limit = limit
				got, last := s.pages(t, tt.q)
				if strings.Join(got, " ") != tt.want {
					t.Errorf("limit %d: lines %v, want %s", limit, got, tt.want)
				}
				if last.File != s.path || !strings.Contains(last.Reason, "audit.log.3 was not searched") {
					t.Errorf("file %q, reason %q", last.File, last.Reason)
				}
			}
		})
	}
	if got, _ := s.pages(t, Query{}); len(got) != lines {
		t.Errorf("got %d lines, want %d", len(got), lines)
	}
}

// A cursor continues at the same line after the log has grown, and was rotated and compressed.
func TestCursors(t *testing.T) {
	text := ""
	for n := range 6 {
		text += stored(n, "upload", "/in/a", "")
	}
	for _, q := range []Query{{Limit: 2}, {Limit: 2, Path: "/in/a"}} {
		s := newSearched(t, map[string]string{"": text})
		var got []string
		next := ""
		for _, rotate := range []func(){
			func() { s.write(t, "", text+stored(6, "upload", "/in/a", "")) },
			func() {
				must.OK(t, os.Rename(s.path, s.path+".1"))
				s.write(t, "", stored(7, "upload", "/in/a", ""))
			},
			func() {
				s.write(t, ".2.gz", text+stored(6, "upload", "/in/a", ""))
				must.OK(t, os.Remove(s.path+".1"))
			},
		} {
			r, err := s.Search(t.Context(), q, next)
			must.OK(t, err)
			for _, found := range r.Lines {
				got = append(got, fmt.Sprint(int(found.Time.Sub(noon()).Seconds())))
			}
			next = r.Next
			rotate()
		}
		if text := strings.Join(got, " "); text != "5 4 3 2 1 0" {
			t.Errorf("%+v: lines %s", q, text)
		}
		r, err := s.Search(t.Context(), Query{Limit: 1}, "")
		must.OK(t, err)
		r, err = s.Search(t.Context(), Query{Limit: 1}, r.Next)
		must.OK(t, err)
		must.OK(t, os.Remove(s.path+".2.gz"))
		_, err = s.Search(t.Context(), q, r.Next)
		if _, ok := errors.AsType[*QueryError](err); !ok || !strings.Contains(err.Error(), "was removed") {
			t.Errorf("without the file: %v", err)
		}
	}
}

// A search ends after a number of bytes, and further searches find the rest, wherever a line crosses a block.
func TestSearchBudget(t *testing.T) {
	var text strings.Builder
	const lines = 9000
	want := []string{}
	for n := range lines {
		user := "alice"
		if n%1000 == 7 {
			user = "bob"
			want = append(want, fmt.Sprint(n))
		}
		text.WriteString(auditText(n, "upload", "user", user, "path", "/"+strings.Repeat("x", n%700),
			"s3_uri", "s3://data/"+strings.Repeat("x", n%700)))
		switch n {
		case 3000:
			text.WriteString(`{"time":"2026-03-01T12:00:00Z","event":"` + strings.Repeat("y", 3*maxEntry) + "\"}\n")
		case 4000:
			text.WriteString(`{"time":"2026-03-01T13:06:40Z","event":"long` + strings.Repeat("y", maxEntry*9/10) + "\"}\n")
		}
	}
	slices.Reverse(want)
	s := newSearched(t, map[string]string{"": text.String()})
	s.bytes = 3 << 20
	r, err := s.Search(t.Context(), Query{User: "bob"}, "")
	must.OK(t, err)
	if r.Complete || r.Bytes < s.bytes || r.Bytes > s.bytes+2*blockSize || r.Until.IsZero() ||
		r.Until.After(r.Lines[len(r.Lines)-1].Time) {
		t.Errorf("first search: complete %v, %d bytes, until %v", r.Complete, r.Bytes, r.Until)
	}
	for _, q := range []Query{
		{User: "bob"}, {User: "bob", Limit: 1}, {User: "bob", Address: ""}, {User: "bob", Path: "/"},
	} {
		if got, _ := s.pages(t, q); !slices.Equal(got, want) {
			t.Errorf("%+v: lines %v, want %v", q, got, want)
		}
	}
	if got, _ := s.pages(t, Query{Limit: MaxLimit}); len(got) != lines+1 {
		t.Errorf("got %d lines, want %d", len(got), lines+1)
	}
	from := noon().Add(4500 * time.Second)
	r, err = s.Search(t.Context(), Query{From: from, To: from.Add(time.Second)}, "")
	if must.OK(t, err); len(r.Lines) != 2 || !r.Complete || r.Bytes > 2*blockSize {
		t.Errorf("a time: got %d lines from %d bytes", len(r.Lines), r.Bytes)
	}
	s.write(t, ".1.gz", text.String())
	must.OK(t, os.Remove(s.path))
	for _, q := range []Query{{User: "bob", Limit: 3}, {User: "bob", Path: "/"}} {
		if got, _ := s.pages(t, q); !slices.Equal(got, want) {
			t.Errorf("compressed, %+v: lines %v, want %v", q, got, want)
		}
	}
	s.time = 0
	r, err = s.Search(t.Context(), Query{User: "bob"}, "")
	if must.OK(t, err); len(r.Lines) > 0 || r.Next == "" {
		t.Errorf("without time: got %d lines, %q", len(r.Lines), r.Reason)
	}
}

func TestSearchErrors(t *testing.T) {
	s := newSearched(t, map[string]string{"": stored(0, "upload", "/a", "")})
	for _, tt := range []struct {
		name, cursor, want string
		q                  Query
	}{
		{"limit", "", "invalid limit", Query{Limit: -1}},
		{"high-limit", "", "1 to 1000", Query{Limit: MaxLimit + 1}},
		{"address", "", "invalid address", Query{Address: "home"}},
		{"cursor", "%", "invalid cursor", Query{}},
		{"file-name", cursor{position: position{File: "/etc/passwd"}}.String(), "was removed", Query{}},
		{"negative", cursor{position: position{Offset: -1}}.String(), "invalid cursor", Query{}},
	} {
		_, err := s.Search(t.Context(), tt.q, tt.cursor)
		if _, ok := errors.AsType[*QueryError](err); !ok || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Search(ctx, Query{User: "x"}, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	s = newSearched(t, nil)
	if r, err := s.Search(t.Context(), Query{}, ""); err != nil || !r.Complete || !strings.Contains(r.Reason, "creates it") {
		t.Errorf("without a file: %+v, %v", r, err)
	}
	s.write(t, "", stored(0, "upload", "/a", ""))
	must.OK(t, os.WriteFile(s.path+".1.gz", []byte("no gzip"), 0o600))
	if got, r := s.pages(t, Query{}); len(got) != 1 || !strings.Contains(r.Reason, "audit.log.1.gz was not searched") {
		t.Errorf("with a broken file: %v, %q", got, r.Reason)
	}
	s.write(t, ".1.gz", strings.Repeat(stored(-1, "upload", "/a", ""), 5000))
	whole, err := os.ReadFile(s.path + ".1.gz")
	must.OK(t, err)
	must.OK(t, os.WriteFile(s.path+".1.gz", whole[:len(whole)/2], 0o600))
	if _, r := s.pages(t, Query{User: "nobody"}); !strings.Contains(r.Reason, "was not searched completely") {
		t.Errorf("with half a file: %q", r.Reason)
	}
}

func TestTooManySearches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSearcher(config.Audit{}, NewRecent())
		for range maxSearches {
			s.slots <- struct{}{}
		}
		if _, err := s.Search(t.Context(), Query{}, ""); !errors.Is(err, ErrBusy) {
			t.Errorf("Search returns %v", err)
		}
	})
}

// Without a file, the latest lines in memory are searched.
func TestSearchRecent(t *testing.T) {
	for reason, cfg := range map[string]config.Audit{
		"standard output": {File: "-"}, "audit.webhook": {Webhook: config.Receiver{URL: "https://a"}}, "not set": {},
	} {
		recent := NewRecent()
		for n := range 5 {
			recent.Add(report.Owner{}, []byte(stored(n, "rename", fmt.Sprint("/", n), fmt.Sprint("/", n+1))))
		}
		s := &searched{NewSearcher(cfg, recent), ""}
		for _, q := range []Query{{Limit: 2}, {Path: "/3"}} {
			got, last := s.pages(t, q)
			if strings.Join(got, " ") != "4 3 2 1 0" || !strings.Contains(last.Reason, reason) || last.File != "" {
				t.Errorf("%s: lines %v, reason %q", reason, got, last.Reason)
			}
		}
	}
}

// A search for a path finds the same lines as Follow finds among all lines.
func TestSearchFollows(t *testing.T) {
	random := newRandom(t)
	pick := func() string {
		names := []string{"/a", "/b", "/in/a", "/in/b", "/in/x y", "/in", "/out/a", "/out", "/out/in/b"}
		return names[random.IntN(len(names))]
	}
	for range 200 {
		var text strings.Builder
		for n := range 30 {
			switch event := []string{"upload", "delete", "rename", "rename", "copy", "restore"}[random.IntN(6)]; event {
			case "upload", "delete":
				text.WriteString(stored(n, event, pick(), ""))
			default:
				text.WriteString(stored(n, event, pick(), pick()))
			}
		}
		name := pick()
		entries, _, err := ReadEntries(strings.NewReader(text.String()), time.Time{})
		must.OK(t, err)
		var want []string
		for _, e := range slices.Backward(Follow(entries, name)) {
			want = append(want, fmt.Sprint(int(e.Time.Sub(noon()).Seconds())))
		}
		s := newSearched(t, map[string]string{"": text.String()})
		if got, _ := s.pages(t, Query{Path: name, Limit: 1 + random.IntN(9)}); !slices.Equal(got, want) {
			t.Fatalf("%s: lines %v, want %v in\n%s", name, got, want, text.String())
		}
	}
}

// newRandom returns random numbers whose seed is in the log of the test.
func newRandom(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// writeLog writes lines of many users, of which one in ten thousand is about the file /in/wanted and its later name.
func writeLog(tb testing.TB, name string, lines int) {
	file, err := os.Create(name)
	must.OK(tb, err)
	out := bufio.NewWriterSize(file, 1<<20)
	for n := range lines {
		user, path, event, to := fmt.Sprint("user", n%500), fmt.Sprintf("/in/%d/file-%d.csv", n%500, n), "upload", ""
		switch n % 10_000 {
		case 17:
			user, path = "rare", "/in/wanted"
		case 18:
			event, user, path = "rename", "rare", "/in/wanted"
			to = `,"to_path":"/done/wanted","to_s3_uri":"s3://acme-data/inbox/done/wanted"`
		}
		fmt.Fprintf(out, `{"time":%q,"event":%q,"session":"9f0c2a7b51d3e846","client":"192.0.2.%d:50122","tenant":"acme",`+
			`"user":%q,"tls":true,"tls_version":"TLS 1.3","tls_cipher":"TLS_AES_128_GCM_SHA256","outcome":"ok",`+
			`"command":"STOR","code":226,"duration_ms":84,"bytes":51200,"data_tls":true,"path":%q,`+
			`"s3_uri":"s3://acme-data/inbox%s","size":51200,"etag":"900150983cd24fb0d6963f7d28e17f72",`+
			`"checksum":"crc32c:Nks/tw==","s3_request_id":"4442587FB7D0A2F9"%s}`+"\n",
			noon().Add(time.Duration(n)*100*time.Millisecond).Format(time.RFC3339Nano), event, n%250, user, path, path,
			to)
	}
	must.OK(tb, out.Flush())
	must.OK(tb, file.Close())
}

// BenchmarkSearch searches 100,000 lines.
func BenchmarkSearch(b *testing.B) {
	const lines = 100_000
	s := NewSearcher(config.Audit{File: filepath.Join(b.TempDir(), "audit.log")}, nil)
	writeLog(b, s.file, lines)
	at := noon().Add(lines / 2 * 100 * time.Millisecond)
	for _, tt := range []struct {
		name string
		q    Query
	}{
		{"latest", Query{}},
		{"user", Query{User: "rare"}},
		{"address", Query{Address: "192.0.2.249"}},
		{"nobody", Query{User: "nobody"}},
		{"time", Query{From: at, To: at.Add(time.Second)}},
		{"path", Query{Path: "/in/wanted"}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Search(b.Context(), tt.q, ""); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The names of a file are also searched in the older parts of the log. A cursor fits into a URL.
func TestSearchFollowsToOlderParts(t *testing.T) {
	var text strings.Builder
	names := []string{"/first", "/b", "/c", "/d", "/e", "/last"}
	text.WriteString(stored(0, "upload", "/first", ""))
	for n := range 5 {
		text.WriteString(stored(1+n, "rename", names[n], names[n+1]))
		for range 4000 { // more than a block
			text.WriteString(stored(1+n, "upload", "/other", ""))
		}
	}
	s := newSearched(t, map[string]string{"": text.String()})
	s.bytes = 1
	if got, _ := s.pages(t, Query{Path: "/last"}); strings.Join(got, " ") != "5 4 3 2 1 0" {
		t.Errorf("lines %v", got)
	}
	long := &nameSearch{names: map[string]bool{}}
	for n := range 100 {
		long.names[strings.Repeat(fmt.Sprint(n%10), 10+n)] = true
	}
	if c := (cursor{Names: long.first(maxCursorNames)}).String(); len(c) > 2*maxCursorNames || len(c) < maxCursorNames {
		t.Errorf("a cursor has %d bytes", len(c))
	}
}
