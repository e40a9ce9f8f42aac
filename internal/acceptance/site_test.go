package acceptance_test

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// password is the password of all users. Some of its characters are special in shells and URLs.
const password = `p4ss "wörd" $1`

// oldPassword can be sent in every charset.
const oldPassword = "secret"

// Tenants of the site. Both have a user alice, so only the host or user@tenant distinguishes them.
const (
	acme     = "acme"
	umbrella = "umbrella"
	// prefix is the prefix of acme's keys.
	prefix = "inbox/"
)

// configuration is the configuration of a site. Tests append lines, starting with lines for acme, which are
// indented by four spaces.
const configuration = `
listen: "%[8]s:0"
metrics_listen: "127.0.0.1:0"
admin_socket: ""
limits: {address: {sessions: 0}, login_timeout: 5m}
tls: {implicit_listen: "%[8]s:0", cert_file: tls.crt, key_file: tls.key, required: false}
s3:
  endpoint: %[1]q
  region: %[2]q
  path_style: true
  access_key_id: %[3]q
  secret_access_key_file: secret
part_size: 5MiB
tenants:
  umbrella:
    hosts: [ftp.umbrella.example]
    bucket: %[5]q
    default_language: de
    greeting: {de: "Willkommen bei Umbrella"}
    users:
      alice: {password_hash: %[6]q}
  acme:
    hosts: [ftp.acme.example]
    bucket: %[4]q
    prefix: inbox/
    default_language: fr
    greeting: {en: "Welcome to Acme", fr: "Bienvenue chez Acme", ja: "Acmeへようこそ"}
    users:
      alice: {password_hash: %[6]q}
%[7]s
`

// A site is babelftp serving two tenants on an S3 server.
type site struct {
	server  *process
	program string   // program to start, "" for the build under test
	host    string   // address to listen on, "" for 127.0.0.1
	env     []string // variables of the environment, NAME=value
	storage *s3test.Server
	client  *s3.Client
	buckets map[string]string // by tenant

	address  string // address of the control connection
	implicit string // address of the control connection with implicit TLS
	metrics  string
	ca       string // file of the certificate to trust
}

// newSite starts babelftp with new buckets on an S3 server. The lines are appended to the configuration. Lines
// indented by two spaces define more tenants. BUCKET is replaced with acme's bucket and HASH with the hash of the
// users' password.
func newSite(t *testing.T, storage *s3test.Server, lines ...string) *site {
	t.Helper()
	return newSiteOn(t, "", storage, lines...)
}

// newSiteOn is like newSite for a site that listens on a host, or on all addresses for "[::]".
func newSiteOn(t *testing.T, host string, storage *s3test.Server, lines ...string) *site {
	t.Helper()
	return (&site{host: host}).open(t, storage, lines...)
}

// open starts the site with new buckets.
func (s *site) open(t *testing.T, storage *s3test.Server, lines ...string) *site {
	t.Helper()
	s.storage, s.client = storage, storage.Client()
	s.buckets = map[string]string{acme: storage.Bucket(t), umbrella: storage.Bucket(t)}
	file := s.configure(t, lines...)
	s.ca = filepath.Join(filepath.Dir(file), "tls.crt")
	s.start(t, file)
	return s
}

// fewAttempts makes a server give up soon.
const fewAttempts = "AWS_MAX_ATTEMPTS=3"

// newSiteBehindProxy starts a site that reaches its S3 server through a proxy and makes at most three attempts per
// request. The test itself bypasses the proxy.
func newSiteBehindProxy(t *testing.T, storage *s3test.Server, lines ...string) (*site, *s3test.Proxy) {
	t.Helper()
	s := new(site)
	return s, s.openBehindProxy(t, storage, lines...)
}

// openBehindProxy is like open with a proxy in front of the S3 server.
func (s *site) openBehindProxy(t *testing.T, storage *s3test.Server, lines ...string) *s3test.Proxy {
	t.Helper()
	proxy := s3test.StartProxy(t, storage)
	s.env = append(s.env, fewAttempts)
	s.open(t, proxy.Server(), lines...)
	s.client = storage.Client()
	return proxy
}

// start starts babelftp with a configuration and waits until it has checked the buckets. A login would wait only a
// few seconds for that, which may be too short on a busy machine.
func (s *site) start(t *testing.T, file string) {
	t.Helper()
	program := s.program
	if program == "" {
		program = binary(t)
	}
	command := []string{program, "serve", "--config", file}
	if len(s.env) > 0 {
		command = slices.Concat([]string{"env"}, s.env, command)
	}
	s.server = launch(t, command[0], command[1:]...)
	t.Cleanup(func() { s.stop(t) })
	s.server.expect(s.server.stderr, `msg=serving`)
	s.address, s.implicit, s.metrics = s.listens("listen"), s.listens("tls.implicit_listen"),
		s.listens("metrics_listen")
	for _, tenant := range []string{acme, umbrella} {
		up := fmt.Sprintf(`babelftp_bucket_up{folder="",tenant=%q}`, tenant)
		waitUntil(t, func() bool {
			_, known := s.find(t, up)
			return known
		}, func() { t.Fatalf("/metrics lacks %s", up) })
	}
}

