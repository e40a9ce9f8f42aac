//go:build !nodemo

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// The demo prints a link that logs in a browser, and other commands connect to the same server. Names with
// control characters are escaped in their output.
func TestSessions(t *testing.T) {
	p := start(t, nil, "demo", "--listen", "127.0.0.1:0")
	address := p.expect(welcomeLine)
	link := p.expect(`^ +(http://127\.0\.0\.1:\d+/login\?token=\S+)$`)
	password := p.expect(`log in as admin with the password (\S+)\)$`)
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar}
	get := func(address string) (string, int) {
		t.Helper()
		response, err := browser.Get(address)
		must.OK(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		must.OK(t, err)
		return string(body), response.StatusCode
	}
	at, err := url.Parse(link)
	must.OK(t, err)
	base := "http://" + at.Host
	if body, status := get(base + "/api/v1/sessions"); status != http.StatusUnauthorized {
		t.Errorf("sessions without a login: %d %s", status, body)
	}
	get(link)
	if body, status := get(base + "/api/v1/sessions"); status != http.StatusOK || body != "[]\n" {
		t.Errorf("sessions: %d %s", status, body)
	}

	passwordFile := filepath.Join(t.TempDir(), "password")
	must.WriteFile(t, passwordFile, password+"\n")
	ask := func(code int, command ...string) string {
		t.Helper()
		got, stdout, stderr := output(t, "", append(command, "--url", base, "--as", "admin", "--password-file", passwordFile)...)
		if got != code {
			t.Errorf("%v: exit code %d: %s%s", command, got, stdout, stderr)
		}
		return stdout + stderr
	}
	const name = "evil\x1b]0;title\a\ue000exe.\u009b31m"
	c := ftptest.Dial(t, address)
	c.Login("demo", demoPassword)
	c.Command(200, "TYPE I")
	c.Command(200, "ALLO 8")
	data := c.Data()
	c.Command(150, "STOR "+name)
	must.Write(t, data, "half")
	var all []report.TransferInfo
	for len(all) == 0 || all[0].Bytes < 4 {
		all = nil
		must.OK(t, json.Unmarshal([]byte(ask(0, "transfers", "--json")), &all))
	}
	if all[0].Path != "/"+name || *all[0].Size != 8 {
		t.Errorf("the transfer is %+v", all[0])
	}
	id := all[0].Session
	if code, _, stderr := output(
		t, "", "sessions", "--url", base, "--as", "nobody", "--password-file", passwordFile); code != 1 ||
		!strings.Contains(stderr, "login refused: check --as and --password-file") {
		t.Errorf("user who is not an administrator: exit code %d: %s", code, stderr)
	}
	const shown = `/evil\x1b]0;title\x07\u{E000}exe.\u{9B}31m`
	for _, step := range []struct {
		args string
		code int
		want []string // part of the output
	}{
		{"sessions", 0, []string{"ID   ", id, "demo@demo", "STOR " + shown}},
		{"sessions --json", 0, []string{`"id": "` + id + `"`, `\ue000`, `\u009b`}},
		{"transfers", 0, []string{"DIRECTION", "upload", "4 B", "50%", "/s", shown}},
		{"uploads", 0, []string{"TENANT  USER  STATE"}},
		{"uploads --tenant nobody", 1, []string{`unknown tenant "nobody"`}},
		{"uploads abort demo x", 1, []string{"tenant demo: upload x not found"}},
		{"uploads abort demo", 2, []string{"expected a tenant and one ID"}},
		{"bans --json", 0, []string{"[]"}},
		{"debug", 0, []string{"ADDRESS"}},
		{"sessions disconnect", 2, []string{"expected one ID"}},
		{"sessions disconnect x", 1, []string{"session x not found"}},
		{"sessions disconnect " + id, 0, []string{id + " disconnected\n"}},
	} {
		got := ask(step.code, strings.Fields(step.args)...)
		for _, want := range step.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s shows %q, want %q", step.args, got, want)
			}
		}
		if strings.ContainsAny(got, "\x1b\a\u202e\u009b") {
			t.Errorf("%s shows a terminal %q", step.args, got)
		}
	}
	c.Reply(426)
	c.Reply(421)
	_ = data.Close()
	p.stop(os.Interrupt)

	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{"sessions --url " + base + " --as admin --password-file " + passwordFile, 1, "cannot connect to the server at " + base},
		{"sessions --url http://babelftp.example.com:9122 --as admin --password-file " + passwordFile, 1,
			"would send the password in the clear"},
		{"sessions --url babelftp.example.com --as admin --password-file " + passwordFile, 1, "invalid server address"},
		{"sessions --url " + base, 2, "--url requires --as and --password-file"},
		{"sessions --url " + base + " --cert-file x", 2, "--url requires --as and --password-file, or --cert-file and --key-file"},
		{"sessions --url " + base + " --cert-file x --key-file y", 1, "--cert-file x with --key-file y"},
		{"sessions --url " + base + " --as admin --password-file " + passwordFile + " --ca-file nowhere.pem", 1,
			"--ca-file: cannot read nowhere.pem"},
		{"sessions --url " + base + " --as admin --password-file nowhere", 1, "cannot read --password-file nowhere: no such file"},
		{"sessions --url " + base + " --as admin --password-file /dev/null", 1, "--password-file /dev/null: the password is empty"},
		{"sessions --url " + base + " --socket x", 2, "--url cannot be combined with --socket or --config"},
		{"transfers --as x", 2, "--as requires --url"},
		{"uploads x", 2, `unknown command "x"`},
	} {
		code, stdout, stderr := output(t, "", strings.Fields(tc.args)...)
		if code != tc.code || !strings.Contains(stderr, tc.want) || stdout != "" {
			t.Errorf("%s: exit code %d: %s%s, want %q", tc.args, code, stdout, stderr, tc.want)
		}
	}
}

// Two demos can run at the same time, because the second one uses another port for administrators.
func TestTwoDemos(t *testing.T) {
	const link = `^ +http://(127\.0\.0\.1:\d+)/login\?token=\S+$`
	first, second := start(t, nil, "demo", "--listen", "127.0.0.1:0"), start(t, nil, "demo", "--listen", "127.0.0.1:0")
	if a, b := first.expect(link), second.expect(link); a == b {
		t.Errorf("both sessions have %s", a)
	}
	first.stop(os.Interrupt)
	second.stop(os.Interrupt)
}
