package acceptance_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A client in TypeScript, whose types are generated from the OpenAPI document of the running server, passes the strict
// type checks and manages users. The user that it adds can log in.
func TestGeneratedClient(t *testing.T) {
	t.Parallel()
	babelftp := binary(t)
	modules, err := filepath.Abs("../../.tools/api/node_modules")
	must.OK(t, err)
	if _, err := os.Stat(modules); err != nil {
		t.Fatalf("%v; run make .tools/api/node_modules", err)
	}
	storage := s3test.Start(t, "sim-aws")
	dir := newFolder(t)
	const administrator, secret = "ann", "correct horse battery 7"
	hash, err := passwordhash.New(secret)
	must.OK(t, err)
	dir.write("users.yaml", []byte("users: {}\n"))
	config := dir.write("babelftp.yaml", fmt.Appendf(nil, `
listen: 127.0.0.1:0
metrics_listen: ""
admin_socket: ""
admin: {listen: "127.0.0.1:0", users: "%s:%s"}
s3: {endpoint: %q, region: %s, path_style: true, access_key_id: %q, secret_access_key: %q}
tenants:
  acme:
    bucket: %s
    users_file: users.yaml
    users: {alice: {password_hash: %q}}
`, administrator, hash, storage.Endpoint, storage.Region, storage.AccessKeyID, storage.SecretAccessKey,
		storage.Bucket(t), servicetest.PasswordHash().Reveal()))
	server := launch(t, babelftp, "serve", "--config", config)
	address := server.expect(server.stderr, `msg=listening key=listen address=(\S+)`)[1]
	url := "http://" + server.expect(server.stderr, `msg=listening key=admin.listen address=(\S+)`)[1]
	ftptest.Dial(t, address).Login("alice@acme", servicetest.Password)

	must.OK(t, os.Symlink(modules, dir.file("node_modules")))
	dir.write("package.json", []byte(must.ReadFile(t, "api/package.json")))
	dir.write("client.ts", []byte(must.ReadFile(t, "api/client.ts")))
	run := func(name string, args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir = filepath.Dir(config)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	run("curl", "-q", "--fail", "--silent", "--show-error", "--user", administrator+":"+secret, "--output", "openapi.json",
		url+"/api/v1/openapi.json")
	run("node_modules/.bin/openapi-typescript", "openapi.json", "--output", "api.d.ts")
	run("node_modules/.bin/tsc", "--strict", "--exactOptionalPropertyTypes", "false", "--noUncheckedIndexedAccess",
		"--module", "nodenext", "--target", "es2022", "--skipLibCheck", "client.ts")
	const user = "till 7/ü@home"
	run("node", "client.js", url, administrator, secret, user)
	ftptest.Dial(t, address).Login(user+"@acme", secret)
}
