package usersfile

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/text/encoding/unicode"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

var update = flag.Bool("update", false, "write the golden files")

// TestImport imports files of other servers. The YAML must be a valid configuration, and warnings must name
// everything that is not imported.
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
		"vsftpd-htpasswd":     {"vsftpd.htpasswd", "/srv/vsftpd", vsftpd},
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
				t.Errorf("got %d users, want %d", n, users.Count())
			}
			for _, u := range users.users {
				if cfg.Tenants["acme"].Users[u.name].PasswordHash.Reveal() != u.hash {
					t.Errorf("the user %q lost the hash", u.name)
				}
			}
		})
	}
}

// vsftpd imports users with the settings in testdata. All passwords get the same hash.
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

// Denied networks are subtracted from allowed networks, so that no address is allowed that was denied before.
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

// TestImportErrors passes files in other formats to each import. The error must name the format and what to do.
func TestImportErrors(t *testing.T) {
	const (
		passwd   = "alice:$6$s$h:1001:1001:Alice:/home/alice:/bin/sh\n"
		system   = "root:x:0:0:root:/root:/bin/bash\nalice:x:1001:1001::/home/alice:/bin/sh\n"
		shadow   = "alice:$6$s$h:19700:0:99999:7:::\n"
		pure     = "alice:$6$s$h:1001:1001::/srv/ftp/alice/./::::::::::::\n"
		htpasswd = "alice:$apr1$abcdefgh$0123456789abcdefghijk.\nbob:$2y$05$abcdefghijklmnopqrstuu\n"
		transfer = `{"ServerId": "s-01234567890abcdef", "Users": [{"Arn": "arn:aws:transfer:eu-west-1:111122223333:user/s-1/alice",
			"HomeDirectory": "/acme-data/alice", "HomeDirectoryType": "PATH", "Role": "arn:aws:iam::111122223333:role/r",
			"SshPublicKeyCount": 1, "UserName": "alice"}]}`
		described = `{"ServerId": "s-01234567890abcdef", "User": {"HomeDirectory": "/acme-data/alice", "UserName": "alice"}}`
		dump      = `{"users": [{"username": "alice", "permissions": {"/": ["*"]}}]}`
		xml       = "<?xml version=\"1.0\"?>\n<FileZillaServer><Users><User Name=\"alice\"/></Users></FileZillaServer>"
		filezilla = "<filezilla xmlns:fz=\"https://filezilla-project.org\"><user name=\"alice\"/></filezilla>"
		tree      = "\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x61\x15\x06\x00\x09\x00\x00\x00"
	)
	for name, tc := range map[string]struct {
		read       func([]byte, string) (*Users, error)
		text, want string
	}{
		"proftpd-fields":       {ProFTPD, "# users\nalice:$6$:1:1::/home/alice:/bin/sh\nbob:$6$\n", "line 3 has 2 fields"},
		"proftpd-system":       {ProFTPD, system, "all hashes are in /etc/shadow"},
		"proftpd-shadow":       {ProFTPD, shadow, "this is a file like shadow"},
		"proftpd-pureftpd":     {ProFTPD, pure, "babelftp users import pureftpd"},
		"proftpd-htpasswd":     {ProFTPD, htpasswd, "babelftp users import vsftpd"},
		"proftpd-dump":         {ProFTPD, dump, "babelftp users import sftpgo"},
		"proftpd-xml":          {ProFTPD, xml, "this is XML of FileZilla Server: no import exists for this format"},
		"proftpd-sqlite":       {ProFTPD, "SQLite format 3\x00\x10", "this is an SQLite database"},
		"proftpd-gzip":         {ProFTPD, "\x1f\x8b\x08\x00", "this is a compressed file"},
		"pureftpd-fields":      {PureFTPd, "alice:$6$:1:1:\n", "line 1 has 5 fields"},
		"pureftpd-passwd":      {PureFTPd, passwd, "babelftp users import proftpd"},
		"pureftpd-pdb":         {PureFTPd, "\x01\x02\x00\x03", "this is a binary file"},
		"pureftpd-yaml":        {PureFTPd, "# users\nusers:\n  alice: {}\n", "name it in users_file"},
		"sftpgo-passwd":        {SFTPGo, passwd, "babelftp users import proftpd"},
		"sftpgo-json":          {SFTPGo, "alice", "this is not a dump of SFTPGo in JSON"},
		"sftpgo-list":          {SFTPGo, "[]", "this is JSON of another program"},
		"sftpgo-cut":           {SFTPGo, dump[:len(dump)-3], "this is JSON of another program"},
		"sftpgo-null":          {SFTPGo, "null\n", "the JSON is null"},
		"sftpgo-null-utf-16":   {SFTPGo, "\xff\xfen\x00u\x00l\x00l\x00", "the JSON is null"},
		"sftpgo-text":          {SFTPGo, ` "users"`, "the JSON is a text"},
		"sftpgo-number":        {SFTPGo, "1", "the JSON is a number"},
		"sftpgo-utf-16-no-bom": {SFTPGo, "{\x00\"\x00u\x00", "use text in UTF-8"},
		"sftpgo-empty":         {SFTPGo, "", "this is not a dump of SFTPGo in JSON"},
		"sftpgo-other":         {SFTPGo, `{"people": []}`, "this is JSON of another program"},
		"sftpgo-xml":           {SFTPGo, filezilla, "this is XML of FileZilla Server"},
		"sftpgo-other-xml":     {SFTPGo, "<userfile/>", "this is XML: no import exists for this format"},
		"sftpgo-list-users":    {SFTPGo, transfer, "this is the output of `aws transfer`: it has no passwords"},
		"sftpgo-describe-user": {SFTPGo, described, "this is the output of `aws transfer`: it has no passwords"},
		"sftpgo-no-list":       {SFTPGo, `{"users": {"alice": {}}}`, `its key "users" is not a list`},
		"sftpgo-no-objects":    {SFTPGo, `{"users": ["alice"]}`, "users[0]: a user must be a JSON object"},
		"sftpgo-other-users":   {SFTPGo, `{"users": [{"name": "alice"}]}`, `users[0]: missing key "username"`},
		"sftpgo-other-case": {SFTPGo, `{"users": [{"UserName": "alice", "Permissions": {}}]}`,
			`users[0]: missing key "username"`},
		"sftpgo-type": {SFTPGo, `{"users": [{"username": "alice", "permissions": {"/": ["*"]}, "quota_size": "10GB"}]}`,
			"users[0]: quota_size: unexpected string"},
		"vsftpd-db":        {vsftpd, tree, "this is a Berkeley DB"},
		"vsftpd-db-dump":   {vsftpd, "VERSION=3\nformat=print\ntype=hash\nHEADER=END\n alice\n secret\nDATA=END\n", "sed -n"},
		"vsftpd-odd":       {vsftpd, "alice\nsecret\nbob\n", "line 3 is the last one and has no password after it"},
		"vsftpd-setting":   {vsftpd, "broken\nsecret\n", "user \"broken\": line 2 is not KEY=VALUE"},
		"vsftpd-conf":      {vsftpd, "# vsftpd\nlocal_enable=YES\nwrite_enable=YES\n", "with --vsftpd-conf"},
		"vsftpd-colon":     {vsftpd, "alice:secret\nbob:secret2\n", "line 1 has a colon after \"alice\""},
		"vsftpd-comment":   {vsftpd, "# users\nalice\nsecret\n", "line 1 is a comment"},
		"vsftpd-blank":     {vsftpd, "alice\nsecret\n\nbob\nsecret2\n", "line 3 is blank"},
		"vsftpd-passwd":    {vsftpd, passwd, "babelftp users import proftpd"},
		"vsftpd-shadow":    {vsftpd, shadow, "this is a file like shadow"},
		"vsftpd-pureftpd":  {vsftpd, pure, "babelftp users import pureftpd"},
		"vsftpd-mixed":     {vsftpd, htpasswd + "carol\n", "line 3 has no colon"},
		"vsftpd-bad-utf16": {vsftpd, "\xff\xfea", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.read([]byte(tc.text), "/")
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got error %v, want %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret\"") {
				t.Errorf("the error contains a password: %v", err)
			}
		})
	}
}

