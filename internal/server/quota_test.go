package server

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A tenant and a user share their quotas. Folders in other buckets do not count.
func TestQuotas(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		cfg := servicetest.NewConfig(t, s)
		acme := cfg.Tenants["acme"]
		acme.Quota = 100
		acme.Welcome = map[language.Tag]string{language.English: "{Quota}"}
		acme.Folders = map[string]*config.Folder{
			"/elsewhere":       {Bucket: s.Bucket(t)},
			"/alice/same":      {Prefix: acme.Prefix + "same/"},
			"/alice/elsewhere": {Bucket: s.Bucket(t)},
		}
		acme.Users["alice"].Root, acme.Users["alice"].Home, acme.Users["alice"].Quota = "/alice", "/", 40
		acme.Users["bob"] = &config.User{PasswordHash: servicetest.PasswordHash()}
		put(t, s, cfg, "alice/before", "outside") // 7 bytes each
		srv := start(t, cfg, Options{AWS: s.AWSConfig()})
		count(t, srv)

		alice, bob := session(t, srv, "alice"), session(t, srv, "bob")
		refused := func(c *ftptest.Client, name string, size int) {
			t.Helper()
			conn := c.Data()
			defer conn.Close()
			c.Command(150, "STOR "+name)
			if _, err := conn.Write(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
			c.Reply(552)
			c.Command(550, "SIZE "+name)
		}
		usage := func(c *ftptest.Client, want string) {
			t.Helper()
			c.WantReply(200, "Space used: "+want, "SITE QUOTA")
		}
		usage(alice, "7 bytes of 40 bytes")
		usage(bob, "14 bytes of 100 bytes")
		refused(alice, "large", 34)
		alice.Store("large", strings.Repeat("x", 33))
		alice.Store("elsewhere/large", strings.Repeat("x", 200))
		alice.Store("same/large", strings.Repeat("x", 50)) // counts toward the quota of the tenant only
		usage(bob, "97 bytes of 100 bytes")
		refused(alice, "same/more", 4)
		refused(bob, "more", 4)
		bob.Store("elsewhere/more", "more")
		bob.Command(250, "DELE alice/large")
		usage(alice, "7 bytes of 40 bytes")
		usage(bob, "64 bytes of 100 bytes")
		bob.Store("more", "more")

		_, metrics := get(t, srv, "/metrics")
		for _, line := range []string{
			`babelftp_quota_limit_bytes{tenant="acme",user=""} 100`,
			`babelftp_quota_used_bytes{tenant="acme",user=""} 68`,
			`babelftp_quota_limit_bytes{tenant="acme",user="alice"} 40`,
		} {
			if !strings.Contains(metrics, line+"\n") {
				t.Errorf("/metrics lacks %s", line)
			}
		}
		c := ftptest.Dial(t, srv.Addr().String())
		c.Command(331, "USER bob@acme")
		if welcome := c.Command(230, "PASS "+servicetest.Password); !strings.HasPrefix(welcome, "68 bytes of 100 bytes\n") {
			t.Errorf("unexpected welcome %q", welcome)
		}
	})
}

// count counts the quotas again, after the first count in the background. Files stored during a count may count twice.
func count(t *testing.T, srv *Server) {
	t.Helper()
	for _, q := range srv.tenants.Quotas() {
		for _, known := q.Used(); !known; _, known = q.Used() {
			time.Sleep(time.Millisecond)
		}
		must.OK(t, q.Count(t.Context()))
	}
}

// If S3 does not let the server count the objects, it logs that, refuses nothing, and shows no numbers in replies.
func TestQuotaUncounted(t *testing.T) {
	s := s3test.Start(t, "minio")
	proxy := s3test.StartProxy(t, s)
	cfg := servicetest.NewConfig(t, s)
	cfg.S3.Endpoint = proxy.Server().Endpoint
	cfg.Tenants["acme"].Quota = 1
	proxy.Inject(
		s3test.Fault{Operation: "ListObjectsV2", KeyPrefix: "inbox/",
			Effect: s3test.Refuse(http.StatusForbidden, "AccessDenied")})
	log := &servicetest.Log{}
	srv := start(t, cfg, Options{AWS: s.AWSConfig(), Logger: log.LoggerAt(slog.LevelWarn)})
	// Another line reports that the uploads could not be listed.
	for !strings.Contains(log.Next("quota"), "tenant=acme") {
	}
	c := session(t, srv, "alice")
	c.Store("file", "content")
	c.Command(451, "SITE QUOTA")
	if _, metrics := get(t, srv, "/metrics"); strings.Contains(metrics, "babelftp_quota_used_bytes{") {
		t.Error("the metrics show an unknown usage")
	}
}
