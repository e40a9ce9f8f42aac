package server

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A certified is a server with authorities of client certificates, and the certificates of clients.
type certified struct {
	t       *testing.T
	cfg     *config.Config
	root    *must.Authority
	clients map[string]tls.Certificate // by name
	log     *servicetest.Log
	srv     *Server
}

// issue issues a certificate for a client.
func (c *certified) issue(by *must.Authority, name string, serial int64) {
	c.t.Helper()
	cert, key := by.Issue(&x509.Certificate{
		Subject:        pkix.Name{CommonName: name, Organization: []string{"Acme"}},
		EmailAddresses: []string{name + "@acme.example"}, SerialNumber: big.NewInt(serial),
	})
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	must.OK(c.t, err)
	c.clients[name] = pair
}

// newCertified creates a configuration with alice, a user with a password, and these other users of acme.
func newCertified(t *testing.T, users map[string]*config.User) *certified {
	t.Helper()
	s := s3test.Start(t, "sim-aws")
	c := &certified{t: t, cfg: servicetest.NewConfig(t, s), root: must.NewAuthority(t, "root"),
		clients: map[string]tls.Certificate{}, log: &servicetest.Log{}}
	cert, key := must.Certificate(t, &x509.Certificate{})
	c.cfg.TLS = config.TLS{ImplicitListen: "127.0.0.1:0", CertFile: c.file("tls.crt", cert),
		KeyFile: c.file("tls.key", key)}
	c.cfg.TLS.Required = new(bool)
	c.cfg.TLS.ClientCertificates = config.ClientCertificates{CAFile: c.file("ca.crt", c.root.Certificate)}
	c.cfg.Limits.FailedLoginDelay = 0
	for name, u := range users {
		c.cfg.Tenants["acme"].Users[name] = u
	}
	c.issue(c.root, "till", 100)
	c.issue(c.root, "bob", 101)
	c.issue(must.NewAuthority(t, "other"), "forged", 100)
	return c
}

// file writes a file and returns its name.
func (c *certified) file(name, text string) string {
	c.t.Helper()
	name = filepath.Join(c.t.TempDir(), name)
	must.WriteFile(c.t, name, text)
	return name
}

func (c *certified) start() {
	c.t.Helper()
	s := s3test.Start(c.t, "sim-aws")
	c.srv = start(c.t, c.cfg, Options{AWS: s.AWSConfig(), Logger: c.log.Logger()})
}

