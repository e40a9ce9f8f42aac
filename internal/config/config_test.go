package config

import (
	"bytes"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

var update = flag.Bool("update", false, "write the golden files")

// hash is an argon2id hash of an unknown password.
const hash = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$3q2+7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhs"

// minimal is a valid configuration.
const minimal = `
tenants:
  acme:
    bucket: acme-data
    users:
      alice: {password_hash: "` + hash + `"}
`

// All problems of a file are reported at once, each with its position.
func TestLoadProblems(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if name == "full" { // valid
			continue
		}
		t.Run(name, func(t *testing.T) {
			_, err := Load(file, nil)
			if err == nil {
				t.Fatal("no problem was found")
			}
			got := []byte(err.Error() + "\n")
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				must.OK(t, os.WriteFile(golden, got, 0o644))
			}
			want, err := os.ReadFile(golden)
			must.OK(t, err)
			if !bytes.Equal(got, want) {
				t.Errorf("problems:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	cfg, err := Load(filepath.Join("testdata", "full.yaml"), nil)
	must.OK(t, err)
	inside := value.Network{Prefix: netip.MustParsePrefix("10.0.0.0/8")}
	acme, umbrella := cfg.Tenants["acme"], cfg.Tenants["umbrella"]
	old := acme.CompatibilityAt(netip.MustParseAddr("192.0.2.1"))
	for _, tc := range []struct {
		name      string
		got, want any
	}{
		{"passive-ports", cfg.Passive.Ports, netaddr.PortRange{First: 30000, Last: 30099}},
		{"public-address", cfg.Passive.PublicAddress.Of(2), "203.0.113.7"},
		{"number-as-text", cfg.S3.AccessKeyID, "0123"},
		{"secret", cfg.S3.SecretAccessKey.Reveal(), "hidden"},
		{"duration", cfg.IdleTimeout, 10 * time.Minute},
		{"default-duration", cfg.DataTimeout, defaultDataTimeout},
		{"size", cfg.Memory, bytesize.GiB},
		{"host-in-lower-case", acme.Hosts[0], "ftp.acme.example"},
		{"host-in-ascii", acme.Hosts[1], "xn--mnchen-3ya.example"},
		{"host-that-is-an-address", acme.Hosts[2], "2001:db8::7"},
		{"prefix-ends-with-a-slash", acme.Prefix, "inbox/"},
		{"languages", fmt.Sprint(acme.Languages), "[fr pt en]"},
		{"welcome", acme.Welcome[language.English], "Hello {User} of {Tenant} {-:\nYour last login: {LastLogin}\n"},
		{"message-with-plural-forms", acme.Messages[i18n.IdleTimeout][language.French].Select.Cases["one"],
			"Acme a attendu {Seconds} seconde."},
		{"charset", acme.Compatibility.Charset.String(), "windows-1252"},
		{"charset-by-default", umbrella.Compatibility.Charset.String(), "utf-8"},
		{"charset-at-a-network", old.Charset.String(), "shift_jis"},
		{"backslash-at-a-network", old.Backslash, pathname.BackslashSeparates},
		{"normalization-at-a-network", old.Normalization, pathname.NFD},
		{"charset-at-the-smallest-network",
			acme.CompatibilityAt(netip.MustParseAddr("::ffff:192.0.2.7")).Charset.UTF8(), true},
		{"charsets-in-a-list",
			acme.CompatibilityAt(netip.MustParseAddr("192.0.2.8")).Charset.String(), "euc-jp, shift_jis, utf-8"},
		{"charsets-in-a-text", acme.CompatibilityAt(netip.MustParseAddr("192.0.2.9")).Charset.String(), "gbk, big5"},
		{"charset-elsewhere", acme.CompatibilityAt(netip.MustParseAddr("192.0.3.1")), acme.Compatibility},
		{"directory-encoding", acme.DirectoryEncodings["/legacy"].String(), "shift_jis"},
		{"directory-encoding-utf-8", acme.DirectoryEncodings["/new"].UTF8(), true},
		{"directory-encoding-raw", acme.DirectoryEncodings["/scans/été"].Raw(), true},
		{"normalization", acme.Compatibility.NormalizationOf(), pathname.NFD},
		{"normalization-by-default", umbrella.Compatibility.NormalizationOf(), pathname.NFC},
		{"normalization-of-raw-names", cfg.Tenants["zebra"].Compatibility.NormalizationOf(), pathname.None},
		{"quota-of-a-user", acme.Users["bob@home"].Quota, 5 * bytesize.GiB},
		{"no-quota", umbrella.Quota, bytesize.Size(0)},
		{"hook-timeout-by-default", umbrella.Auth.Hook.Timeout, 5 * time.Second},
		{"ldap", fmt.Sprint(cfg.Tenants["zebra"].Auth.LDAP.URLs),
			"[ldaps://ldap1.zebra.example ldap://ldap2.zebra.example:3890/]"},
		{"ldap-start-tls-by-default", cfg.Tenants["zebra"].Auth.LDAP.UsesStartTLS(), true},
		{"ldap-timeout-by-default", cfg.Tenants["zebra"].Auth.LDAP.Timeout, 5 * time.Second},
		{"ldap-name", cfg.Tenants["zebra"].Auth.LDAP.UserDNOf("a,b"), `CN = a\,b,ou=people,dc=zebra,dc=example`},
		{"ldap-attribute-of-the-pattern", cfg.Tenants["zebra"].Auth.LDAP.UserAttributeOf(), "CN"},
		{"ldap-attribute-by-default", acme.Auth.LDAP.UserAttributeOf(), "uid"},
		{"inside-address", cfg.Passive.PublicAddressByNetwork[inside].Of(2), "10.0.0.20.example"},
		{"peers", fmt.Sprint(cfg.Cluster.Hosts()),
			"[babelftp-0.babelftp-headless babelftp-1.babelftp-headless babelftp-2.babelftp-headless]"},
		{"trusted", fmt.Sprint(cfg.ProxyProtocol.Networks()), "[10.0.0.0/24 10.1.0.7/32]"},
		{"customer-key", string(umbrella.Objects.Key()), strings.Repeat("\a", 32)},
		{"customer-key-hidden", fmt.Sprint(umbrella.Objects.CustomerKey), "[redacted]"},
		{"profile-of-the-server", cfg.StorageOf(acme).Profile, Profile("minio")},
		{"profile-of-the-tenant", cfg.StorageOf(umbrella).Profile, AutoProfile},
		{"permissions", len(acme.Users["alice"].Permissions), 2},
		{"permissions-by-path", fmt.Sprint(acme.Users["alice"].PathPermissions), "map[/inbox:[write] /private:[]]"},
		{"permissions-of-the-tenant", fmt.Sprint(acme.Permissions, acme.PathPermissions),
			"[list read write] map[/archive:[list read]]"},
		{"overwrite-of-the-tenant", acme.OverwriteOf(acme.Users["alice"]), DenyOverwrite},
		{"overwrite-of-the-user", acme.OverwriteOf(acme.Users["bob@home"]), VersionOverwrite},
		{"overwrite-by-default", umbrella.OverwriteOf(umbrella.Users["alice"]), AllowOverwrite},
		{"endpoint-of-the-folder", cfg.StorageOfFolder(acme, acme.Folders["/shared"]).Endpoint,
			"https://s3.shared.example"},
		{"key-of-the-server-for-a-folder", cfg.StorageOfFolder(acme, acme.Folders["/shared"]).AccessKeyID, "0123"},
		{"all-permissions", acme.Users["bob@home"].Permissions == nil, true},
		{"endpoint-of-the-server", cfg.StorageOf(acme).Endpoint, "http://127.0.0.1:9000"},
		{"endpoint-of-the-tenant", cfg.StorageOf(umbrella).Endpoint, "https://s3.umbrella.example"},
		{"key-of-the-server", cfg.StorageOf(umbrella).SecretAccessKey.Reveal(), "hidden"},
		{"path-style-of-the-server", *cfg.StorageOf(acme).PathStyle, true},
		{"path-style-of-the-tenant", *cfg.StorageOf(umbrella).PathStyle, false},
		{"alias", cfg.StorageOf(cfg.Tenants["zebra"]).SecretAccessKey.Reveal(), "hidden"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("got %v, want %v", tc.got, tc.want)
			}
		})
	}
}

// A tenant with its own access key never combines it with the secret key of the server.
func TestStorageOfKeepsKeysTogether(t *testing.T) {
	cfg := Default()
	cfg.S3 = S3{AccessKeyID: "server", SecretAccessKey: value.NewSecret("server's")}
	got := cfg.StorageOf(&Tenant{S3: S3{AccessKeyID: "tenant", SecretAccessKey: value.NewSecret("tenant's")}})
	if got.AccessKeyID != "tenant" || got.SecretAccessKey.Reveal() != "tenant's" {
		t.Errorf("unexpected keys %s and %s", got.AccessKeyID, got.SecretAccessKey.Reveal())
	}
}

// The column of a problem is the one that editors show, regardless of line endings and scripts.
func TestPositions(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"lf", "# été\n\nlisten: ':21'\nmemory: much\n", ":4:9: memory: "},
		{"crlf", "# été\r\n\r\nlisten: ':21'\r\nmemory: much\r\n", ":4:9: memory: "},
		{"byte-order-mark", "\ufefflisten: 21\n", ":1:9: listen: "},
		{"other-scripts", "log: {level: \"ぜんぶ\", format: 全部}\n", ":1:29: log.format: "},
		{"block", "log:\n  level: |\n    all\n    of it\n  format: xml\n", ":5:11: log.format: "},
		{"not-utf-8", "listen: ':21'\n# caf\xe9\n", ":2:6: the file is not UTF-8: "},
		{"control-character", "listen: a\nmemory: é\x01\n", ":2:10: invalid YAML: "},
		{"tab", "log:\n\tlevel: info\n", ":2:1: invalid YAML: tabs must not be used for indentation: "},
		{"tab-after-a-value", "log: info\n\tlisten: x\n", ":2:1: invalid YAML: tabs must not be used for indentation: "},
		{"alias-as-a-key", "log: &l info\n*l : x\n", ":2:1: a key must be a single value, not an alias"},
		{"reserved", "# é\nlisten: @home\n", ":2:9: invalid YAML: a string that begins with @ must be in quotes"},
		{"percent", "log: {level: %d}\n", ":1:14: invalid YAML: a string that begins with % must be in quotes"},
		{"star", "listen: [*]\n", ":1:11: invalid YAML: a string that begins with * must be in quotes"},
		{"line-separator", "listen: a\n# é\u2028memory: much\n",
			`:2:4: U+2028 would end the line: write a line feed, or "\u2028" in double quotes`},
		{"next-line", "listen: a\u0085b\n", ":1:10: U+0085 would end the line: "},
		{"anchor", "s3: &one {region: a}\nlog: *two\n", ":2:6: unknown alias: "},
		{"quote", "log:\n  level: \"info\n", ":3:1: invalid YAML: found unexpected end of stream, while scanning a " +
			"quoted scalar from line 2"},
		{"bracket", "log: {level: info\nlisten: x\n", ":2:"},
		{"list", "- listen\n", ":1:1: must be a mapping (key: value), not a list"},
		{"word", "listen\n", ":1:1: must be a mapping (key: value), not a single value"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := NewLoader("babelftp.yaml", nil).parse([]byte(tc.text))
			if err == nil || !strings.Contains("\n"+err.Error(), "\nbabelftp.yaml"+tc.want) {
				t.Errorf("got\n%v\nwant babelftp.yaml%s", err, tc.want)
			}
		})
	}
}

