package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A tenant inherits the defaults, key by key in sections and maps, and overrides them with its own keys.
func TestTenantDefaults(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "babelftp.yaml")
	for name, text := range map[string]string{
		"babelftp.yaml": `
tenant_defaults:
  bucket: all
  languages: [en, fr, de]
  greeting: {en: Hello, fr: Bonjour}
  compatibility: {chmod: ignore, ascii: keep}
  quota: 1GiB
  users_file: users/all.yaml
  messages: {goodbye: {fr: Salut}}
  folders: {/shared: {bucket: shared, prefix: all, permissions: [list]}}
  s3: {access_key_id: all, secret_access_key_file: key}
tenants:
  acme:
    hosts: [ftp.acme.example]
    bucket: acme
    prefix: in
    languages: [en, pt]
    greeting: {en: Hi, pt: Olá}
    compatibility: {ascii: convert}
    messages: {goodbye: {en: Bye}}
    folders: {/shared: {prefix: acme}, /own: {bucket: own}}
    s3: {access_key_id: acme, secret_access_key: hidden}
  umbrella:
    hosts: [ftp.umbrella.example]
    users_file: users/umbrella.yaml
  wayne:
`,
		"key":                 "secret",
		"users/all.yaml":      "users: {alice: {password_hash_file: hash}}",
		"users/umbrella.yaml": "users: {bob: {password_hash_file: hash}}",
		"users/hash":          hash,
	} {
		writeFile(t, filepath.Join(dir, name), text)
	}
	_, err := Load(file, nil)
	if err == nil || !strings.Contains(err.Error(), "the tenant acme has a user with this name too, and wayne has no host") {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	must.OK(t, err)
	writeFile(t, file, string(text)+"    hosts: [ftp.wayne.example]\n")
	cfg, err := Load(file, []string{"BABELFTP_TENANT_DEFAULTS_BUCKET=x"})
	if err == nil || !strings.Contains(err.Error(), "keys below tenant_defaults can only be set in the file") {
		t.Error(cfg, err)
	}
	l := NewLoader(file, nil)
	if cfg, err = l.Load(); err != nil {
		t.Fatal(err)
	}
	acme, umbrella, wayne := cfg.Tenants["acme"], cfg.Tenants["umbrella"], cfg.Tenants["wayne"]
	for _, tc := range []struct {
		name      string
		got, want any
	}{
		{"own", acme.Bucket, "acme"},
		{"default", umbrella.Bucket, "all"},
		{"default-of-a-limit", umbrella.Quota, bytesize.GiB},
		{"list", len(acme.Languages), 2},
		{"list-by-default", len(wayne.Languages), 3},
		{"map", acme.Greeting[language.English] + acme.Greeting[language.French], "HiBonjour"},
		{"map-of-maps", len(acme.Messages["goodbye"]), 2},
		{"section", acme.Compatibility, Compatibility{ASCII: "convert", Chmod: IgnoreChmod}},
		{"sections-by-name", *acme.Folders["/shared"],
			Folder{Bucket: "shared", Prefix: "acme/", Permissions: []Permission{List}}},
		{"sections-of-both", len(acme.Folders), 2},
		{"not-shared", wayne.Folders["/shared"].Prefix, "all/"},
		{"secret", acme.S3.AccessKeyID + acme.S3.SecretAccessKey.Reveal(), "acmehidden"},
		{"secret-by-default", wayne.S3.AccessKeyID + wayne.S3.SecretAccessKey.Reveal(), "allsecret"},
		{"users", len(acme.Users), 1},
		{"users-in-place-of-the-default", umbrella.Users["alice"] == nil && umbrella.Users["bob"] != nil, true},
	} {
		if got, ok := tc.got.(Folder); ok {
			want, _ := tc.want.(Folder)
			if got.Bucket != want.Bucket || got.Prefix != want.Prefix ||
				!slices.Equal(got.Permissions, want.Permissions) {
				t.Errorf("%s: got %v, want %v", tc.name, got, want)
			}
		} else if tc.got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, tc.got, tc.want)
		}
	}
	// An unchanged tenant is kept.
	writeFile(t, file, strings.Replace(string(text), "quota: 1GiB", "quota: 2GiB", 1)+
		"    hosts: [ftp.wayne.example]\n    quota: 1GiB\n")
	next, err := l.Load()
	must.OK(t, err)
	if next.Tenants["acme"] == acme || next.Tenants["wayne"] != wayne {
		t.Error("unexpected tenants changed")
	}
}