// TestImportText imports the same users in different encodings and with different line endings.
func TestImportText(t *testing.T) {
	utf16 := func(order unicode.Endianness) func(string) string {
		return func(text string) string {
			encoded, err := unicode.UTF16(order, unicode.UseBOM).NewEncoder().String(text)
			must.OK(t, err)
			return encoded
		}
	}
	for kind, tc := range map[string]struct {
		read func([]byte, string) (*Users, error)
		file string
	}{
		"sftpgo": {SFTPGo, "sftpgo.json"}, "proftpd": {ProFTPD, "proftpd.passwd"}, "pureftpd": {PureFTPd, "pureftpd.passwd"},
		"vsftpd": {vsftpd, "vsftpd.txt"}, "htpasswd": {vsftpd, "vsftpd.htpasswd"},
	} {
		text := must.ReadFile(t, filepath.Join("testdata", tc.file))
		want, err := tc.read([]byte(text), "/srv")
		must.OK(t, err)
		for name, change := range map[string]func(string) string{
			"bom":      func(text string) string { return "\ufeff" + text },
			"crlf":     func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") },
			"utf-16le": utf16(unicode.LittleEndian),
			"utf-16be": utf16(unicode.BigEndian),
			"no-end":   func(text string) string { return strings.TrimRight(text, "\n") },
			"more":     func(text string) string { return text + "\n\n" },
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				got, err := tc.read([]byte(change(text)), "/srv")
				must.OK(t, err)
				if !reflect.DeepEqual(got, want) {
					t.Errorf("got %+v\nwant %+v", got, want)
				}
			})
		}
	}
}

