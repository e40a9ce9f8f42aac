package acceptance_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// Users of an LDAP directory find their tenant by an attribute, and a reload takes them elsewhere.
func TestDirectoryChoosesTheTenant(t *testing.T) {
	t.Parallel()
	directory := servicetest.StartDirectory(t)
	auth := func(tenant string) string {
		return fmt.Sprintf("ca_file: %q\nauth: {ldap: {urls: [%q], base_dn: %q, bind_dn: %q, bind_password: %q, "+
			"attributes: {tenant: %s}}, user: {root: \"/{user}\"}}\n", directory.CAFile, directory.LDAPS, servicetest.People,
			servicetest.BindDN, servicetest.DirectoryPassword, tenant)
	}
	s := newReloadSite(t)
	s.edit(reloaded, "tenants:\n", auth("ou")+"tenants:\n")
	if got := launch(t, binary(t), "check", "--config", s.file, "--probe").succeed(); !strings.Contains(got, "\nauth: ok\n") {
		t.Errorf("check --probe prints %q", got)
	}
	login := func(user string, code int) *ftptest.Client {
		t.Helper()
		c := ftptest.Dial(t, s.address)
		c.Command(331, "USER "+user)
		c.Command(code, "PASS "+servicetest.DirectoryPassword)
		return c
	}
	login("bob", 230).Store("/file", "of bob")
	login("frank", 230).Store("/file", "of frank")
	for tenant, key := range map[string]string{acme: "bob/file", umbrella: "frank/file"} {
		keys := strings.Join(s3test.Objects(t, s.client, s.buckets[tenant]), " ")
		if !strings.Contains(keys, key) {
			t.Errorf("the bucket of %s has %q, and not %s", tenant, keys, key)
		}
	}
	login("frank@acme", 530)
	login("erin", 530)
	s.server.expect(s.server.stderr, `user .*"erin.*": the password is right, but auth names the tenant .*"nowhere`)
	login("alice@acme", 530) // of the configuration, with another password
	s.edit(reloaded, "attributes: {tenant: ou}", "attributes: {tenant: sn}")
	login("bob", 530)
	s.server.expect(s.server.stderr, `user .*"bob.*": the password is right, but auth names the tenant .*"bob`)
	s.edit(reloaded, auth("sn"), "")
	login("bob", 530)
}