// tls returns the configuration of a client with a certificate, or without one if name is "".
func (c *certified) tls(name string, version uint16) *tls.Config {
	cfg := &tls.Config{ServerName: "localhost", InsecureSkipVerify: true, MaxVersion: version,
		ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	if pair, ok := c.clients[name]; ok {
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg
}

// connect starts TLS with AUTH.
func (c *certified) connect(cfg *tls.Config) *ftptest.Client {
	c.t.Helper()
	client := ftptest.Dial(c.t, c.srv.Addr().String())
	client.Command(234, "AUTH TLS")
	must.OK(c.t, client.StartTLS(cfg))
	return client
}

// protect enables TLS for data connections.
func protect(client *ftptest.Client, cfg *tls.Config) {
	client.Command(200, "PBSZ 0")
	client.Command(200, "PROT P")
	client.TLS = cfg
}

func clientCertificates(t *testing.T, texts ...string) (certs []value.ClientCertificate) {
	t.Helper()
	for _, text := range texts {
		var c value.ClientCertificate
		must.OK(t, c.UnmarshalText([]byte(text)))
		certs = append(certs, c)
	}
	return certs
}

var tlsVersions = map[string]uint16{"tls-1.2": tls.VersionTLS12, "tls-1.3": tls.VersionTLS13}

// A login requires a password, a certificate or both, depending on the user. An invalid certificate never helps.
func TestClientCertificates(t *testing.T) {
	for name, version := range tlsVersions {
		t.Run(name, func(t *testing.T) {
			c := newCertified(t, map[string]*config.User{
				"till": {Certificates: clientCertificates(t, "subject:CN=nobody", "email:till@acme.example")},
				"bob": {PasswordHash: servicetest.PasswordHash(),
					Certificates: clientCertificates(t, "subject:CN=bob,O=Acme")},
				"forged": {Certificates: clientCertificates(t, "subject:CN=forged,O=Acme")},
			})
			c.start()
			for _, tt := range []struct {
				certificate, user string
				codes             []int // replies to USER and to PASS with the correct password
			}{
				{"till", "till", []int{232, 202}},
				{"till", "till@acme", []int{232, 202}},
				{"bob", "till", []int{331, 530}},
				{"", "till", []int{331, 530}},
				{"forged", "till", []int{331, 530}},
				{"forged", "forged", []int{331, 530}},
				{"bob", "bob", []int{331, 230}},
				{"till", "bob", []int{331, 530}},
				{"", "bob", []int{331, 530}},
				{"", "alice", []int{331, 230}},
				{"till", "alice", []int{331, 230}},
				{"forged", "alice", []int{331, 530}},
				{"till", "unknown", []int{331, 530}},
			} {
				t.Run(tt.user+"-shows-"+tt.certificate, func(t *testing.T) {
					c := *c
					c.t = t
					client := c.connect(c.tls(tt.certificate, version))
					client.Command(tt.codes[0], "USER "+tt.user)
					client.Command(tt.codes[1], "PASS "+servicetest.Password)
					code := 530
					if tt.codes[1] < 300 {
						code = 257
					}
					client.Command(code, "PWD")
				})
			}
			clear := ftptest.Dial(t, c.srv.Addr().String())
			clear.Command(331, "USER till")
			clear.Command(530, "PASS "+servicetest.Password)

			client := c.connect(c.tls("bob", version))
			client.Command(331, "USER bob")
			client.Command(530, "PASS wrong-horse")
			client.Command(331, "USER bob")
			client.Command(230, "PASS "+servicetest.Password)
			client.Command(530, "PASS "+servicetest.Password)
		})
	}
}

// A session continues after 232 as after 230, its data connections have the same certificate or resume the TLS
// session, and REIN ends the login.
func TestLoginByCertificate(t *testing.T) {
	for name, version := range tlsVersions {
		t.Run(name, func(t *testing.T) {
			c := newCertified(
				t, map[string]*config.User{"till": {Certificates: clientCertificates(t, "email:till@acme.example")}})
			c.start()
			own := c.tls("till", version)
			client := c.connect(own)
			client.WantReply(232, "Welcome to Acme\nLogin successful.", "USER till")
			client.Command(530, "USER till")
			protect(client, own)
			client.Store("resumed", "content")
			client.TLS = c.tls("till", version)
			client.Store("full", "content")
			client.Want("full\r\nresumed\r\n", "NLST")
			for _, other := range []string{"", "bob", "forged"} {
				client.TLS = c.tls(other, version)
				data := client.Data()
				client.Command(150, "RETR full")
				if got, _ := io.ReadAll(data); len(got) > 0 {
					t.Errorf("certificate %q: got %q", other, got)
				}
				client.Reply(522)
			}

			// Implicit TLS and the certificate survive REIN.
			conn, err := tls.Dial("tcp", c.srv.ImplicitAddr().String(), c.tls("till", version))
			must.OK(t, err)
			implicit := ftptest.New(t, conn)
			implicit.Reply(220)
			implicit.Command(232, "USER till")
			implicit.Command(220, "REIN")
			implicit.Command(530, "PWD")
			implicit.Command(503, "PASS "+servicetest.Password)
			implicit.Command(232, "USER till")

			// A resumed TLS session keeps the certificate.
			again := c.tls("till", version)
			c.connect(again).Command(221, "QUIT")
			resumed := c.connect(again)
			if !resumed.Conn.Conn.(*tls.Conn).ConnectionState().DidResume {
				t.Error("the control connection did not resume the TLS session")
			}
			resumed.Command(232, "USER till")
		})
	}
}

// The server refuses clients without a valid certificate after the handshake, and unencrypted clients at the login.
func TestClientCertificateRequired(t *testing.T) {
	for name, version := range tlsVersions {
		t.Run(name, func(t *testing.T) {
			c := newCertified(t, nil)
			c.cfg.TLS.ClientCertificates.Required = true
			c.start()
			for _, certificate := range []string{"", "forged"} {
				client := c.connect(c.tls(certificate, version))
				if r := client.Reply(421); r != "This server requires a valid client certificate." {
					t.Errorf("unexpected text of 421: %q", r)
				}
				client.WantClosed()
				conn, err := tls.Dial("tcp", c.srv.ImplicitAddr().String(), c.tls(certificate, version))
				must.OK(t, err)
				implicit := ftptest.New(t, conn)
				implicit.Reply(421)
				implicit.WantClosed()
			}
			client := c.connect(c.tls("till", version))
			client.Login("alice", servicetest.Password)
			clear := ftptest.Dial(t, c.srv.Addr().String())
			clear.Command(331, "USER alice")
			clear.Command(530, "PASS "+servicetest.Password)
		})
	}
}

// A revocation list applies as soon as its file exists, even to clients that resume a TLS session.
func TestRevokedCertificate(t *testing.T) {
	for name, version := range tlsVersions {
		t.Run(name, func(t *testing.T) {
			c := newCertified(
				t, map[string]*config.User{"till": {Certificates: clientCertificates(t, "email:till@acme.example")}})
			list := c.file("ca.crl", c.root.Revoke(&x509.RevocationList{}))
			c.cfg.TLS.ClientCertificates.CRLFile = list
			c.start()
			own := c.tls("till", version)
			client := c.connect(own)
			client.Command(232, "USER till")
			must.WriteFile(t, list, c.root.Revoke(&x509.RevocationList{}, 100))
			for _, cfg := range []*tls.Config{own, c.tls("till", version)} {
				client := c.connect(cfg)
				client.Command(331, "USER till")
				client.Command(530, "PASS x")
				client.Command(331, "USER alice")
				client.Command(530, "PASS "+servicetest.Password)
			}
			if !c.log.Has(`is revoked`) {
				t.Error("the log lacks the revoked certificate")
			}
		})
	}
}

// A tenant can have its own authorities. Their certificates are valid only for this tenant, and certificates of the
// server's authorities are not valid there.
func TestClientCertificatesOfATenant(t *testing.T) {
	c := newCertified(
		t, map[string]*config.User{"till": {Certificates: clientCertificates(t, "email:till@acme.example")}})
	umbrella := must.NewAuthority(t, "umbrella")
	c.issue(umbrella, "carol", 7)
	c.cfg.TLS.ClientCertificates.Required = true
	c.cfg.Tenants["umbrella"] = &config.Tenant{
		Bucket: c.cfg.Tenants["acme"].Bucket, Prefix: "umbrella/",
		TLS: config.TenantTLS{ClientCertificates: config.ClientCertificates{CAFile: c.file(
			"umbrella.crt", umbrella.Certificate)}},
		Users: map[string]*config.User{
			"carol": {Certificates: clientCertificates(t, "email:carol@acme.example")},
			"fake":  {Certificates: clientCertificates(t, "email:till@acme.example")},
			"dave":  {PasswordHash: servicetest.PasswordHash()},
		},
	}
	c.cfg.Tenants["acme"].Users["imposter"] = &config.User{Certificates: clientCertificates(
		t, "email:carol@acme.example")}
	c.start()
	for _, tt := range []struct {
		certificate, user string
		codes             []int
	}{
		{"carol", "carol", []int{232, 202}},
		{"till", "till", []int{232, 202}},
		{"till", "fake", []int{331, 530}},
		{"carol", "imposter", []int{331, 530}},
		{"carol", "dave", []int{331, 230}},
		{"till", "dave", []int{331, 530}},
		{"carol", "alice", []int{331, 530}},
	} {
		client := c.connect(c.tls(tt.certificate, tls.VersionTLS13))
		client.Command(tt.codes[0], "USER "+tt.user)
		client.Command(tt.codes[1], "PASS "+servicetest.Password)
	}
}

// The audit log and the log contain the subject of the certificate.
func TestAuditOfCertificates(t *testing.T) {
	c := newCertified(
		t, map[string]*config.User{"till": {Certificates: clientCertificates(t, "email:till@acme.example")}})
	c.cfg.Audit.File = filepath.Join(t.TempDir(), "audit.log")
	t.Run("serve", func(t *testing.T) { // the last lines are written at the end
		c.t = t
		c.start()
		client := c.connect(c.tls("till", tls.VersionTLS13))
		client.Command(232, "USER till")
		client.Command(221, "QUIT")
		client = c.connect(c.tls("bob", tls.VersionTLS13))
		client.Command(331, "USER till")
		client.Command(530, "PASS x")
		client.Command(221, "QUIT")
	})
	text := must.ReadFile(t, c.cfg.Audit.File)
	for _, want := range []string{`"outcome":"ok","certificate":"CN=till,O=Acme"`,
		`"tls":true,"tls_version":"TLS 1.3","tls_cipher":"TLS_`,
		`"reason":"certificate","tenant":"acme","user":"till"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the audit log lacks %s:\n%s", want, text)
		}
	}
	for _, want := range []string{`certificate="CN=till,O=Acme"`, `CN=bob,O=Acme`} {
		if !c.log.Has(want) {
			t.Errorf("the log lacks %s", want)
		}
	}
}

// The response of a login service can require certificates too. The service is not called for clients without the
// certificate that the tenant requires.
func TestClientCertificatesOfAHook(t *testing.T) {
	var asked atomic.Int32
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, `{"user": {"certificates": ["subject:CN=till,O=Acme"]}}`)
	}))
	defer hook.Close()
	c := newCertified(t, nil)
	acme := c.cfg.Tenants["acme"]
	acme.TLS.ClientCertificates.Required = true
	acme.Auth.Hook = config.Hook{URL: hook.URL, Secret: value.NewSecret("secret"), Timeout: time.Minute}
	c.start()
	for _, tt := range []struct {
		certificate string
		code        int
		asked       int32
	}{{"till", 230, 1}, {"bob", 530, 1}, {"forged", 530, 0}, {"", 530, 0}} {
		asked.Store(0)
		client := c.connect(c.tls(tt.certificate, tls.VersionTLS13))
		client.Command(331, "USER eve")
		client.Command(tt.code, "PASS x")
		if got := asked.Load(); got != tt.asked {
			t.Errorf("certificate %q: got %d requests to the service, want %d", tt.certificate, got, tt.asked)
		}
	}
}
