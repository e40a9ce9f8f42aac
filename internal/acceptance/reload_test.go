package acceptance_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/certtest"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

const (
	reloaded    = `msg="configuration reloaded"`
	refused     = `msg="configuration refused, and the one before stays in use; correct it"`
	refusedText = `level=WARN msg="text refused, and the built-in one is used; correct it"`
)

// A reloadSite is a site whose configuration changes while it runs.
type reloadSite struct {
	*site
	t    *testing.T
	file string // the configuration
}

func newReloadSite(t *testing.T, lines ...string) *reloadSite {
	t.Helper()
	s := newSite(t, s3test.Start(t, "minio"), lines...)
	return &reloadSite{site: s, t: t, file: filepath.Join(filepath.Dir(s.ca), "babelftp.yaml")}
}

// edit replaces texts of the configuration, and waits for a line of the log.
func (s *reloadSite) edit(want string, oldnew ...string) {
	s.t.Helper()
	text, err := os.ReadFile(s.file)
	if err != nil {
		s.t.Fatal(err)
	}
	changed := strings.NewReplacer(oldnew...).Replace(string(text))
	if changed == string(text) {
		s.t.Fatalf("the configuration has none of %q", oldnew)
	}
	s.after(want, func() { certtest.Replace(s.t, s.file, changed) })
}

// after does something and waits for one more line of the log.
func (s *reloadSite) after(want string, do func()) {
	s.t.Helper()
	count := func() int { return strings.Count(s.server.stderr.String(), want) }
	before := count()
	do()
	waitUntil(s.t, func() bool { return count() > before }, func() { s.t.Fatalf("no further line has %s", want) })
}

// login logs in, or wants to be refused.
func (s *reloadSite) login(user string, code int) *ftptest.Client {
	s.t.Helper()
	c := ftptest.Dial(s.t, s.address)
	c.Command(331, "USER "+user)
	c.Command(code, "PASS "+password)
	return c
}

// Users, tenants, texts and settings change without a restart, and no transfer ends. A broken configuration changes
// nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	s := newReloadSite(t, "      bob: {password_hash: HASH}")
	alice, bob := s.login("alice@acme", 230), s.login("bob", 230)
	alice.Command(200, "TYPE I")
	data := alice.Data()
	alice.Command(150, "STOR late")
	write := func(text string) {
		t.Helper()
		if _, err := data.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write("before, ")
	hash := s.metric(t, "babelftp_config_hash")

	// A user more, one less, and a tenant less.
	s.login("carol", 530)
	s.edit(reloaded, "      bob: {", "      carol: {")
	s.login("carol", 230).Command(257, "MKD here")
	s.login("bob", 530)
	bob.Store("of-bob", "bob has logged in before")
	s.mustStore(t, "of-bob", []byte("bob has logged in before"))
	if s.metric(t, "babelftp_config_hash") == hash || s.metric(t, "babelftp_config_reload_success") != 1 {
		t.Error("the metrics do not tell of the new configuration")
	}
	write("between, ")

	// A broken one is refused, with the place; a signal reads it again.
	s.edit(refused, "bucket:", "buckets:")
	line := s.server.expect(s.server.stderr, refused+` file=(\S+) line=(\d+) column=5 key=tenants.umbrella.buckets`)
	if line[1] != s.file || s.metric(t, "babelftp_config_reload_success") != 0 {
		t.Errorf("refused %s, success is %v", line[0], s.metric(t, "babelftp_config_reload_success"))
	}
	s.login("carol", 230)
	s.after(refused, func() { s.server.signal(syscall.SIGHUP) })
	s.edit(reloaded, "buckets:", "bucket:")
	if s.metric(t, "babelftp_config_reload_success") != 1 {
		t.Error("the configuration is still refused")
	}
	s.after(reloaded, func() { s.server.signal(syscall.SIGHUP) })

	// What cannot change is named, and the rest counts.
	s.edit(
		reloaded, "listen: \"127.0.0.1:0\"\nmetrics_listen", "listen: \"127.0.0.1:1\"\nmemory: 64MiB\nmetrics_listen",
		"Willkommen bei", "Neues von")
	for _, key := range []string{"listen", "memory"} {
		s.server.expect(s.server.stderr, `level=WARN msg="a changed value or file needs a restart[^"]*" key=`+key)
	}
	if got := ftptest.Dial(t, s.address).Command(220, "HOST ftp.umbrella.example"); !strings.Contains(
		got, "Neues von Umbrella") {
		t.Errorf("the greeting is %q", got)
	}

	write("after")
	_ = data.Close()
	alice.Reply(226)
	s.mustStore(t, "late", []byte("before, between, after"))
}

