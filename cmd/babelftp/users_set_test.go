package main

import (
	"crypto/x509"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// userSettings has for each key of a user a valid value, its YAML, an invalid value, and what the error must contain.
// Keys that end in NAME are maps.
func userSettings() map[string]struct{ valid, yaml, invalid, advice string } {
	const hash = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"
	return map[string]struct{ valid, yaml, invalid, advice string }{
		"password_hash":      {hash, hash, "secret", "write what `babelftp hash-password` prints"},
		"password_hash_file": {"a.hash", "a.hash", "no.hash", "cannot read the value from "},
		"certificates": {"subject:CN=a,O=b,email:a@b.example", `["subject:CN=a,O=b", "email:a@b.example"]`, "alice",
			"write sha256: and the fingerprint"},
		"disabled":                         {"true", "true", "yes", "write true or false"},
		"must_change_password":             {"false", "false", "yes", "write true or false"},
		"expires":                          {"2037-01-31", `"2037-01-31"`, "31.1.2037", "write the last day like 2027-01-31"},
		"home":                             {"/in", "/in", "in", "begin it with /"},
		"root":                             {"/a b", "/a b", "a", "begin it with /"},
		"permissions":                      {"list,read", "[list, read]", "fly", "write list, read, write, delete, rename, mkdir or password"},
		"path_permissions.NAME":            {"list,write", "[list, write]", "fly", "write list, read, write, delete, rename, mkdir or password"},
		"files.deny":                       {"*.exe,*.com", `['*.exe', '*.com']`, "a/b", `"a/b"`},
		"files.max_size":                   {"1GiB", "1GiB", "big", "write a whole number of bytes"},
		"overwrite":                        {"deny", "deny", "never", "write allow, deny or version"},
		"language":                         {"fr", "fr", "français", "write it like en or pt-BR"},
		"timezone":                         {"Asia/Tokyo", "Asia/Tokyo", "JST", `"JST"`},
		"quota":                            {"10GiB", "10GiB", "ten", "write a whole number of bytes"},
		"compatibility.charset":            {"euc-jp,shift_jis", "euc-jp,shift_jis", "sjs", "write utf-8, raw, or one of"},
		"compatibility.ascii":              {"keep", "keep", "no", "write convert or keep"},
		"compatibility.chmod":              {"ignore", "ignore", "no", "write refuse or ignore"},
		"compatibility.backslash":          {"separator", "separator", "no", "write name or separator"},
		"compatibility.stor_after_rest":    {"truncate", "truncate", "no", "write keep or truncate"},
		"compatibility.control_characters": {"refuse", "refuse", "no", "write allow or refuse"},
		"compatibility.normalization":      {"nfd", "nfd", "no", "write nfc, nfd or none"},
		"tls.required":                     {"false", "false", "no", "write true or false"},
		"limits.sessions":                  {"5", "5", "few", "write it like 10"},
		"limits.transfers":                 {"5", "5", "-1", "limits.transfers: "},
		"limits.upload_rate":               {"2MiB", "2MiB", "slow", "write a whole number of bytes"},
		"limits.download_rate":             {"2MiB", "2MiB", "slow", "write a whole number of bytes"},
		"limits.allow":                     {"203.0.113.0/24,::1", `[203.0.113.0/24, "::1"]`, "here", "write it like 203.0.113.0/24"},
		"limits.deny":                      {"[0.0.0.0/0]", "[0.0.0.0/0]", "there", "write it like 203.0.113.0/24"},
	}
}

// Each key of a user can be set and removed. An invalid value is refused with the key and what is valid, and comments
// and other users are kept.
func TestUsersSet(t *testing.T) {
	t.Parallel()
	settings := userSettings()
	want, got := slices.Sorted(slices.Values(config.UserKeys())), slices.Sorted(maps.Keys(settings))
	if !slices.Equal(got, want) {
		t.Fatalf("the table has the keys\n%s\nwant\n%s", got, want)
	}
	for key, tc := range settings {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			file, users := usersConfiguration(t)
			set := func(value string) (int, string, string) {
				return output(t, "", "users", "set", "alice", strings.Replace(key, "NAME", "/x.y/*", 1)+"="+value, "--config", file)
			}
			before := must.ReadFile(t, users)
			if key == "certificates" { // otherwise alice would already have the key
				before = strings.Replace(before, `certificates: ["dns:alice.example"]`, "disabled: true", 1)
				must.WriteFile(t, users, before)
			}
			path := strings.TrimSuffix(strings.Replace(key, "NAME", "/x.y/*", 1), "_file")
			code, out, stderr := set(tc.invalid)
			if code != 1 || out != "" || must.ReadFile(t, users) != before || !strings.Contains(stderr, tc.advice) ||
				!strings.Contains(stderr, ": tenants.acme.users.alice."+path) || !strings.Contains(stderr, users+" not changed") {
				t.Errorf("an invalid value: %d\n%s%s", code, out, stderr)
			}
			want := before
			for i, part := range strings.SplitN(strings.Replace(key, "NAME", "/x.y/*", 1), ".", 2) {
				want = strings.Replace(want, "    # the end\n", strings.Repeat("  ", i)+"    "+part+":\n    # the end\n", 1)
			}
			want = strings.Replace(want, ":\n    # the end\n", ": "+tc.yaml+"\n    # the end\n", 1)
			code, out, stderr = set(tc.valid)
			text := must.ReadFile(t, users)
			if code != 0 || !strings.HasPrefix(out, "alice@acme is changed in "+users) || text != want {
				t.Errorf("a valid value: %d\n%s%s%s\nwant\n%s", code, out, stderr, text, want)
			}
			if code, out, stderr = set(""); code != 0 || must.ReadFile(t, users) != before {
				t.Errorf("no value: %d\n%s%s%s", code, out, stderr, must.ReadFile(t, users))
			}
		})
	}
}