// mount writes files in the way in which Kubernetes mounts a Secret.
func mount(t *testing.T, dir, version string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		writeFile(t, filepath.Join(dir, version, name), text)
		_ = os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)) // it may exist
	}
	must.OK(t, os.Symlink(version, filepath.Join(dir, "..next")))
	must.OK(t, os.Rename(filepath.Join(dir, "..next"), filepath.Join(dir, "..data")))
}

// Each file in the folder is a tenant, which inherits the defaults. Problems have the position in the file.
func TestTenantsDir(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	file := filepath.Join(dir, "babelftp.yaml")
	write := func(name, text string) {
		t.Helper()
		writeFile(t, filepath.Join(dir, name), text)
	}
	const user = "password_hash_file: alice.hash"
	write("babelftp.yaml", "tenants_dir: [secret, other]\ntenant_defaults: {bucket: all, permissions: [list]}\n")
	write("other/wayne.yml", "users_file: users\nwebhook: {}\n")
	write("other/README.txt", "no tenant")
	write("other/users/a.yaml", "users: {carol: {password_hash: "+`"`+hash+`"}}`)
	first := map[string]string{
		"acme.yaml": "# Acme\nprefix: acme\nusers: {alice: {" + user + "}}\n", "alice.hash": hash,
		"umbrella.yaml": "prefix: umbrella\nusers: {bob: {" + user + "}}\n",
	}
	mount(t, secret, "..1", first)
	l := NewLoader(file, nil)
	before, err := l.Load()
	must.OK(t, err)
	acme, wayne := before.Tenants["acme"], before.Tenants["wayne"]
	if len(before.Tenants) != 3 || acme.Prefix != "acme/" || acme.Bucket != "all" || len(acme.Permissions) != 1 ||
		acme.Users["alice"].PasswordHash.Reveal() != hash || wayne.Users["carol"] == nil || l.Changed() {
		t.Fatalf("got %+v, %+v", acme, wayne)
	}
	mount(t, secret, "..2", map[string]string{
		"acme.yaml": first["acme.yaml"], "alice.hash": hash,
		"umbrella.yaml": "prefix: new\nusers: {bob: {" + user + "}}\n",
	})
	if !l.Changed() {
		t.Error("the new version of the Secret was not noticed")
	}
	next, err := l.Load()
	must.OK(t, err)
	if next.Tenants["acme"] != acme || next.Tenants["umbrella"].Prefix != "new/" {
		t.Error("unexpected tenants changed")
	}

	write("babelftp.yaml", "tenants_dir: [secret, other, missing, empty, other/wayne.yml]\ntenants: {acme: {}}\n")
	write("empty/readme", "")
	write("other/a b.yaml", "bucket: spaces\nusers_file: users\n")
	write("other/broken.yaml", "bucket: [")
	write("other/umbrella.yaml", "bucket: umbrella")
	write("other/wayne.yml", "bucket: wayne\n\nbuckets: x\nusers:\n  alice: {password_hash: x}\n")
	_, err = l.Load()
	if err == nil {
		t.Fatal("no problem was found")
	}
	got := strings.ReplaceAll(err.Error(), dir+"/", "")
	want := strings.Join([]string{
		`babelftp.yaml:1:30: tenants_dir.2: cannot read missing: no such file or directory`,
		`babelftp.yaml:1:39: tenants_dir.3: cannot read empty: the folder has no file whose name ends in .yaml or .yml`,
		`babelftp.yaml:1:46: tenants_dir.4: cannot read other/wayne.yml: it is a file: name its folder`,
		`other/a b.yaml:1:1: tenants.a b: "a b" is not a valid tenant name: write up to 63 ASCII letters, digits, -, _ and .`,
		`other/broken.yaml:2:1: invalid YAML: did not find expected node content`,
		`other/umbrella.yaml:1:1: tenants.umbrella: is already set at secret/umbrella.yaml:1: remove one`,
		`other/wayne.yml:3:1: tenants.wayne.buckets: unknown key: did you mean bucket?`,
		`other/wayne.yml:5:26: tenants.wayne.users.alice.password_hash: is not a password hash; passwords are not kept ` +
			"in plain text: write what `babelftp hash-password` prints",
		`secret/acme.yaml:1:1: tenants.acme: is already set at babelftp.yaml:2: remove one`,
	}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