// TestImportSFTPGoFields adds a field to a user, which must be imported or be mentioned in a comment above the user.
func TestImportSFTPGoFields(t *testing.T) {
	for name, tc := range map[string]struct {
		fields   string // fields of the user in JSON
		want     string // expected in the comment
		disabled bool
	}{
		"no-more":                 {`"id": 3, "created_at": 1700000000000, "last_login": 1700000000000`, "", false},
		"zero":                    {`"quota_files": 0, "filters": {"new": 0, "newer": {"a": [], "b": ""}}, "newest": null`, "", false},
		"password-expiration":     {`"filters": {"password_expiration": 90}`, "passwords expire after 90 days", false},
		"password-change":         {`"filters": {"require_password_change": true}`, "must change the password with SITE PSWD", false},
		"anonymous":               {`"filters": {"is_anonymous": true}`, "the user is anonymous on the other server", true},
		"virtual-folder":          {`"virtual_folders": [{"name": "f", "virtual_path": "/f", "mapped_path": "/srv/f"}]`, "the virtual folder /f is not imported: its files are in /srv/f", false},
		"virtual-folder-of-dump":  {`"virtual_folders": [{"name": "pool", "virtual_path": "/f"}]`, `its files are in the bucket "pool-data"`, false},
		"virtual-folder-quota":    {`"virtual_folders": [{"name": "f", "virtual_path": "/f", "quota_size": 5, "quota_files": -1}]`, "with a quota of 5 bytes", false},
		"virtual-folder-key":      {`"virtual_folders": [{"name": "f", "virtual_path": "/f", "new": 7}]`, "virtual_folders[].new (7)", false},
		"description":             {`"description": "the \"till\"\nin Lyon"`, `description ("the \"till\"\nin Lyon") is not imported`, false},
		"role":                    {`"role": "accounting"`, `role ("accounting")`, false},
		"owner":                   {`"uid": 1000`, "uid (1000) is not imported: files in S3 have no owner", false},
		"group":                   {`"groups": [{"name": "g", "type": 1}]`, "groups (g)", true},
		"quota-of-files":          {`"quota_files": 7`, "the maximum number of files, 7,", true},
		"web-client":              {`"filters": {"web_client": ["write-disabled"]}`, `filters.web_client (["write-disabled"])`, false},
		"hook":                    {`"filters": {"hooks": {"pre_login_disabled": true}}`, "filters.hooks.pre_login_disabled (true)", false},
		"password-strength":       {`"filters": {"password_strength": 60}`, "filters.password_strength (60)", false},
		"certificates":            {`"filters": {"tls_certs": ["-----BEGIN"]}`, "write certificates", false},
		"certificate-name":        {`"filters": {"tls_username": "CommonName"}`, "write certificates", false},
		"no-certificate-name":     {`"filters": {"tls_username": "None"}`, "", false},
		"recovery-codes":          {`"filters": {"recovery_codes": [{"secret": {"payload": "s3cret"}}]}`, "filters.recovery_codes is not imported", false},
		"hidden-files":            {`"filters": {"file_patterns": [{"path": "/", "denied_patterns": ["*.a"], "deny_policy": 1}]}`, "filters.file_patterns[].deny_policy (1)", true},
		"denied-protocol":         {`"filters": {"denied_protocols": ["SSH", "GOPHER"]}`, `filters.denied_protocols: "GOPHER" is unknown`, true},
		"denied-method":           {`"filters": {"denied_login_methods": ["publickey", "passkey"]}`, `filters.denied_login_methods: "passkey" is unknown`, true},
		"second-factor":           {`"filters": {"two_factor_protocols": ["FTP"]}`, "a second factor", true},
		"new-filter":              {`"filters": {"countries": ["FR"]}`, `filters.countries (["FR"]) is unknown to this import`, true},
		"new-filter-below":        {`"filters": {"time": {"zone": "Paris"}}`, `filters.time.zone ("Paris") is unknown`, true},
		"new-field":               {`"frozen": true`, "frozen (true) is unknown to this import", true},
		"new-secret":              {`"api_token": "s3cret"`, "api_token is unknown to this import", true},
		"storage-of-s3":           {`"filesystem": {"provider": 1, "s3config": {"bucket": "b", "storage_class": "GLACIER"}}`, "write objects.storage_class", false},
		"endpoint-of-s3":          {`"filesystem": {"provider": 1, "s3config": {"bucket": "b", "endpoint": "https://s3.example"}}`, `in the bucket "b" at https://s3.example`, false},
		"secret-of-s3":            {`"filesystem": {"provider": 1, "s3config": {"bucket": "b", "access_secret": {"status": "Plain", "payload": "s3cret"}}}`, "filesystem.s3config.access_secret.payload is not imported", false},
		"google":                  {`"filesystem": {"provider": 2, "gcsconfig": {"bucket": "b"}}`, "the files are in Google Cloud Storage: copy them", false},
		"azure":                   {`"filesystem": {"provider": 3, "azblobconfig": {"container": "c"}}`, `filesystem.azblobconfig.container ("c")`, false},
		"encrypted":               {`"filesystem": {"provider": 4}`, "where SFTPGo encrypts them", false},
		"sftp":                    {`"filesystem": {"provider": 5}`, "another SFTP server", false},
		"http":                    {`"filesystem": {"provider": 6}`, "another HTTP server", false},
		"new-storage":             {`"filesystem": {"provider": 7}`, "a storage of an unknown kind", false},
		"permissions":             {`"permissions": {"/": ["list", "chmod", "teleport"]}`, "not imported: chmod, teleport", false},
		"times-not-allowed":       {`"permissions": {"/": ["upload", "overwrite"]}`, "may not set file times", false},
		"root-of-the-server":      {`"filesystem": {"provider": 1, "s3config": {"key_prefix": "a/.babelftp/"}}`, "left out", false},
		"start-directory-of-none": {`"filters": {"start_directory": "inbox"}`, "left out", false},
	} {
		t.Run(name, func(t *testing.T) {
			dump := fmt.Sprintf(`{"folders": [{"name": "pool", "filesystem": {"provider": 1, "s3config": {"bucket": "pool-data"}}}],
				"users": [{"username": "alice", "status": 1, "home_dir": "/srv/alice", "permissions": {"/": ["*"]},
				"password": "$2a$10$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e", %s}]}`, tc.fields)
			users, err := SFTPGo([]byte(dump), "/srv")
			must.OK(t, err)
			text, err := users.YAML()
			must.OK(t, err)
			file, comments := string(text), ""
			if above, _, found := strings.Cut(file, "\n  alice:"); found {
				_, comments, _ = strings.Cut(above, "users:")
			} else {
				comments, _, _ = strings.Cut(file, "users:")
			}
			if tc.want == "" && comments != "" || !strings.Contains(comments, tc.want) {
				t.Errorf("got comment %q, want %q", comments, tc.want)
			}
			if strings.Contains(file, "disabled: true") != tc.disabled {
				t.Errorf("got disabled %t, want %t", !tc.disabled, tc.disabled)
			}
			if must := strings.Contains(file, "must_change_password: true\n"); must != (name == "password-change") ||
				must && !strings.Contains(file, "mkdir, password]") && !strings.Contains(file, "- password\n") {
				t.Errorf("got must_change_password %t:\n%s", must, file)
			}
			if strings.Contains(file, "s3cret") {
				t.Errorf("%s contains a secret", file)
			}
			warnings := strings.Join(users.Warnings, "\n")
			for line := range strings.Lines(comments) {
				text := strings.TrimPrefix(strings.TrimLeft(strings.TrimSpace(line), "# "), noteComment)
				if !strings.Contains(warnings, text) {
					t.Errorf("missing warning %q", text)
				}
			}
		})
	}
}
