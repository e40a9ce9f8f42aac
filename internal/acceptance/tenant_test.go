package acceptance_test

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/certtest"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// ownTenants say what they say in words of their own. CERT and KEY are files.
const ownTenants = `
  atelier:
    hosts: [ftp.atelier.example]
    tls: {cert_file: CERT, key_file: KEY}
    bucket: BUCKET
    prefix: inbox/
    languages: [fr, ja, en]
    default_language: fr
    greeting: {fr: "Bienvenue à l’atelier", en: "Welcome to the atelier"}
    welcome:
      fr: |
        Bonjour {User}, ici {Tenant}.
        Dernière visite : {LastLogin}.
      ja: "{User}さん、こんにちは。"
    greet_after_lang: true
    messages:
      goodbye: {fr: "À la prochaine.", ja: "またどうぞ。"}
      password-required: {en: "Badge number of {User}, please."}
    presign: 2h
    users:
      alice: {password_hash: HASH}
      bob: {password_hash: HASH, permissions: [list, write]}
`

// newTLSSite starts babelftp with ownTenants, and returns the file of the atelier's certificate too.
func newTLSSite(t *testing.T) (s *site, ca string) {
	t.Helper()
	dir := newFolder(t)
	cert, key := certtest.New(t, &x509.Certificate{DNSNames: []string{"ftp.atelier.example"}})
	ca = dir.write("cert", []byte(cert))
	tenants := strings.NewReplacer("CERT", ca, "KEY", dir.write("key", []byte(key))).Replace(ownTenants)
	return newSite(t, s3test.Start(t, "minio"), tenants), ca
}

// TestTenantsOwnTexts has a whole conversation with a tenant that offers three languages and texts of its own.
func TestTenantsOwnTexts(t *testing.T) {
	t.Parallel()
	s, _ := newTLSSite(t)
	const lastLogin = `\d{4}-\d\d-\d\d \d\d:\d\d UTC`
	for _, again := range []bool{false, true} {
		visit := ""
		if again {
			visit = ` Dernière visite : ` + lastLogin + `\.\n`
		}
		c := ftptest.Dial(t, s.address)
		for _, step := range []struct {
			command string
			code    int
			want    string // pattern of the whole text
		}{
			{"HOST ftp.atelier.example", 220, `Bienvenue à l’atelier`},
			{"LANG en", 200, `Welcome to the atelier\nReplies are now in English\.`},
			{"USER alice", 331, `Badge number of alice, please\.`},
			{"LANG de", 504, `.*FR;JA;EN`},
			{"LANG ja", 200,
				`Bienvenue à l’atelier\n応答の言語を日本語に変更しました。`}, // a greeting that ja lacks is in the default language
			{"LANG", 200, `Bienvenue à l’atelier\nLes réponses sont désormais en français\.`},
			{"PASS " + password, 230, `Bonjour alice, ici atelier\.\n` + visit + `Authentification réussie\.`},
			{"LANG ja", 200, `aliceさん、こんにちは。\n応答の言語を日本語に変更しました。`},
			{"FEAT", 211, `(?s).*\n LANG FR;JA\*;EN\n.*`},
			{"LANG fr-CA", 200, `(?s)Bonjour alice.*Les réponses sont désormais en français\.`},
			{"SITE URL x", 550, `.*`},
			{"LANG ja", 200, `(?s).*`},
			{"QUIT", 221, `またどうぞ。`},
		} {
			text := c.Command(step.code, step.command)
			if !regexp.MustCompile(`^(?:` + step.want + `)$`).MatchString(text) {
				t.Errorf("%s: %q, want %s", step.command, text, step.want)
			}
		}
	}
}

