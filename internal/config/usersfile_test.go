package config

import (
	"maps"
	"path/filepath"
	"testing"
)

// A relative users_file is relative to the configuration file, even if the path of the configuration is relative.
func TestUsersFilesOfARelativeConfiguration(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"conf/babelftp.yaml":             "tenants_dir: tenants\ntenants: {acme: {bucket: acme-data, users_file: users.yaml}}\n",
		"conf/tenants/globex.yaml":       "bucket: globex-data\nusers_file: users/globex.yaml\n",
		"conf/users.yaml":                "users: {alice: {disabled: true}}\n",
		"conf/tenants/users/globex.yaml": "users: {bob: {disabled: true}}\n",
	} {
		writeFile(t, filepath.FromSlash(name), text)
	}
	want := map[string]string{"acme": "conf/users.yaml", "globex": "conf/tenants/users/globex.yaml"}
	if got, err := UsersFiles("conf/babelftp.yaml", nil); err != nil || !maps.Equal(got, want) {
		t.Errorf("the files are %v, %v; want %v", got, err, want)
	}
}
