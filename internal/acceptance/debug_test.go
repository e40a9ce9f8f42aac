package acceptance_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// babelftp debug makes the log of a running server show what one client does, and no other one, without a restart:
// commands, replies and requests to S3, without passwords. The log has one line for each transfer in any case.
func TestDebug(t *testing.T) {
	t.Parallel()
	storage := s3test.Start(t, "minio")
	s := &site{storage: storage, client: storage.Client(),
		buckets: map[string]string{acme: storage.Bucket(t), umbrella: storage.Bucket(t)}}
	socket := filepath.Join(t.TempDir(), "admin.sock")
	file := s.configure(t)
	text := must.ReadFile(t, file)
	added := strings.Replace(text, `admin_socket: ""`, fmt.Sprintf("admin_socket: %q", socket), 1)
	must.WriteFile(t, file, added)
	s.start(t, file)
	debug := func(args ...string) string {
		t.Helper()
		return launch(t, binary(t), append([]string{"debug", "--socket", socket}, args...)...).succeed()
	}
	const scanner, other = "127.0.0.7", "127.0.0.8"
	visit := func(from, name string) {
		t.Helper()
		curl := launchWith(
			t, "the scan", "curl", "--silent", "--show-error", "--interface", from, "--user", "alice@acme:"+password,
			"--quote", "-*SIZE missing", "--upload-file", "-", "ftp://"+s.address+"/"+name)
		curl.succeed()
	}

	visit(scanner, "before")
	open := ftptest.Dial(t, s.address) // from 127.0.0.1
	open.Login("alice@acme", password)
	if got := debug(); strings.Count(got, "\n") != 1 {
		t.Errorf("babelftp debug shows %s", got)
	}
	if got := debug("--address", scanner, "--for", "5m"); !strings.Contains(got, scanner+"/32") {
		t.Errorf("babelftp debug shows %s", got)
	}
	debug("--user", "alice@umbrella") // who has no session
	visit(scanner, "during")
	visit(other, "elsewhere")
	if got := debug(); strings.Count(got, "\n") != 3 {
		t.Errorf("babelftp debug shows %s", got)
	}
	if got := debug("--off"); got != "2 ended\n" {
		t.Errorf("babelftp debug --off shows %s", got)
	}
	visit(scanner, "after")
	debug("--tenant", "acme") // for the open session
	open.Command(250, "CWD /")
	s.stop(t)

	var session string
	log := s.server.stderr.String()
	if strings.Contains(log, password) {
		t.Error("the log has a password")
	}
	lines := map[string]int{}
	for line := range strings.Lines(log) {
		attribute := func(key string) string {
			found := regexp.MustCompile(` ` + key + `=("(?:[^"\\]|\\.)*"|\S+)`).FindStringSubmatch(line)
			if found == nil {
				return ""
			}
			if text := ""; json.Unmarshal([]byte(found[1]), &text) == nil {
				return text
			}
			return found[1]
		}
		if strings.Contains(line, "level=DEBUG") && attribute("session") == "" {
			t.Errorf("a debug line without a session: %s", line)
		}
		from, _, _ := strings.Cut(attribute("remote"), ":")
		switch attribute("msg") {
		case "command":
			lines[from+" "+attribute("line")]++
			session = attribute("session")
		case "reply":
			lines[from+" "+attribute("code")]++
		case "S3 request":
			lines[from+" "+attribute("operation")+" "+attribute("status")]++
			if attribute("s3_request_id") == "" {
				t.Errorf("no request ID: %s", line)
			}
		case "transfer":
			lines["transfer "+attribute("path")]++
		case "command failed":
			const most = 300
			if len(line) > most || !strings.Contains(attribute("err"), "file does not exist") {
				t.Errorf("a missing file is a line of %d bytes: %s", len(line), line)
			}
			lines["failed"]++
		}
	}
	for line, want := range map[string]int{
		"127.0.0.7 USER ***": 1, "127.0.0.7 PASS ***": 1, "127.0.0.7 STOR during": 1, "127.0.0.7 226": 1,
		"127.0.0.7 PutObject 200": 1,
		"127.0.0.7 SIZE missing":  1, "127.0.0.7 550": 1, "127.0.0.7 STOR before": 0, "127.0.0.7 STOR after": 0,
		"127.0.0.8 STOR elsewhere": 0,
		"127.0.0.8 226":            0, "127.0.0.1 CWD /": 1, "transfer /before": 1, "transfer /during": 1,
		"transfer /elsewhere": 1, "transfer /after": 1, "failed": 4,
	} {
		if lines[line] != want {
			t.Errorf("%d lines of %q, want %d", lines[line], line, want)
		}
	}
	if session == "" || t.Failed() {
		t.Log(log)
	}
}
