package userimport

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
)

var update = flag.Bool("update", false, "write the golden files")

// The users of another server become a users_file that a configuration takes, and all else becomes a warning.
func TestImport(t *testing.T) {
	for name, tc := range map[string]struct {
		file, strip string
		read        func([]byte, string) (*Users, error)
	}{
		"sftpgo":  {"sftpgo.json", "/srv/sftpgo/data", SFTPGo},
		"proftpd": {"proftpd.passwd", "/srv/ftp/", ProFTPD},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", tc.file))
			if err != nil {
				t.Fatal(err)
			}
			users, err := tc.read(text, tc.strip)
			if err != nil {
				t.Fatal(err)
			}
			out, err := users.YAML()
			if err != nil {
				t.Fatal(err)
			}
			got := []byte("# " + strings.Join(users.Warnings, "\n# ") + "\n" + string(out))
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			file := filepath.Join(t.TempDir(), "babelftp.yaml")
			if err := os.WriteFile(filepath.Join(filepath.Dir(file), "users.yaml"), out, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(
				file, []byte("tenants: {acme: {bucket: acme-data, users_file: users.yaml}}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := config.Load(file, nil)
			if err != nil {
				t.Fatal(err)
			}
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

func TestImportErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		read       func([]byte, string) (*Users, error)
		text, want string
	}{
		"proftpd-fields": {ProFTPD, "# users\nalice:$6$:1:1::/home/alice:/bin/sh\nbob:$6$\n", "line 3 has 2 fields"},
		"sftpgo-json":    {SFTPGo, "alice:$6$", "this is not a dump of SFTPGo in JSON"},
		"sftpgo-list":    {SFTPGo, "[]", "this is not a dump of SFTPGo in JSON"},
		"sftpgo-other":   {SFTPGo, `{"people": []}`, `it lacks the key "users"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tc.read([]byte(tc.text), "/"); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
}
