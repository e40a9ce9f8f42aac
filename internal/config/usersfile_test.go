package config

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// A users_file is found from the folder of the file that names it, also where the configuration has a relative name.
func TestUsersFilesOfARelativeConfiguration(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("conf/tenants", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"conf/babelftp.yaml":       "tenants_dir: tenants\ntenants: {acme: {bucket: acme-data, users_file: users.yaml}}\n",
		"conf/tenants/globex.yaml": "bucket: globex-data\nusers_file: users/globex.yaml\n",
		"conf/users.yaml":          "users: {alice: {disabled: true}}\n",
	} {
		if err := os.WriteFile(filepath.FromSlash(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("conf/tenants/users", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("conf/tenants/users/globex.yaml", []byte("users: {bob: {disabled: true}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"acme": "conf/users.yaml", "globex": "conf/tenants/users/globex.yaml"}
	if got, err := UsersFiles("conf/babelftp.yaml", nil); err != nil || !maps.Equal(got, want) {
		t.Errorf("the files are %v, %v; want %v", got, err, want)
	}
}
