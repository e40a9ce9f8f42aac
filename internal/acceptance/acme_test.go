package acceptance_test

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/acmetest"
	"github.com/babelftp/babelftp/internal/testkit/configtest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// curl trusts the certificate that the server has obtained by itself for the host of a tenant, and shows without a
// restart.
func TestCertificateByACME(t *testing.T) {
	t.Parallel()
	storage := s3test.Start(t, "minio")
	authority := acmetest.Start(t, time.Hour)
	dir := newFolder(t)
	root := dir.write("root.pem", authority.Root(t))
	file := dir.write("babelftp.yaml", fmt.Appendf(nil, `
listen: 127.0.0.1:0
tls:
  required: true
  acme: {agree: true, folder: %q, directory: %q, ca_file: %q, http_listen: %q}
s3: {endpoint: %q, region: %s, path_style: true, access_key_id: %q, secret_access_key: %q}
tenants:
  acme:
    hosts: [ftp.acme.example]
    bucket: %s
    users: {alice: {password_hash: %q}}
`, t.TempDir(), authority.Directory, authority.CAFile, authority.HTTPAddress, storage.Endpoint, storage.Region,
		storage.AccessKeyID, storage.SecretAccessKey,
		storage.Bucket(t), configtest.PasswordHash().Reveal()))
	server := launch(t, binary(t), "serve", "--config", file)
	t.Cleanup(server.mustBeClean)
	address := server.expect(server.stderr, `msg=listening key=listen address=(\S+)`)[1]
	server.expect(server.stderr, `msg="ACME certificate obtained" host=ftp.acme.example`)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	content := dir.write("content", []byte("content"))
	waitUntil(t, func() bool { // certmagic has the certificate in memory soon after
		return launch(
			t, "curl", "--silent", "--ssl-reqd", "--cacert", root, "--resolve", "ftp.acme.example:"+port+":127.0.0.1",
			"--user", "alice:"+configtest.Password, "--upload-file", content,
			"ftp://ftp.acme.example:"+port+"/"+filepath.Base(content)).wait() == 0
	}, func() { t.Error("curl does not trust the certificate") })
}

// Two servers share the certificate by a folder. The authority reaches only one of them, and when that is dead, curl
// trusts the other. babelftp check finds the certificate.
func TestSharedCertificate(t *testing.T) {
	t.Parallel()
	storage := s3test.Start(t, "minio")
	authority := acmetest.Start(t, time.Hour)
	dir := newFolder(t)
	root := dir.write("root.pem", authority.Root(t))
	files, certificates := storage.Bucket(t), t.TempDir()
	configure := func(name, challenges string) string {
		return dir.write(name, fmt.Appendf(nil, `
listen: 127.0.0.1:0
tls:
  required: true
  acme: {agree: true, folder: %q, directory: %q, ca_file: %q, http_listen: %q}
s3: {endpoint: %q, region: %s, path_style: true, access_key_id: %q, secret_access_key: %q}
tenants:
  acme:
    hosts: [ftp.acme.example]
    bucket: %s
    users: {alice: {password_hash: %q}}
`, certificates, authority.Directory, authority.CAFile, challenges, storage.Endpoint, storage.Region,
			storage.AccessKeyID, storage.SecretAccessKey,
			files, configtest.PasswordHash().Reveal()))
	}
	reached, other := configure("reached.yaml", authority.HTTPAddress), configure("other.yaml", "127.0.0.1:0")
	check := launch(t, binary(t), "check", "--probe", "--config", other)
	check.succeed()
	if text := check.stderr.String(); !strings.Contains(
		text, "tls.acme: there is no certificate for ftp.acme.example yet") {
		t.Errorf("before: %s", text)
	}
	first := launch(t, binary(t), "serve", "--config", reached)
	first.expect(first.stderr, `msg="ACME certificate obtained" host=ftp.acme.example`)
	second := launch(t, binary(t), "serve", "--config", other)
	t.Cleanup(second.mustBeClean)
	address := second.expect(second.stderr, `msg=listening key=listen address=(\S+)`)[1]
	first.kill()
	first.mustBeClean()
	content := dir.write("content", []byte("content"))
	waitUntil(t, func() bool {
		return launch(
			t, "curl", "--silent", "--ssl-reqd", "--cacert", root, "--resolve",
			"ftp.acme.example:"+port(t, address)+":127.0.0.1",
			"--user", "alice:"+configtest.Password, "--upload-file", content,
			"ftp://ftp.acme.example:"+port(t, address)+"/content").wait() == 0
	}, func() { t.Error("curl does not trust the second server") })
	if text := second.stderr.String(); strings.Contains(text, "ACME certificate obtained") {
		t.Errorf("the second server has obtained another certificate: %s", text)
	}
	if out := launch(t, binary(t), "check", "--probe", "--config", other).succeed(); !strings.Contains(
		out, "tls.acme: the certificate for ftp.acme.example ends on ") {
		t.Errorf("babelftp check says %s", out)
	}
}
