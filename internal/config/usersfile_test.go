package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A relative users_file is relative to the file with the tenant, even if the path of the configuration is relative.
// Free is a path for a users_file outside of the folders of tenants_dir.
func TestTenantPlacesOfARelativeConfiguration(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"conf/babelftp.yaml": "tenants_dir: [tenants, tenants/more]\n" +
			"tenants: {acme: {bucket: acme-data, users_file: users.yaml, users: {carol: {}}}}\n",
		"conf/tenants/globex.yaml":       "bucket: globex-data\nusers_file: users/globex.yaml\n",
		"conf/tenants/more/tokyo.yaml":   "bucket: tokyo-data\nusers:\n  yuki: {disabled: true}\n",
		"conf/tenants/broken.yaml":       "users: [\n",
		"conf/users.yaml":                "\nusers: {alice: {disabled: true}}\n",
		"conf/tenants/users/globex.yaml": "users: {bob: {disabled: true}}\n",
	} {
		writeFile(t, filepath.FromSlash(name), text)
	}
	places, err := TenantPlaces("conf/babelftp.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, name := range slices.Sorted(maps.Keys(places)) {
		p := places[name]
		got = append(got, fmt.Sprintf("%s: %s %t %q %s %v", name, p.File, p.Own, p.UsersFile, p.Free, p.Users))
	}
	want := []string{
		`acme: conf/babelftp.yaml false "conf/users.yaml" acme-users.yaml map[alice:conf/users.yaml:2 carol:conf/babelftp.yaml:2]`,
		`broken: conf/tenants/broken.yaml true "" ../broken-users.yaml map[]`,
		`globex: conf/tenants/globex.yaml true "conf/tenants/users/globex.yaml" ../globex-users.yaml ` +
			`map[bob:conf/tenants/users/globex.yaml:1]`,
		`tokyo: conf/tenants/more/tokyo.yaml true "" ../../tokyo-users.yaml map[yuki:conf/tenants/more/tokyo.yaml:3]`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
