package acceptance_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestHosts chooses the tenant by HOST, by the name in the TLS handshake and by the user's name: it greets in its
// language, and the file is in its bucket.
func TestHosts(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "versitygw"))
	for _, tt := range []struct{ tenant, host, greeting, key string }{
		{acme, "ftp.acme.example", "Bienvenue chez Acme", prefix},
		{umbrella, "ftp.umbrella.example", "Willkommen bei Umbrella", ""},
	} {
		file := newFolder(t).write("file", []byte(tt.tenant))
		t.Run("host-"+tt.tenant, func(t *testing.T) {
			c := ftptest.Dial(t, s.address)
			if reply := c.Command(220, "HOST "+tt.host); !strings.HasPrefix(reply, tt.greeting) {
				t.Errorf("HOST: %s", reply)
			}
			c.Command(331, "USER alice")
			if reply := c.Command(230, "PASS "+password); !strings.Contains(reply, tt.greeting) {
				t.Errorf("login: %s", reply)
			}
			c.Store("by host", tt.tenant)
		})
		t.Run("tls-"+tt.tenant, func(t *testing.T) {
			c := newCurl(t, s, way{"passive", "implicit"})
			_, port, _ := strings.Cut(s.implicit, ":")
			c.base = "ftps://" + tt.host + ":" + port
			p := c.start("--verbose", "--resolve", tt.host+":"+port+":127.0.0.1", "--user", "alice:"+password,
				"--upload-file", file, c.url("/by tls"))
			p.succeed()
			p.expect(p.stderr, `< 230-`+tt.greeting)
		})
		t.Run("user-"+tt.tenant, func(t *testing.T) {
			c := newCurl(t, s, usual)
			c.run("--user", "alice@"+tt.tenant+":"+password, "--upload-file", file, c.url("/by user"))
		})
		want := []string{tt.key + "by host", tt.key + "by tls", tt.key + "by user"}
		if got := s3test.Objects(t, s.client, s.buckets[tt.tenant]); !slices.Equal(got, want) {
			t.Errorf("the bucket of %s has %q, want %q", tt.tenant, got, want)
		}
	}
	t.Run("none", func(t *testing.T) {
		c := ftptest.Dial(t, s.address)
		c.Command(331, "USER alice")
		c.Command(530, "PASS "+password)
	})
}
