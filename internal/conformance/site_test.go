package conformance_test

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/server"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

func TestMain(m *testing.M) { s3test.Main(ftptest.Texts{M: m, Reader: ftptest.Conformance}) }

// password is the password of every user.
const password = servicetest.Password

// hosts lists the names in the server's certificate.
var hosts = []string{"ftp.acme.example", "ftp.umbrella.example", "ftp.nobody.example"}

// settings are lines of YAML that a site adds to the usual configuration.
type settings struct {
	server   string // top-level lines
	acme     string // lines of the tenant acme
	hosts    string // hosts of the tenant acme, separated by commas; ftp.acme.example if empty
	hostless bool   // no tenant has hosts
	storage  string // name of the S3 server in s3test; "sim-aws" if empty
}

// configuration is the configuration of a site. The tenant acme has only users: one with full access, one with
// another root, and one with read access. The tenant umbrella has its own language and greeting.
const configuration = `
listen: "127.0.0.1:0"
metrics_listen: ""
admin_socket: ""
s3: {endpoint: %[1]q, region: %[2]q, path_style: true, access_key_id: %[3]q, secret_access_key: %[4]q}
%[5]s
tenants:
  acme:
    hosts: [%[9]s]
    bucket: %[6]q
    users:
      alice: {password_hash: %[7]q}
      bob: {password_hash: %[7]q, root: /inner}
      carol: {password_hash: %[7]q, permissions: [list, read]}
%[8]s
  umbrella:
    hosts: [ftp.umbrella.example]
    bucket: %[6]q
    prefix: umbrella/
    default_language: de
    greeting: {en: "Welcome to Umbrella", de: "Willkommen bei Umbrella"}
    users:
      ursula: {password_hash: %[7]q}
`

// A site is a server with its own new bucket.
type site struct {
	address string
	tls     *tls.Config // for a client that trusts the server
	client  *s3.Client
	bucket  string
}

func newSite(t *testing.T, extra settings) *site {
	t.Helper()
	storage := s3test.Start(t, cmp.Or(extra.storage, "sim-aws"))
	s := &site{client: storage.Client(), bucket: storage.Bucket(t)}
	text := fmt.Sprintf(configuration, storage.Endpoint, storage.Region, storage.AccessKeyID, storage.SecretAccessKey,
		extra.server, s.bucket, servicetest.PasswordHash().Reveal(), indent(extra.acme),
		cmp.Or(extra.hosts, "ftp.acme.example"))
	file := filepath.Join(t.TempDir(), "babelftp.yaml")
	must.WriteFile(t, file, text)
	cfg, err := config.Load(file, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	cfg.MaxFailedLogins = 50 // some tests need more wrong passwords in a session than the default of five
	cfg.Limits.FailedLoginDelay = 0
	if extra.hostless {
		for _, tenant := range cfg.Tenants {
			tenant.Hosts = nil
		}
	}
	opts := server.Options{AWS: storage.AWSConfig()}
	pair, trusting := must.CertificatePair(
		t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: hosts})
	opts.Certificate, s.tls = &pair, trusting
	s.address = serve(t, cfg, opts)
	return s
}

// indent indents lines of YAML for a tenant.
func indent(lines string) string {
	if lines == "" {
		return ""
	}
	return "    " + strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n    ")
}

// serve runs a server until the end of the test and returns its address.
func serve(t *testing.T, cfg *config.Config, opts server.Options) string {
	t.Helper()
	srv, err := server.New(t.Context(), cfg, opts)
	must.OK(t, err)
	ftptest.Serve(t, srv)
	return srv.Addr().String()
}

// keys returns the keys in the bucket.
func (s *site) keys(t *testing.T) []string {
	t.Helper()
	return s3test.Objects(t, s.client, s.bucket)
}

// put stores an object directly in S3.
func (s *site) put(t *testing.T, key, content string) {
	t.Helper()
	s3test.Put(t, s.client, s.bucket, key, content)
}

// object returns the content of an object.
func (s *site) object(t *testing.T, key string) string {
	t.Helper()
	return s3test.Content(t, s.client, s.bucket, key)
}

// A client is a byte-exact control connection. A broken connection ends the test, and an unexpected reply fails it.
type client struct {
	*ftptest.Client
	t *testing.T
}

// dial connects without reading the greeting.
func (s *site) dial(t *testing.T) *client {
	t.Helper()
	return &client{ftptest.New(t, must.Dial(t, s.address)), t}
}

// got returns reply, or ends the test if err is not nil.
func (c *client) got(reply string, err error) string {
	c.t.Helper()
	must.OK(c.t, err)
	return reply
}

// connect connects and reads the greeting.
func (s *site) connect(t *testing.T) *client {
	t.Helper()
	c := s.dial(t)
	if r := c.reply(); !strings.HasPrefix(r, "220") {
		t.Fatalf("unexpected greeting %q", r)
	}
	return c
}