func TestLoadMissingFile(t *testing.T) {
	_, err := Load(filepath.Join("testdata", "nowhere.yaml"), nil)
	const want = "cannot read the configuration testdata/nowhere.yaml: no such file or directory"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A configuration that was created in code is validated by the same rules. Its problems have a path, but no position.
func TestValidate(t *testing.T) {
	cfg := Default()
	cfg.Tenants = map[string]*Tenant{"acme": {
		Bucket: "acme-data",
		Users:  map[string]*User{"alice": {PasswordHash: value.NewSecret(hash)}},
	}}
	must.OK(t, cfg.Validate())
	cfg.Tenants["acme"].Bucket = "-"
	const want = `tenants.acme.bucket: "-" is not a valid bucket name: write 3 to 63 characters`
	if err := cfg.Validate(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Load must not panic for any text, and each problem must have a position.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	must.OK(f, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		must.OK(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, err := NewLoader("fuzz.yaml", nil).parse(text)
		if err == nil {
			return
		}
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if !strings.HasPrefix(line, "fuzz.yaml:") {
				t.Errorf("problem without a position: %s", err)
			}
		}
	})
}

// Users can be in a mounted Secret: a folder with a symbolic link for each file, through a hidden folder.
func TestUsersFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "babelftp.yaml")
	for name, text := range map[string]string{
		"babelftp.yaml":                minimal + "    users_file: secret\n",
		"secret/..2026_11_22/one.yaml": "users:\n  bob: {password_hash_file: bob.hash, home: /bob/}\n",
		"secret/..2026_11_22/two.YML":  "users: {carol: {quota: 1GiB, password_hash: " + strconv.Quote(hash) + "}}\n",
		"secret/..2026_11_22/bob.hash": hash + "\n",
	} {
		writeFile(t, filepath.Join(dir, name), text)
	}
	for link, target := range map[string]string{
		"..data": "..2026_11_22", "one.yaml": "..data/one.yaml", "two.YML": "..data/two.YML",
		"bob.hash": "..data/bob.hash",
	} {
		must.OK(t, os.Symlink(target, filepath.Join(dir, "secret", link)))
	}
	cfg, err := Load(file, nil)
	must.OK(t, err)
	users := cfg.Tenants["acme"].Users
	if len(users) != 3 || users["bob"].Home != "/bob" || users["bob"].PasswordHash.Reveal() != hash ||
		users["carol"].Quota != bytesize.GiB {
		t.Errorf("unexpected users %v", users)
	}
}
