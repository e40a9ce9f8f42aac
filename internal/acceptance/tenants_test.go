package acceptance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// A tenant that gets a file in a folder of tenants is served without a restart, with the defaults of all tenants.
func TestTenantsInFolder(t *testing.T) {
	t.Parallel()
	storage := s3test.Start(t, "minio")
	s := &site{storage: storage, client: storage.Client(),
		buckets: map[string]string{acme: storage.Bucket(t), umbrella: storage.Bucket(t)}}
	file := s.configure(t)
	folder := filepath.Join(filepath.Dir(file), "tenants")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	tenant := func(name string) {
		t.Helper()
		text := fmt.Sprintf("hosts: [%[1]s.example]\nprefix: %[1]s\nusers: {carol: {password_hash: %[2]q}}\n", name,
			passwordHash(t, password))
		temporary := filepath.Join(folder, "."+name)
		if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(temporary, filepath.Join(folder, name+".yaml")); err != nil {
			t.Fatal(err)
		}
	}
	tenant("wayne")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = fmt.Appendf(text, "\ntenants_dir: tenants\ntenant_defaults: {bucket: %s, permissions: [list, write]}\n",
		s.buckets[acme])
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	launch(t, binary(t), "check", "--config", file).succeed()
	s.start(t, file)
	store := func(name string) *process {
		return launchWith(t, "content of "+name, "curl", "--silent", "--show-error", "--user", "carol@"+name+":"+password,
			"--upload-file", "-", "ftp://"+s.address+"/file")
	}
	store("wayne").succeed()
	tenant("stark")
	s.server.expect(s.server.stderr, "configuration reloaded")
	store("stark").succeed()
	got := launch(t, "curl", "--silent", "--user", "carol@stark:"+password, "ftp://"+s.address+"/file")
	if got.wait() == 0 {
		t.Error("the defaults do not let users read, but one has")
	}
}
