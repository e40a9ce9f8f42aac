package main

import (
	"bufio"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/oidctest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A process is a running program that is stopped with a signal.
type process struct {
	t      *testing.T
	signal func(os.Signal) error
	lines  chan string // lines of standard output and standard error
	ended  func() int  // waits for the end and returns the exit code
}

func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	cmd := program(t, args...)
	cmd.Env = append(cmd.Env, env...)
	return launch(t, cmd)
}

// launch starts a command.
func launch(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	must.OK(t, cmd.Start())
	const maxLines = 1000 // buffers lines that the test has not read
	p := &process{t: t, signal: cmd.Process.Signal, lines: make(chan string, maxLines)}
	go func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(read); scanner.Scan(); {
			p.lines <- scanner.Text()
		}
	}()
	p.ended = sync.OnceValue(func() int {
		_ = cmd.Wait() // ended reports the exit code
		_ = write.Close()
		return cmd.ProcessState.ExitCode()
	})
	go p.ended() // closes lines
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		p.ended()
	})
	return p
}

// expect returns the submatches of the first line that matches the pattern.
func (p *process) expect(pattern string) string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	timeout := time.After(time.Minute)
	for {
		select {
		case line, more := <-p.lines:
			if !more {
				p.t.Fatalf("the program ended before %s", pattern)
			}
			p.t.Log(line)
			if match := re.FindStringSubmatch(line); match != nil {
				return match[len(match)-1]
			}
		case <-timeout:
			p.t.Fatalf("missing %s in the output", pattern)
		}
	}
}

// stop sends a signal and checks that the program exits with 0.
func (p *process) stop(signal os.Signal) {
	p.t.Helper()
	must.OK(p.t, p.signal(signal))
	if code := p.ended(); code != 0 {
		p.t.Errorf("exit code %d after %v", code, signal)
	}
}

// writeConfig writes a configuration with the tenant acme, a bucket, the user alice and her password hash.
func writeConfig(t *testing.T, s *s3test.Server, bucket string) string {
	t.Helper()
	hash, err := passwordhash.New("correct horse")
	must.OK(t, err)
	text := fmt.Sprintf(`listen: "127.0.0.1:0"
metrics_listen: ""
admin_socket: ""
drain_timeout: 1m
s3:
  endpoint: %s
  region: %s
  path_style: true
  access_key_id: %s
  secret_access_key_file: secret
tenants:
  acme:
    bucket: %s
    default_language: fr
    users:
      alice: {password_hash: "%s"}
`, s.Endpoint, s.Region, s.AccessKeyID, bucket, hash)
	dir := t.TempDir()
	name := filepath.Join(dir, "babelftp.yaml")
	for file, content := range map[string]string{name: text, filepath.Join(dir, "secret"): s.SecretAccessKey + "\n"} {
		must.WriteFile(t, file, content)
	}
	return name
}

// For a bucket that does not exist, check prints a single line. A server logs the same line, is ready anyway,
// and stops as usual.
func TestMissingBucket(t *testing.T) {
	s := s3test.Start(t, "minio")
	file := writeConfig(t, s, "no-such-bucket")
	want := fmt.Sprintf(
		"tenant acme: bucket %q: does not exist at %s (NoSuchBucket: The specified bucket does not exist): create it, or correct tenants.acme.bucket", "no-such-bucket",
		s.Endpoint)
	if code, stdout, stderr := output(t, "", "check", "--config", file, "--probe"); code != 1 || stdout != "" ||
		stderr != "babelftp: "+want+"\n" {
		t.Errorf("check: exit code %d: %s%s", code, stdout, stderr)
	}
	p := start(t, nil, "serve", "--config", file)
	address := p.expect(`msg=listening key=listen address=(\S+)`)
	p.expect(`level=ERROR msg="bucket cannot be used.*` + regexp.QuoteMeta(strings.ReplaceAll(want, `"`, `\"`)))
	c := ftptest.Dial(t, address)
	c.Command(331, "USER alice")
	c.Command(421, "PASS correct horse")
	p.stop(syscall.SIGTERM)
}