// usersConfiguration writes a valid configuration with a users_file, and returns the names of both.
func usersConfiguration(t *testing.T) (file, users string) {
	t.Helper()
	dir := t.TempDir()
	file, users = filepath.Join(dir, "babelftp.yaml"), filepath.Join(dir, "users.yaml")
	must.WriteCertificate(t, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), &x509.Certificate{IsCA: true})
	must.WriteFile(t, filepath.Join(dir, "a.hash"), "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e\n")
	must.WriteFile(t, file, `
passive: {ports: 30000-30099}
s3: {region: eu-west-1}
tls: {cert_file: tls.crt, key_file: tls.key, client_certificates: {ca_file: tls.crt}}
tenants: {acme: {bucket: acme-data, users_file: users.yaml}}
`)
	must.WriteFile(t, users, `# The users of Acme.
users:
  # Sales.
  alice: # until spring
    certificates: ["dns:alice.example"]
    # the end
  bob: {disabled: true} # left
`)
	return file, users
}

// The command line is checked before the file is read, several settings are one change, and enabling a user removes the
// reason that an import wrote.
func TestUsersSetTogether(t *testing.T) {
	t.Parallel()
	file, users := usersConfiguration(t)
	must.WriteFile(t, users, "users:\n  # disabled: no hash\n  # A note.\n  carol: {disabled: true}\n")
	for _, step := range []struct {
		name string
		args []string
		code int
		out  string // part of the output
	}{
		{"no-setting", []string{"carol"}, 2, "expected one USER, such as alice@acme, and KEY=VALUE"},
		{"no-value", []string{"carol", "quota"}, 2, `"quota" is not KEY=VALUE`},
		{"unknown", []string{"carol", "sesions=5"}, 2, `unknown key "sesions": did you mean limits.sessions?`},
		{"twice", []string{"carol", "home=/a", "home=/b"}, 2, "home is given twice: write a list as a,b"},
		{"unknown-user", []string{"dave", "home=/a"}, 1, "user dave@acme not found in " + users},
		{"unknown-tenant", []string{"carol@globex", "home=/a"}, 1, "user carol@globex@acme not found in "},
		{"one-invalid", []string{"carol", "home=/a", "quota=ten"}, 1, "tenants.acme.users.carol.quota: "},
		{"unknown-in-section", []string{"carol", "limits={sesions: 5}"}, 1, "limits.sesions: unknown key: did you mean sessions?"},
		{"not-utf-8", []string{"carol", "home=/\xff"}, 2, "is not UTF-8"},
		{"user-not-utf-8", []string{"\xff", "home=/"}, 2, "is not UTF-8"},
		{"enabled", []string{"carol", "disabled=", "certificates=email:c@acme.example", "limits={sessions: 5}", "limits.transfers=2"}, 0,
			"carol@acme is changed in " + users + ": disabled, certificates, limits, limits.transfers\n"},
	} {
		code, out, stderr := output(t, "", append(append([]string{"users", "set"}, step.args...), "--config", file)...)
		if code != step.code || !strings.Contains(out+stderr, step.out) {
			t.Errorf("%s: %d\n%s%s\nwant %d, %q", step.name, code, out, stderr, step.code, step.out)
		}
	}
	const want = "users:\n  # A note.\n  carol: {certificates: [\"email:c@acme.example\"], limits: {sessions: 5, transfers: 2}}\n"
	if got := must.ReadFile(t, users); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// In a configuration with tenants_dir, the advice of all commands names the file of the tenant, and it works.
func TestUsersOfTenantsDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "babelftp.yaml")
	tokyo, osaka := filepath.Join(dir, "tenants", "tokyo.yaml"), filepath.Join(dir, "tenants", "osaka.yaml")
	must.OK(t, os.Mkdir(filepath.Dir(tokyo), 0o700))
	const settings = "bucket: tokyo-data\nusers:\n  yuki: {disabled: true}\n"
	for name, text := range map[string]string{
		file: "passive: {ports: 30000-30099}\ns3: {region: eu-west-1}\ntenants_dir: tenants\n" +
			"tenants: {kyoto: {bucket: kyoto-data, users: {aki: {disabled: true}}}}\n",
		tokyo:                            settings,
		osaka:                            "bucket: osaka-data\nusers_file: ../osaka.yaml\nusers: {ken: {disabled: true}}\n",
		filepath.Join(dir, "osaka.yaml"): "users: {mai: {disabled: true}}\n",
	} {
		must.WriteFile(t, name, text)
	}
	try := func(code int, want string, args ...string) {
		t.Helper()
		got, out, stderr := output(t, "", append(append([]string{"users"}, args...), "--config", file)...)
		if got != code || !strings.Contains(out+stderr, want) {
			t.Errorf("%s: %d\n%s%s\nwant %d, %q", args, got, out, stderr, code, want)
		}
	}
	const advice = "add `users_file: ../tokyo-users.yaml` to "
	others := [][]string{{"passwd"}, {"disable"}, {"enable"}, {"remove"}, {"set", "home=/a"}}
	for _, c := range others {
		command, rest := c[0], c[1:]
		try(1, "tenant tokyo has no users_file: "+advice+tokyo+", and move its users there\n", append([]string{command, "dave@tokyo"}, rest...)...)
		try(1, "tenant tokyo has no users_file, and the user yuki@tokyo is set in "+tokyo+":3: change the user there, or "+advice+tokyo,
			append([]string{command, "yuki@tokyo"}, rest...)...)
		try(1, "user ken@osaka is set in "+osaka+":3: change the user there, or move it to "+filepath.Join(dir, "osaka.yaml"),
			append([]string{command, "ken@osaka"}, rest...)...)
		try(1, "user dave@osaka not found in "+filepath.Join(dir, "osaka.yaml")+": see babelftp users list",
			append([]string{command, "dave@osaka"}, rest...)...)
		try(1, "add `users_file: kyoto-users.yaml` below tenants.kyoto in "+file+", and move its users there",
			append([]string{command, "dave@kyoto"}, rest...)...)
	}
	try(1, "tenant tokyo has no users_file: "+advice+tokyo, "add", "dave@tokyo", "--disabled")
	try(1, "user ken@osaka is set in "+osaka+":3", "add", "ken@osaka", "--disabled")

	must.WriteFile(t, tokyo, "users_file: users.yaml\n"+settings)
	try(1, "users_file "+filepath.Join(dir, "tenants", "users.yaml")+" is in tenants_dir, which reads it as a tenant: set "+
		"`users_file: ../tokyo-users.yaml` in "+tokyo, "add", "dave@tokyo", "--disabled")
	must.WriteFile(t, tokyo, "users_file: ../tokyo-users.yaml\n"+settings)
	try(0, "dave@tokyo is added to "+filepath.Join(dir, "tokyo-users.yaml"), "add", "dave@tokyo", "--disabled")
	try(0, "dave@tokyo is changed", "set", "dave@tokyo", "home=/a")
	try(0, "", "list")
	if code, out, stderr := output(t, "", "check", "--config", file); code != 0 {
		t.Errorf("check: %d\n%s%s", code, out, stderr)
	}
}