// killed kills the server and starts another one on the same buckets.
func (s *site) killed(t *testing.T, lines ...string) {
	t.Helper()
	s.server.kill()
	file := s.configure(t, lines...)
	s.ca = filepath.Join(filepath.Dir(file), "tls.crt")
	s.start(t, file)
}

// listens returns the address of a listener by its configuration key.
func (s *site) listens(key string) string {
	return s.server.expect(s.server.stderr, `msg=listening key=`+regexp.QuoteMeta(key)+` address=(\S+)`)[1]
}

// configure writes the configuration and the files it names, and returns its path.
func (s *site) configure(t *testing.T, lines ...string) string {
	t.Helper()
	dir := t.TempDir()
	cert, key := must.Certificate(t, &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		DNSNames:    []string{"ftp.acme.example", "ftp.umbrella.example"},
	})
	file := filepath.Join(dir, "babelftp.yaml")
	hash := passwordHash(t, password)
	added := strings.NewReplacer("BUCKET", s.buckets[acme], "HASH", strconv.Quote(hash)).Replace(
		strings.Join(lines, "\n"))
	for name, text := range map[string]string{
		"tls.crt": cert,
		"tls.key": key,
		"secret":  s.storage.SecretAccessKey + "\n",
		filepath.Base(file): fmt.Sprintf(configuration, s.storage.Endpoint, s.storage.Region, s.storage.AccessKeyID,
			s.buckets[acme], s.buckets[umbrella], hash, added, cmp.Or(s.host, "127.0.0.1")),
	} {
		must.WriteFile(t, filepath.Join(dir, name), text)
	}
	return file
}

// stop stops the server like Kubernetes does, unless the test has already ended it, and checks for races.
func (s *site) stop(t *testing.T) {
	t.Helper()
	if !s.server.ended() {
		s.server.signal(syscall.SIGTERM)
		if code := s.server.wait(); code != 0 {
			t.Errorf("the server ended with exit code %d", code)
		}
	}
	s.server.mustBeClean()
}

// mustBeClean checks that babelftp reported no race or panic.
func (p *process) mustBeClean() {
	text := p.stderr.String()
	if at := regexp.MustCompile(`DATA RACE|panic`).FindStringIndex(text); at != nil {
		const enough = 8 << 10
		p.t.Errorf("%v: %.*s", p, enough, text[at[0]:])
	}
}

// passwordHash returns the result of `babelftp hash-password`.
func passwordHash(t *testing.T, password string) string {
	t.Helper()
	built.hashing.Lock()
	defer built.hashing.Unlock()
	hash, found := built.hashes[password]
	if !found {
		hash = strings.TrimSpace(launchWith(t, password+"\n", binary(t), "hash-password").succeed())
		if built.hashes == nil {
			built.hashes = map[string]string{}
		}
		built.hashes[password] = hash
	}
	return hash
}

// objects returns the names of acme's objects below a directory, or all for "", in bucket order.
func (s *site) objects(t *testing.T, dir string) []string {
	t.Helper()
	return below(t, dir, s3test.Objects(t, s.client, s.buckets[acme]))
}

// uploads returns the names of acme's open multipart uploads below a directory.
func (s *site) uploads(t *testing.T, dir string) []string {
	t.Helper()
	return below(t, dir, s3test.OpenUploads(t, s.client, s.buckets[acme]))
}

// below returns the sorted names below a directory from acme's keys.
func below(t *testing.T, dir string, keys []string) []string {
	t.Helper()
	names := []string{}
	for _, key := range keys {
		name, ours := strings.CutPrefix(key, prefix+dir)
		if !strings.HasPrefix(key, prefix) {
			t.Errorf("the key %q is outside of the tenant's prefix", key)
		}
		if ours {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// mustStore checks the content of one of acme's objects.
func (s *site) mustStore(t *testing.T, name string, content []byte) {
	t.Helper()
	if got := s3test.Content(t, s.client, s.buckets[acme], prefix+name); got != string(content) {
		t.Errorf("object %q has %d bytes %.40q, want %d %.40q", name, len(got), got, len(content), content)
	}
}

// metric returns the value of a metric, or 0 if the server does not export it.
func (s *site) metric(t *testing.T, name string) float64 {
	t.Helper()
	value, _ := s.find(t, name)
	return value
}

// find returns the value of a metric and reports whether the server exports it.
func (s *site) find(t *testing.T, name string) (value float64, found bool) {
	t.Helper()
	_, text := servicetest.Get(t, "http://"+s.metrics+"/metrics")
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	value, err := strconv.ParseFloat(m[1], 64)
	must.OK(t, err)
	return value, true
}

// replaceIn replaces the first occurrence of a text in a configuration file.
func replaceIn(t *testing.T, file, old, changed string) {
	t.Helper()
	text := must.ReadFile(t, file)
	before, after, found := strings.Cut(text, old)
	if !found {
		t.Fatalf("%s lacks %q", file, old)
	}
	must.WriteFile(t, file, before+changed+after)
}

// awaitMetric waits until a metric has a value.
func (s *site) awaitMetric(t *testing.T, name string, want float64) {
	t.Helper()
	var got float64
	waitUntil(t, func() bool {
		got = s.metric(t, name)
		return got == want
	}, func() { t.Fatalf("%s is %v, want %v", name, got, want) })
}