// The operator's texts and the certificate are read again when their files change.
func TestReloadTextsAndCertificate(t *testing.T) {
	t.Parallel()
	s := newReloadSite(t)
	dir := filepath.Dir(s.file)
	catalogue := filepath.Join(dir, "texts", "fr", "messages.gotext.json")
	if err := os.MkdirAll(filepath.Dir(catalogue), 0o700); err != nil {
		t.Fatal(err)
	}
	say := func(text string) {
		certtest.Replace(
			t, catalogue, fmt.Sprintf(
				`{"language": "fr", "messages": [{"id": "goodbye", "message": "Goodbye.", "translation": %q}]}`, text))
	}
	say("À demain.")
	s.edit(reloaded, "part_size:", "locales_dir: texts\npart_size:")
	idle := s.login("alice@acme", 230)
	s.after(reloaded, func() { say("Bonne route.") })
	if got := idle.Command(221, "QUIT"); got != "À demain." {
		t.Errorf("the session from before says %q", got)
	}
	if got := s.login("alice@acme", 230).Command(221, "QUIT"); got != "Bonne route." {
		t.Errorf("a new session says %q", got)
	}
	s.after(reloaded, func() { say("{}") })
	if got := s.login("alice@acme", 230).Command(221, "QUIT"); got != "Au revoir." {
		t.Errorf("with a wrong text a session says %q, want the built-in one", got)
	}
	s.server.expect(
		s.server.stderr, refusedText+` file=`+catalogue+
			` line=1 column=33 key=locales_dir problem="message \\"goodbye\\": the placeholder {} is unknown; this message has none"`)
	s.after(refused, func() { certtest.Replace(t, catalogue, "{") })
	s.after(reloaded, func() { say("À demain.") })
	s.edit(reloaded, "default_language: fr", `default_language: fr
    messages: {status-transfer: {fr: {select: {feature: plural, arg: Bytes, cases: {"=0": "Acme attend le premier octet", one: "Acme a {Bytes} octet", other: "Acme a {Bytes} octets"}}}}}`)
	alice := s.login("alice@acme", 230)
	data := alice.Data()
	alice.Command(150, "STOR texts")
	if got := alice.Command(211, "STAT"); !strings.Contains(got, "Acme attend le premier octet") {
		t.Errorf("STAT says %q", got)
	}
	_ = data.Close()
	alice.Reply(226)

	serial := func() int64 {
		t.Helper()
		// it looks at the serial number only
		conn, err := tls.Dial("tcp", s.implicit, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	say("Bonne route.")
	cert, key := certtest.New(
		t, &x509.Certificate{SerialNumber: big.NewInt(4711), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	s.after(refused, func() { certtest.Replace(t, filepath.Join(dir, "tls.crt"), cert) })
	if got := serial(); got == 4711 {
		t.Error("a certificate without its key is shown")
	}
	s.after(reloaded, func() { certtest.Replace(t, filepath.Join(dir, "tls.key"), key) })
	if got := serial(); got != 4711 {
		t.Errorf("the certificate is %d", got)
	}
}

// A wrong text of a tenant's is logged with its place, at the start and at a reload, and the built-in one serves. A
// value of another type is no text: the configuration before stays.
func TestReloadWrongTexts(t *testing.T) {
	t.Parallel()
	const (
		right  = `fr: "À demain."`
		wrong  = `fr: "À demain, {User}."`
		plural = `idle-timeout: {pl: {select: {feature: plural, arg: Seconds, cases: {one: "Sekunda.", other: "{Seconds} s."}}}}`
	)
	s := newReloadSite(t, "    messages: {goodbye: {"+right+"}, godbye: {fr: Salut}}")
	want := func(goodbye string, wrong float64) {
		t.Helper()
		if got := s.login("alice@acme", 230).Command(221, "QUIT"); got != goodbye {
			t.Errorf("a session ends with %q, want %q", got, goodbye)
		}
		if got := s.metric(t, "babelftp_config_refused_texts"); got != wrong {
			t.Errorf("the metric counts %v wrong texts, want %v", got, wrong)
		}
	}
	says := func(message, column, problem string) {
		t.Helper()
		text, err := os.ReadFile(s.file)
		if err != nil {
			t.Fatal(err)
		}
		before, _, _ := strings.Cut(string(text), "    messages: ")
		s.server.expect(
			s.server.stderr, fmt.Sprintf(`%s file=%s line=%d column=%s key=tenants\.acme\.messages\.%s problem="%s`,
				refusedText, s.file, 1+strings.Count(before, "\n"), column, message, problem))
	}
	says("godbye", "44", "no such message: did you mean goodbye")
	want("À demain.", 1)

	s.edit(reloaded, right, wrong, "part_size: 5MiB", "\npart_size: 6MiB")
	says(`goodbye\.fr`, "30", `the placeholder {User} is unknown; this message has none"`)
	want("Au revoir.", 2)
	s.edit(reloaded, "godbye: {fr: Salut}", plural)
	says(
		`idle-timeout\.pl`, `\d+`,
		`the plural form \\"few\\" is missing, which the language has for 2, 3, 4 and others; add it"`)
	want("Au revoir.", 3)

	s.edit(refused, wrong, `fr: ["À demain."]`)
	s.server.expect(
		s.server.stderr,
		refused+` file=\S+ line=\d+ column=\d+ key=tenants\.acme\.messages\.goodbye\.fr problem="must be`)
	want("Au revoir.", 3)
	s.edit(reloaded, `fr: ["À demain."]`, right, plural, `ok: {fr: "Bien."}`)
	want("À demain.", 0)
}

// Kubernetes changes a mounted volume by a link to another folder, and removes the folder before.
func TestReloadOfAVolume(t *testing.T) {
	t.Parallel()
	s := &reloadSite{t: t, site: &site{storage: s3test.Start(t, "minio")}}
	s.client = s.storage.Client()
	s.buckets = map[string]string{acme: s.storage.Bucket(t), umbrella: s.storage.Bucket(t)}
	volume := t.TempDir()
	s.file = filepath.Join(volume, "babelftp.yaml")
	mount := func(version string, lines ...string) {
		t.Helper()
		err := os.Rename(filepath.Dir(s.configure(t, lines...)), filepath.Join(volume, version))
		if err == nil {
			err = os.Symlink(version, filepath.Join(volume, "..data_tmp"))
		}
		if err == nil {
			err = os.Rename(filepath.Join(volume, "..data_tmp"), filepath.Join(volume, "..data"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	mount("..2026_11_22_1")
	for _, name := range []string{"babelftp.yaml", "tls.crt", "tls.key", "secret"} {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(volume, name)); err != nil {
			t.Fatal(err)
		}
	}
	s.start(t, s.file)
	for version := 2; version < 5; version++ {
		user := fmt.Sprintf("user%d", version)
		s.login(user, 530)
		s.after(reloaded, func() {
			mount(fmt.Sprintf("..2026_11_22_%d", version), "      "+user+": {password_hash: HASH}")
			if err := os.RemoveAll(filepath.Join(volume, fmt.Sprintf("..2026_11_22_%d", version-1))); err != nil {
				t.Fatal(err)
			}
		})
		s.login(user, 230)
	}
}