// systemd is notified when the server is ready and when it stops. A server with an invalid configuration
// never reports that it is ready.
func TestNotifiesSystemd(t *testing.T) {
	s := s3test.Start(t, "minio")
	dir := servicetest.SocketDir(t)
	address := filepath.Join(dir, "notify.sock")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	must.OK(t, err)
	defer l.Close()
	heard := func(want string) {
		t.Helper()
		must.OK(t, l.SetReadDeadline(time.Now().Add(time.Minute)))
		state := make([]byte, 100)
		if n, err := l.Read(state); err != nil || string(state[:n]) != want {
			t.Fatalf("systemd got %q, %v; want %q", state[:n], err, want)
		}
	}
	env := []string{"NOTIFY_SOCKET=" + address}
	file := writeConfig(t, s, s.Bucket(t))
	wrong := filepath.Join(t.TempDir(), "babelftp.yaml")
	must.WriteFile(t, wrong, "listen: x\n")
	if code := start(t, env, "serve", "--config", wrong).ended(); code == 0 {
		t.Error("the server started with an invalid configuration")
	}
	p := start(t, env, "serve", "--config", file)
	heard("READY=1") // the first notification
	p.expect("msg=serving")
	must.OK(t, p.signal(syscall.SIGTERM))
	heard("STOPPING=1")
	if code := p.ended(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// While a server stops, clients that connect to a socket of systemd wait for the next process. Like systemd,
// the test keeps the socket open.
func TestClientsOfSystemdWait(t *testing.T) {
	s := s3test.Start(t, "minio")
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must.OK(t, err)
	defer l.Close()
	socket, err := l.File()
	must.OK(t, err)
	defer socket.Close()
	cmd := program(t, "serve", "--config", writeConfig(t, s, s.Bucket(t)))
	cmd.Args = slices.Concat([]string{"sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`}, []string{cmd.Path}, cmd.Args[1:])
	cmd.Path = "/bin/sh"
	cmd.Env = append(cmd.Env, "LISTEN_FDS=1", "LISTEN_FDNAMES=listen")
	cmd.ExtraFiles = []*os.File{socket}
	p := launch(t, cmd)
	p.expect("msg=serving")
	idle := ftptest.Dial(t, l.Addr().String())
	busy := ftptest.Dial(t, l.Addr().String())
	busy.Login("alice@acme", "correct horse")
	data := busy.Data()
	busy.Command(150, "STOR a")
	must.OK(t, p.signal(syscall.SIGTERM))
	idle.Reply(421) // the server no longer accepts connections
	late := must.Dial(t, l.Addr().String())
	must.OK(t, l.SetDeadline(time.Now().Add(time.Minute)))
	next, err := l.Accept()
	if err != nil {
		t.Fatalf("the client did not wait: %v", err)
	}
	defer next.Close()
	if next.RemoteAddr().String() != late.LocalAddr().String() {
		t.Errorf("got waiting client %v, want %v", next.RemoteAddr(), late.LocalAddr())
	}
	_ = data.Close()
	busy.Reply(226)
	if code := p.ended(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A server that cannot notify systemd still serves.
func TestServesWithoutSystemd(t *testing.T) {
	s := s3test.Start(t, "minio")
	p := start(
		t, []string{"NOTIFY_SOCKET=" + filepath.Join(t.TempDir(), "missing")}, "serve", "--config",
		writeConfig(t, s, s.Bucket(t)))
	p.expect(`level=WARN msg="systemd notification failed`)
	p.stop(syscall.SIGTERM)
}

// check --probe tests the inspector of each tenant and the services of auth, and names those that fail.
func TestCheckServices(t *testing.T) {
	s := s3test.Start(t, "minio")
	clamd := servicetest.StartClamd(t)
	hook := httptest.NewServer(http.NotFoundHandler())
	defer hook.Close()
	provider := oidctest.New(t, oidctest.Behavior{}).URL
	oidc := func(issuer string) string {
		return "admin: {listen: \"127.0.0.1:0\", oidc: {issuer: \"" + issuer + "\", client_id: babelftp, roles: {viewer: [x]}}}"
	}
	for lines, want := range map[string]string{
		"    inspect: {clamd: \"unix:" + clamd + "\"}":                                        "tenant acme: inspect: ok\n",
		"    inspect: {icap: \"icap://" + servicetest.StartCICAP(t, clamd) + "/virus_scan\"}": "tenant acme: inspect: ok\n",
		"    inspect: {clamd: \"unix:" + clamd + "-missing\"}":                                "babelftp: tenant acme: inspect: the inspector returned no verdict",
		"auth: {hook: {url: \"" + hook.URL + "\"}}":                                           "\nauth: ok\n",
		"auth: {hook: {url: \"http://127.0.0.1:1\"}}":                                         "babelftp: auth: ",
		oidc(provider): "\nadmin.oidc: ok: " + provider + ": scopes openid profile email offline_access; ID tokens signed with ES256; " +
			"PKCE with S256: yes; userinfo: yes; logout at the provider: yes; redirect URI: http://localhost:PORT/login/oidc/callback\n",
		oidc("http://127.0.0.1:1"): "babelftp: admin.oidc: cannot read the configuration of http://127.0.0.1:1: the OpenID Connect provider is unavailable",
		oidc(hook.URL):             "babelftp: admin.oidc: cannot read the configuration of " + hook.URL + ": 404 Not Found",
	} {
		file := writeConfig(t, s, s.Bucket(t))
		must.WriteFile(t, file, must.ReadFile(t, file)+lines+"\n")
		code, stdout, stderr := output(t, "", "check", "--config", file, "--probe")
		if !strings.Contains(stdout+stderr, want) || (code == 0) != strings.HasSuffix(want, "\n") {
			t.Errorf("%s: exit code %d: %s%s", lines, code, stdout, stderr)
		}
	}
}

func TestCheck(t *testing.T) {
	s := s3test.Start(t, "minio")
	bucket := s.Bucket(t)
	file := writeConfig(t, s, bucket)
	const ok = "configuration ok: 1 tenant, 1 user\n"
	probed := fmt.Sprintf("tenant acme: bucket %q: ok\n", bucket)
	for _, tc := range []struct{ flags, want string }{
		{"", ok}, {"--probe", probed + ok},
		{"--probe --json", fmt.Sprintf(`{"tenant":"acme","bucket":%q,"ok":true}`, bucket) + "\n"},
	} {
		code, stdout, stderr := output(
			t, "", append([]string{"check", "--config", file}, strings.Fields(tc.flags)...)...)
		if code != 0 || stdout != tc.want || stderr != "" {
			t.Errorf("%s: exit code %d: %s%s", tc.flags, code, stdout, stderr)
		}
	}
	if code, _, stderr := output(t, "", "check", "--config", file, "--json"); code != 2 ||
		!strings.Contains(stderr, "--json requires --probe") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	t.Setenv("BABELFTP_LIMITS_BANS_TIME", "0s")
	t.Setenv("BABELFTP_IDLE_TIMEOUT", "never")
	const want = `environment variable BABELFTP_IDLE_TIMEOUT: idle_timeout: "never" is not a duration: write it like 30s, 5m or 1h30m
environment variable BABELFTP_LIMITS_BANS_TIME: limits.bans.time: must be longer than 0
babelftp: the configuration has 2 problems
`
	if code, stdout, stderr := output(t, "", "check", "--config", file); code != 1 || stdout != "" || stderr != want {
		t.Errorf("exit code %d: %s%s\nwant:\n%s", code, stdout, stderr, want)
	}
}

// check warns about a certificate that expires soon, and rejects an expired one.
func TestCheckCertificates(t *testing.T) {
	dir := t.TempDir()
	file, cert, key := filepath.Join(dir, "babelftp.yaml"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	text := fmt.Sprintf(
		"tls: {cert_file: tls.crt, key_file: tls.key}\ntenants: {acme: {bucket: acme, users: {alice: "+
			"{password_hash: %q}}}}\n", servicetest.PasswordHash().Reveal())
	must.WriteFile(t, file, text)
	const day = 24 * time.Hour
	const ok = "configuration ok: 1 tenant, 1 user\n"
	for name, tc := range map[string]struct {
		left           time.Duration
		code           int
		stdout, stderr string
	}{
		"good": {31 * day, 0, ok, ""},
		"soon": {9*day + time.Hour, 0, ok,
			"warning: tls.cert_file: the certificate in %s for ftp.example expires on %s, in 9 days: renew it\n"},
		"ended": {-time.Minute, 1, "",
			"babelftp: tls.cert_file: the certificate in %s for ftp.example expired on %s, and clients " +
				"reject it: renew it\n"},
	} {
		t.Run(name, func(t *testing.T) {
			end := time.Now().Add(tc.left)
			must.WriteCertificate(t, cert, key, &x509.Certificate{DNSNames: []string{"ftp.example"}, NotAfter: end})
			want := tc.stderr
			if want != "" {
				want = fmt.Sprintf(want, cert, end.UTC().Format(time.DateOnly))
			}
			if code, stdout, stderr := output(t, "", "check", "--config", file); code != tc.code ||
				stdout != tc.stdout || stderr != want {
				t.Errorf("exit code %d: %s%s\nwant:\n%s", code, stdout, stderr, want)
			}
		})
	}
}

// TestLanguagesThatUsersCannotRead checks the warnings about texts that some users cannot read.
func TestLanguagesThatUsersCannotRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "babelftp.yaml")
	for name, tc := range map[string]struct{ server, tenant, want string }{
		"english":  {"", "", ""},
		"another":  {"default_language: fr\n", "hosts: [ftp.acme.example], default_language: de, ", ""},
		"greeting": {"", "greeting: {fr: Bienvenue}, ", ""},
		"default":  {"", "default_language: fr, greeting: {fr: Bienvenue, de: Willkommen}, ", ""},
		"no-default": {
			"", "default_language: ja, welcome: {fr: Bienvenue, de: Willkommen}, ",
			"warning: tenants.acme.welcome has no text in ja, the default language, or in English, and users with " +
				"other languages get no text: add one of them\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf(
				"listen: 127.0.0.1:21\n%stenants: {acme: {%sbucket: acme, users: {alice: {password_hash: %q}}}}\n", tc.server, tc.tenant,
				servicetest.PasswordHash().Reveal())
			must.WriteFile(t, file, text)
			code, stdout, stderr := output(t, "", "check", "--config", file)
			if code != 0 || stdout != "configuration ok: 1 tenant, 1 user\n" || stderr != tc.want {
				t.Errorf("exit code %d: %s%s\nwant:\n%s", code, stdout, stderr, tc.want)
			}
		})
	}
}

// TestCheckInTheClear checks the warning about a server that other machines can reach without TLS.
func TestCheckInTheClear(t *testing.T) {
	file := filepath.Join(t.TempDir(), "babelftp.yaml")
	for server, warned := range map[string]bool{
		"": true, "listen: 203.0.113.7:21": true, "listen: 127.0.0.1:21": false, "tls: {required: false}": false,
		`tls: {acme: {http_listen: ":80", folder: .}}`: false,
	} {
		text := fmt.Sprintf("%s\ntenants: {acme: {hosts: [ftp.example], bucket: acme, users: {alice: {password_hash: %q}}}}\n",
			server, servicetest.PasswordHash().Reveal())
		must.WriteFile(t, file, text)
		code, _, stderr := output(t, "", "check", "--config", file)
		if code != 0 || strings.Contains(stderr, "passwords and files are sent in the clear") != warned {
			t.Errorf("%q: exit code %d: %s", server, code, stderr)
		}
	}
}

// TestCheckRefusedText checks that check fails for each text that the server would reject.
func TestCheckRefusedText(t *testing.T) {
	dir := t.TempDir()
	catalog, file := filepath.Join(dir, "texts", "fr", "messages.gotext.json"), filepath.Join(dir, "babelftp.yaml")
	text := fmt.Sprintf(
		"{listen: 127.0.0.1:21, locales_dir: texts,\ntenants: {acme: {bucket: acme, messages: {ok: {fr: Oui}, godbye: {fr: Salut}}, users: "+
			"{alice: {password_hash: %q}}}}}\n",
		servicetest.PasswordHash().Reveal())
	const messages = `{"language": "fr", "messages": [
{"id": "ok", "message": "OK.", "translation": "Oui."},
{"id": "goodbye", "message": "Goodbye.", "translation": "Salut {User}."}]}`
	if err := errors.Join(
		os.MkdirAll(filepath.Dir(catalog), 0o700), os.WriteFile(catalog, []byte(messages), 0o600),
		os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	want := file + ":2:58: tenants.acme.messages.godbye: unknown message: did you mean goodbye?\n" +
		catalog +
		":3:1: locales_dir: message \"goodbye\": the placeholder {User} is unknown; this message has none\n" +
		"babelftp: the configuration has 2 problems\n"
	if code, stdout, stderr := output(t, "", "check", "--config", file); code != 1 || stdout != "" || stderr != want {
		t.Errorf("exit code %d: %s%s\nwant:\n%s", code, stdout, stderr, want)
	}
}

// A configuration with custom resources is for another command, at the start and when it is reloaded.
func TestServeWithoutResources(t *testing.T) {
	const want = "the configuration has a kubernetes section, and babelftp serve does not read custom resources: run " +
		"babelftp-kubernetes instead, or remove the section"
	file := writeConfig(t, s3test.Start(t, "sim-aws"), "any-bucket")
	text := must.ReadFile(t, file)
	p := start(t, nil, "serve", "--config", file)
	p.expect(`msg=serving`)
	must.WriteFile(t, file, text+"kubernetes: {namespaces: {team-a: {}}}\n")
	must.OK(t, p.signal(syscall.SIGHUP))
	p.expect(`msg="invalid configuration; keeping the previous one" err="` + want)
	p.stop(syscall.SIGTERM)
	if code, _, stderr := output(t, "", "serve", "--config", file); code != 1 || stderr != "babelftp: "+want+"\n" {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	for namespaces, shown := range map[string]string{
		"{team-a: {}}": "1 namespace", "{team-a: {}, team-b: {}}": "2 namespaces", `{team-a: {}, "*": {}}`: "all namespaces",
	} {
		must.WriteFile(t, file, text+"kubernetes: {namespaces: "+namespaces+"}\n")
		code, stdout, stderr := output(t, "", "check", "--config", file)
		if code != 0 || !strings.HasPrefix(stdout, "kubernetes: custom resources of "+shown+"\nconfiguration ok") {
			t.Errorf("check: exit code %d: %s%s", code, stdout, stderr)
		}
	}
}