// login logs in as alice of acme.
func (s *site) login(t *testing.T) *client {
	t.Helper()
	c := s.connect(t)
	c.login()
	return c
}

func (c *client) login() {
	c.t.Helper()
	c.Login("alice", password)
}

// startTLS starts TLS with the given server name, which may be empty.
func (c *client) startTLS(s *site, serverName string) {
	c.t.Helper()
	c.must("234", "AUTH TLS")
	cfg := s.tls.Clone()
	if serverName != "" {
		cfg.ServerName = serverName
	}
	must.OK(c.t, c.StartTLS(cfg))
}

// write sends bytes.
func (c *client) write(bytes string) {
	c.t.Helper()
	must.Write(c.t, c, bytes)
}

// send sends a command line and returns the reply.
func (c *client) send(line string) string {
	c.t.Helper()
	return c.got(c.Send(line))
}

// reply reads one reply.
func (c *client) reply() string {
	c.t.Helper()
	return c.got(c.Conn.Reply())
}

// want sends a command line, checks the beginning of the reply, and returns the reply.
func (c *client) want(prefix, line string) string {
	c.t.Helper()
	r := c.send(line)
	if !strings.HasPrefix(r, prefix) {
		c.t.Errorf("%.300q: reply %.300q, want %.300q", line, r, prefix)
	}
	return r
}

// must is like want but ends the test if the reply is wrong.
func (c *client) must(prefix, line string) string {
	c.t.Helper()
	r := c.want(prefix, line)
	if !strings.HasPrefix(r, prefix) {
		c.t.FailNow()
	}
	return r
}

// wantReply reads a reply and checks its beginning.
func (c *client) wantReply(prefix string) string {
	c.t.Helper()
	r := c.reply()
	if !strings.HasPrefix(r, prefix) {
		c.t.Errorf("reply %q, want %q", r, prefix)
	}
	return r
}

// wantBytes reads bytes that are not part of a reply and checks them.
func (c *client) wantBytes(want string) {
	c.t.Helper()
	if got, err := c.Bytes(len(want)); err != nil || got != want {
		c.t.Fatalf("got %q, %v; want %q", got, err, want)
	}
}

// list returns the lines of a listing.
func (c *client) list(line string) []string {
	c.t.Helper()
	content := c.Transfer(line)
	if content == "" {
		return nil
	}
	if !strings.HasSuffix(content, "\r\n") {
		c.t.Errorf("%q: the last line of %q has no line end", line, content)
	}
	return strings.Split(strings.TrimSuffix(content, "\r\n"), "\r\n")
}

// names returns the names in an MLSD listing: the text after the first SP of each line (RFC 3659 7.2).
func (c *client) names(line string) []string {
	c.t.Helper()
	var names []string
	for _, entry := range c.list(line) {
		facts, name, _ := strings.Cut(entry, " ")
		if !strings.Contains(facts, "type=cdir;") && !strings.Contains(facts, "type=pdir;") {
			names = append(names, name)
		}
	}
	return names
}

// entry returns the facts and the pathname in the reply to MLST.
func (c *client) entry(line string) (facts, name string) {
	c.t.Helper()
	r := c.want("250-", line)
	lines := strings.Split(r, "\r\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], " ") || !strings.HasPrefix(lines[2], "250") {
		c.t.Errorf("%.300q: reply %.300q, want one entry between two lines", line, r)
		return "", ""
	}
	facts, name, _ = strings.Cut(lines[1][1:], " ")
	return facts, name
}

// features returns the feature lines of FEAT without their leading SP.
func (c *client) features() []string {
	c.t.Helper()
	lines := strings.Split(c.must("211-", "FEAT"), "\r\n")
	var features []string
	for _, line := range lines[1 : len(lines)-1] {
		features = append(features, strings.TrimPrefix(line, " "))
	}
	return features
}

// feature returns the FEAT line that begins with a label, or "".
func (c *client) feature(label string) string {
	c.t.Helper()
	for _, f := range c.features() {
		if f == label || strings.HasPrefix(f, label+" ") {
			return f
		}
	}
	return ""
}

// nvt encodes a pathname for the control connection: CR is padded (RFC 2640 3.1) and 255 is doubled (RFC 3659 2.2).
func nvt(name string) string {
	return strings.NewReplacer("\r", "\r\x00", "\xff", "\xff\xff").Replace(name)
}

// shown returns a pathname as it appears in replies and listings: CR and LF are control pictures (RFC 3659 2.2) and
// 255 is doubled.
func shown(name string) string { return pictures.Replace(strings.ReplaceAll(name, "\xff", "\xff\xff")) }

var pictures = strings.NewReplacer("\r", "\u240d", "\n", "\u240a")
