package acceptance_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// One server obtains a certificate that curl trusts. A second server, which the authority cannot reach, shares the
// certificate through a directory. Curl trusts it even after the first server was killed. babelftp check finds the
// certificate.
func TestSharedCertificate(t *testing.T) {
	t.Parallel()
	storage := s3test.Start(t, "minio")
	authority := servicetest.StartAuthority(t, time.Hour)
	dir := newFolder(t)
	root := dir.write("root.pem", authority.Root(t))
	files, certificates := storage.Bucket(t), t.TempDir()
	configure := func(name, challenges string) string {
		return dir.write(name, fmt.Appendf(nil, `
listen: 127.0.0.1:0
metrics_listen: ""
admin_socket: ""
tls:
  required: true
  acme: {folder: %q, directory: %q, http_listen: %q}
ca_file: %q
s3: {endpoint: %q, region: %s, path_style: true, access_key_id: %q, secret_access_key: %q}
tenants:
  acme:
    hosts: [ftp.acme.example]
    bucket: %s
    users: {alice: {password_hash: %q}}
`, certificates, authority.Directory, challenges, authority.CAFile, storage.Endpoint, storage.Region,
			storage.AccessKeyID, storage.SecretAccessKey,
			files, servicetest.PasswordHash().Reveal()))
	}
	reached, other := configure("reached.yaml", authority.HTTPAddress), configure("other.yaml", "127.0.0.1:0")
	check := launch(t, binary(t), "check", "--probe", "--config", other)
	check.succeed()
	if text := check.stderr.String(); !strings.Contains(
		text, "tls.acme: no certificate for ftp.acme.example yet") {
		t.Errorf("before the first certificate: %s", text)
	}
	first := launch(t, binary(t), "serve", "--config", reached)
	first.expect(first.stderr, `msg="ACME certificate obtained" host=ftp.acme.example`)
	content := dir.write("content", []byte("content"))
	trusts := func(server *process) {
		t.Helper()
		number := port(t, server.expect(server.stderr, `msg=listening key=listen address=(\S+)`)[1])
		waitUntil(t, func() bool { // certmagic loads the certificate into memory soon after
			return launch(
				t, "curl", "--silent", "--ssl-reqd", "--cacert", root, "--resolve",
				"ftp.acme.example:"+number+":127.0.0.1", "--user", "alice:"+servicetest.Password,
				"--upload-file", content, "ftp://ftp.acme.example:"+number+"/content").wait() == 0
		}, func() { t.Error("curl does not trust the certificate") })
	}
	trusts(first)
	second := launch(t, binary(t), "serve", "--config", other)
	t.Cleanup(second.mustBeClean)
	first.kill()
	first.mustBeClean()
	trusts(second)
	if text := second.stderr.String(); strings.Contains(text, "ACME certificate obtained") {
		t.Errorf("the second server obtained another certificate: %s", text)
	}
	if out := launch(t, binary(t), "check", "--probe", "--config", other).succeed(); !strings.Contains(
		out, "tls.acme: the certificate for ftp.acme.example expires on ") {
		t.Errorf("unexpected output of babelftp check: %s", out)
	}
}
