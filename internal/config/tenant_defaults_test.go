package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/config/value"
)

// A tenant has the defaults, in each section and map key by key, and its own keys in their place.
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
    quota:
    users_file: users/umbrella.yaml
  wayne:
`,
		"key":                 "secret",
		"users/all.yaml":      "users: {alice: {password_hash_file: hash}}",
		"users/umbrella.yaml": "users: {bob: {password_hash_file: hash}}",
		"users/hash":          hash,
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Load(file, nil)
	if err == nil || !strings.Contains(err.Error(), "the tenant acme has a user of this name too, and wayne has no host") {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, "    hosts: [ftp.wayne.example]\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := Load(file, []string{"BABELFTP_TENANT_DEFAULTS_BUCKET=x"})
	if err == nil || !strings.Contains(err.Error(), "what is below tenant_defaults comes from the file only") {
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
		{"default-of-null", umbrella.Quota, value.GiB},
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
				t.Errorf("%s: %v, want %v", tc.name, got, want)
			}
		} else if tc.got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, tc.got, tc.want)
		}
	}
	// A tenant that is as before stays the same.
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "quota: 1GiB", "quota: 2GiB", 1)+
		"    hosts: [ftp.wayne.example]\n    quota: 1GiB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	next, err := l.Load()
	if err != nil {
		t.Fatal(err)
	}
	if next.Tenants["acme"] == acme || next.Tenants["wayne"] != wayne {
		t.Error("the wrong tenants have changed")
	}
}
