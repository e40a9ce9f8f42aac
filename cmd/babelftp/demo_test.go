//go:build !nodemo

package main

import (
	"crypto/tls"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

const welcomeLine = `^babelftp demo: FTP on (\S+), user demo, password demo`

// Without --data, the demo leaves no files behind. AUTH TLS works with a self-signed certificate. The
// greeting is in the language that the client has chosen.
func TestDemoGreeting(t *testing.T) {
	bundle, err := i18n.Load()
	must.OK(t, err)
	var greeting map[language.Tag]string
	must.OK(t, json.Unmarshal(demoGreeting, &greeting))
	if len(greeting) != len(bundle.Tags()) {
		t.Errorf("%d greetings for %d languages", len(greeting), len(bundle.Tags()))
	}
	address := start(t, nil, "demo", "--listen", "127.0.0.1:0").expect(welcomeLine)
	c := ftptest.Dial(t, address)
	for _, tag := range bundle.Tags() {
		c.Command(200, "LANG "+tag.String())
		c.Command(331, "USER demo")
		if got := c.Command(230, "PASS demo"); greeting[tag] == "" || !strings.Contains(got, greeting[tag]) {
			t.Errorf("the greeting in %v is %q, want %q", tag, got, greeting[tag])
		}
		c.Command(220, "REIN")
	}
}

func TestDemoLeavesNothing(t *testing.T) {
	temporary := t.TempDir()
	p := start(t, []string{"TMPDIR=" + temporary}, "demo", "--listen", "127.0.0.1:0")
	c := ftptest.Dial(t, p.expect(welcomeLine))
	c.Command(234, "AUTH TLS")
	must.OK(t, c.StartTLS(&tls.Config{InsecureSkipVerify: true})) // the certificate is self-signed
	c.Command(331, "USER demo")
	c.Command(230, "PASS demo")
	p.stop(os.Interrupt)
	left, err := os.ReadDir(temporary)
	if err != nil || len(left) > 0 {
		t.Errorf("unexpected files left: %v, %v", left, err)
	}
}

func TestDemoTriesATranslation(t *testing.T) {
	dir, _ := catalogFolder(t, "is", `{"id": "goodbye", "translation": "Bless."}`)
	here, err := os.Getwd()
	must.OK(t, err)
	relative, err := filepath.Rel(here, dir) // users often pass relative paths
	must.OK(t, err)
	p := start(t, nil, "demo", "--listen", "127.0.0.1:0", "--locales", relative)
	c := ftptest.Dial(t, p.expect(welcomeLine))
	c.Command(200, "LANG is")
	if goodbye := c.Command(221, "QUIT"); !strings.Contains(goodbye, "Bless.") {
		t.Errorf("the reply to QUIT is %s", goodbye)
	}
	p.stop(os.Interrupt)
}

func TestDemoProblems(t *testing.T) {
	busy := must.Listen(t)
	address := busy.Addr().String()
	file := filepath.Join(t.TempDir(), "file")
	must.WriteFile(t, file, "")
	for _, tc := range []struct {
		name string
		args []string
		want string // the end of the only line
	}{
		{
			"port-in-use", []string{"--listen", address},
			"cannot listen on " + address +
				": address already in use: choose another address with --listen, such as --listen 127.0.0.1:0",
		},
		{"s3-port-in-use", []string{"--listen", "127.0.0.1:0", "--s3-listen", address},
			"address already in use: choose another address with --s3-listen"},
		{"data-is-a-file", []string{"--listen", "127.0.0.1:0", "--data", file}, "choose another directory with --data"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, stdout, stderr := output(t, "", append([]string{"demo"}, tc.args...)...)
			if code != 1 || stdout != "" || !strings.HasPrefix(stderr, "babelftp: ") ||
				!strings.HasSuffix(stderr, tc.want+"\n") ||
				strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit code %d: %s%s", code, stdout, stderr)
			}
		})
	}
}

func TestDemoListensOnAnAddress(t *testing.T) {
	const want = "babelftp: invalid --listen \"21\": want an address such as 127.0.0.1:2121 (see babelftp demo --help)\n"
	if code, stdout, stderr := output(t, "", "demo", "--listen", "21"); code != exitUsage || stdout != "" ||
		stderr != want {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}