// TestLinks asks for links, and fetches them with a client of HTTP that knows no FTP.
func TestLinks(t *testing.T) {
	t.Parallel()
	s, _ := newTLSSite(t)
	alice := s.connect(t, "", true)
	alice.must("login", "alice@atelier", password)
	local := newFolder(t)
	const name = "/dir 目録/日本語 100%? #1+&.txt"
	alice.must("mkdir", "/dir 目録")
	alice.must("upload", local.write("data", []byte("content")), name)
	for _, asked := range []string{name, name + " 90", name + " 1h30m"} {
		reply := alice.must("command", "SITE PRESIGN "+asked)
		m := regexp.MustCompile(`(?m)^ (http\S+)$`).FindStringSubmatch(reply)
		if m == nil {
			t.Fatalf("%s: %s", asked, reply)
		}
		launch(
			t, command(t, "curl"), "-q", "--fail", "--silent", "--show-error", "--cacert", s.ca, "--output",
			local.file("back"),
			"--dump-header", local.file("header"), m[1]).succeed()
		local.mustHave("back", []byte("content"))
		header, err := os.ReadFile(local.file("header"))
		if err != nil || !strings.Contains(
			string(header), `filename*=UTF-8''%E6%97%A5%E6%9C%AC%E8%AA%9E%20100%25%3F%20%231%2B%26.txt`) {
			t.Errorf("%s: %s %v", asked, header, err)
		}
	}
	for asked, want := range map[string]string{
		name + " 3h": "501 ", name + " 0": "501 ", "/nothing": "550 ", "/nothing 60": "550 ", "/dir 目録": "550 ",
	} {
		alice.refused(want, "command", "SITE PRESIGN "+asked)
	}
	bob := s.connect(t, "", true)
	bob.must("login", "bob@atelier", password)
	bob.refused("550 ", "command", "SITE PRESIGN "+name)
	newFtplib(t, s, usual).refused("550 ", "command", "SITE PRESIGN "+name) // acme hands out none

	// The address of SITE URL is the file's, for curl as it is.
	m := regexp.MustCompile(`(?m)^ ftp://(\S+@\S+)$`).FindStringSubmatch(alice.must("command", "SITE URL "+name))
	if m == nil {
		t.Fatal("no ftp URI")
	}
	user, rest, _ := strings.Cut(m[1], "@")
	c := newCurl(t, s, usual)
	if got := c.run("--user", strings.ReplaceAll(user, "%40", "@")+":"+password, "ftp://"+rest); got != "content" {
		t.Errorf("SITE URL: %q", got)
	}
}

// TestTenantCertificate: who names the tenant's host to TLS is shown the tenant's certificate, on all its
// connections, and everybody else the server's.
func TestTenantCertificate(t *testing.T) {
	t.Parallel()
	s, ca := newTLSSite(t)
	file := newFolder(t).write("file", []byte("content"))
	_, explicit, _ := strings.Cut(s.address, ":")
	_, implicit, _ := strings.Cut(s.implicit, ":")
	for _, tt := range []struct{ name, ca, url, host, user string }{
		{"tenant-implicit", ca, "ftps://ftp.atelier.example:" + implicit, "ftp.atelier.example", "alice"},
		{"tenant-explicit", ca, "ftp://ftp.atelier.example:" + explicit, "ftp.atelier.example", "alice"},
		{"other-tenant", s.ca, "ftps://ftp.acme.example:" + implicit, "ftp.acme.example", "alice"},
		{"address", s.ca, "ftps://" + s.implicit, "127.0.0.1", "alice@atelier"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			port := implicit
			if strings.HasPrefix(tt.url, "ftp://") {
				port = explicit
			}
			c := newCurl(t, s, usual)
			c.run(
				"--cacert", tt.ca, "--ssl-reqd", "--resolve", tt.host+":"+port+":127.0.0.1", "--user",
				tt.user+":"+password,
				"--upload-file", file, tt.url+"/"+tt.name)
			s.mustStore(t, tt.name, []byte("content"))
		})
	}
	// A certificate that has changed is shown to the next who comes.
	cert, key := certtest.New(t, &x509.Certificate{DNSNames: []string{"ftp.atelier.example"}})
	for name, text := range map[string]string{"cert": cert, "key": key} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(ca), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := newCurl(t, s, usual)
	waitUntil(t, func() bool {
		return c.start(
			"--cacert", ca, "--resolve", "ftp.atelier.example:"+implicit+":127.0.0.1", "--user", "alice:"+password,
			"ftps://ftp.atelier.example:"+implicit+"/").wait() == 0
	}, func() { t.Error("the new certificate is not shown") })
}

// TestQuota fills what a tenant may store, with a large file and a small one, and makes room again.
func TestQuota(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"), `
  atelier:
    bucket: BUCKET
    default_language: fr
    quota: 12MiB
    welcome: {fr: "Espace : {Quota}"}
    users:
      claire: {password_hash: HASH}
`)
	claire := s.connect(t, "", true)
	claire.must("login", "claire@atelier", password)
	local := newFolder(t)
	small, large := local.write("small", content(1<<20)), local.write("large", content(11<<20))
	tooMuch := local.write("too-much", content(1<<20+1))
	claire.must("upload", large, "large")
	claire.refused("552 Le quota est dépassé.", "upload", tooMuch, "small")
	claire.must("upload", small, "small")
	for _, file := range []string{small, large} { // now there is room for nothing
		claire.refused("552 Le quota est dépassé.", "upload", file, "more")
	}
	if usage := claire.must("command", "SITE QUOTA"); !strings.Contains(usage, "12 Mio / 12 Mio") {
		t.Errorf("SITE QUOTA: %s", usage)
	}
	claire.must("upload", large, "large") // what it replaces makes room
	claire.must("remove", "large")
	claire.must("upload", small, "more")
	again := s.connect(t, "", true)
	if welcome := again.must("login", "claire@atelier", password); !strings.Contains(
		welcome, "Espace : 2 Mio / 12 Mio\n") {
		t.Errorf("the welcome is %s", welcome)
	}
}
