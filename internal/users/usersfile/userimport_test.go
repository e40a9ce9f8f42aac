package usersfile

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

var update = flag.Bool("update", false, "write the golden files")

// The users of another server become a users_file that a configuration takes, and all else becomes a warning.
func TestImport(t *testing.T) {
	for name, tc := range map[string]struct {
		file, strip string
		read        func([]byte, string) (*Users, error)
	}{
		"sftpgo":              {"sftpgo.json", "/srv/sftpgo/data", SFTPGo},
		"proftpd":             {"proftpd.passwd", "/srv/ftp/", ProFTPD},
		"sftpgo-restrictions": {"sftpgo-restrictions.json", "/srv/sftpgo/data", SFTPGo},
		"pureftpd":            {"pureftpd.passwd", "/srv/ftp", PureFTPd},
		"vsftpd":              {"vsftpd.txt", "/srv/vsftpd", vsftpd},
	} {
		t.Run(name, func(t *testing.T) {
			users, err := tc.read([]byte(must.ReadFile(t, filepath.Join("testdata", tc.file))), tc.strip)
			must.OK(t, err)
			out, err := users.YAML()
			must.OK(t, err)
			got := []byte("# " + strings.Join(users.Warnings, "\n# ") + "\n" + string(out))
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				must.OK(t, os.WriteFile(golden, got, 0o644))
			}
			want := must.ReadFile(t, golden)
			if string(got) != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			file := filepath.Join(t.TempDir(), "babelftp.yaml")
			must.OK(t, os.WriteFile(filepath.Join(filepath.Dir(file), "users.yaml"), out, 0o600))
			if err := os.WriteFile(
				file, []byte("tenants: {acme: {bucket: acme-data, users_file: users.yaml}}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := config.Load(file, nil)
			must.OK(t, err)
			if n := len(cfg.Tenants["acme"].Users); n != users.Count() || n == 0 {
				t.Errorf("the configuration has %d users, want %d", n, users.Count())
			}
			for name, u := range users.users {
				if cfg.Tenants["acme"].Users[name].PasswordHash.Reveal() != u.hash {
					t.Errorf("the user %q has lost the hash", name)
				}
			}
		})
	}
}

// vsftpd reads users with the settings in testdata. All get a hash of one password.
func vsftpd(text []byte, strip string) (*Users, error) {
	conf, err := os.ReadFile(filepath.Join("testdata", "vsftpd.conf"))
	if err != nil {
		return nil, err
	}
	return VSFTPD(text, strip, VSFTPDConfig{
		All: conf,
		User: func(_, name string) ([]byte, error) {
			own, err := os.ReadFile(filepath.Join("testdata", "vsftpd-users", name))
			if errors.Is(err, fs.ErrNotExist) {
				return nil, nil
			}
			return own, err
		},
		Hash: func(string) (string, error) {
			return "$2a$10$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e", nil
		},
	})
}

// Networks that are denied are cut out of those that are allowed, so no address gets in that could not before.
func TestNetworks(t *testing.T) {
	for _, tc := range []struct {
		name            string
		allowed, denied []string
		want            limits
		broken          bool
	}{
		{"none", nil, nil, limits{}, false},
		{"denied", nil, []string{"192.0.2.7", "10.1.2.3/8", "::ffff:198.51.100.0/120"},
			limits{Deny: []string{"192.0.2.7/32", "10.0.0.0/8", "198.51.100.0/24"}}, false},
		{"allowed", []string{"192.0.2.0/24", "2001:db8::/32"}, nil,
			limits{Allow: []string{"192.0.2.0/24", "2001:db8::/32"}, Deny: []string{"0.0.0.0/0", "::/0"}}, false},
		{"both", []string{"192.0.2.0/29", "2001:db8::/126"}, []string{"192.0.2.2", "203.0.113.0/24", "2001:db8::2/127"},
			limits{Allow: []string{"192.0.2.0/31", "192.0.2.3/32", "192.0.2.4/30", "2001:db8::/127"},
				Deny: []string{"0.0.0.0/0", "::/0"}}, false},
		{"all-denied", []string{"192.0.2.0/24"}, []string{"192.0.0.0/16"}, limits{}, true},
		{"a-host", []string{"office.example.com"}, nil, limits{}, true},
		{"too-wide", nil, []string{"::ffff:0:0/90"}, limits{}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got limits
			problem := got.networks(tc.allowed, tc.denied)
			if (problem != "") != tc.broken || !tc.broken && !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, %q; want %+v", got, problem, tc.want)
			}
		})
	}
}

func TestImportErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		read       func([]byte, string) (*Users, error)
		text, want string
	}{
		"proftpd-fields":  {ProFTPD, "# users\nalice:$6$:1:1::/home/alice:/bin/sh\nbob:$6$\n", "line 3 has 2 fields"},
		"sftpgo-json":     {SFTPGo, "alice:$6$", "this is not a dump of SFTPGo in JSON"},
		"sftpgo-list":     {SFTPGo, "[]", "this is not a dump of SFTPGo in JSON"},
		"pureftpd-fields": {PureFTPd, "alice:$6$:1:1:\n", "line 1 has 5 fields"},
		"vsftpd-db":       {vsftpd, "\x00\x00\x00\x00\x62\x31\x05\x00", "this is a Berkeley DB"},
		"vsftpd-odd":      {vsftpd, "alice\nsecret\nbob\n", "the last name has no password"},
		"vsftpd-setting":  {vsftpd, "broken\nsecret\n", "user \"broken\": line 2 is no KEY=VALUE"},
		"sftpgo-other":    {SFTPGo, `{"people": []}`, `it lacks the key "users"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tc.read([]byte(tc.text), "/"); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
}
