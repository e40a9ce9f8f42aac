package acceptance_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// oldClients are tenants of clients from before UTF-8, and how lftp calls the charset.
var oldClients = []struct {
	tenant string
	label  string // in the configuration
	iconv  string
	dir    string
	names  []string
}{
	// Many characters have 5C, which is "\", as their second byte, and ソ is one of them. ﾃｽﾄ is of one byte a
	// character.
	{
		"tokyo", "shift_jis", "CP932", "予定表",
		[]string{"日本語 のファイル.txt", "表示ソ能十.txt", "ﾃｽﾄ", "①㈱Ⅲ", "a\\b"},
	},
	// я is 255, which is Telnet's IAC; some of the letters that follow it here are commands of Telnet.
	{
		"moscow", "windows-1251", "CP1251", "Моя статья",
		[]string{"Объявление №5.txt", "сияющий", "ясность", "«Ёлка» — да", "Я"},
	},
	{"berlin", "iso-8859-1", "ISO-8859-1", "Grüße", []string{"Größe über alles.txt", "ñandú ÿ", "½ Æ"}},
}

// oldPassword is in every charset.
const oldPassword = "secret"

// oldTenants is their configuration: all are in acme's bucket and have a user alice with oldPassword.
func oldTenants(t *testing.T) string {
	t.Helper()
	hash := passwordHash(t, oldPassword)
	var b strings.Builder
	for _, old := range oldClients {
		fmt.Fprintf(
			&b,
			"  %[1]s: {hosts: [%[1]s.example], bucket: BUCKET, prefix: %[3]s%[1]s/, compatibility: {charset: %[2]s}, "+
				"users: {alice: {password_hash: %[4]q}}}\n",
			old.tenant, old.label, prefix, hash)
	}
	return b.String()
}

// TestOldClients lets clients that know only a charset, and those of today, work with the same files: what the ones
// have stored, the others find by its name.
func TestOldClients(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"), oldTenants(t))
	for _, old := range oldClients {
		t.Run(old.label, func(t *testing.T) {
			t.Parallel()
			tree := map[string][]byte{"Plain.txt": content(10)}
			for _, name := range old.names {
				tree[name] = content(20)
				tree[path.Join(old.dir, name)] = content(30)
			}
			here := t.TempDir()
			writeTree(t, here, tree)
			then, now := newLftp(t, s, usual), newLftp(t, s, usual)
			then.setup = script("set ftp:use-feat no", "set ftp:charset "+old.iconv) + as(old.tenant, then.setup)
			now.setup = as(old.tenant, now.setup)

			then.run("mirror --reverse " + lftpQuote(here) + " /then")
			now.run("mirror --reverse " + lftpQuote(here) + " /now")
			for _, dir := range []string{"then", "now"} {
				for name, data := range tree {
					s.mustStore(t, old.tenant+"/"+dir+"/"+name, data)
				}
				files := slices.DeleteFunc(s.objects(t, old.tenant+"/"+dir+"/"), func(name string) bool {
					return name == "" || strings.HasSuffix(name, "/")
				})
				if want := slices.Sorted(maps.Keys(tree)); !slices.Equal(files, want) {
					t.Errorf("%s: the bucket has %q, want %q", dir, files, want)
				}
			}
			for client, back := range map[*lftp]string{then: "/now", now: "/then"} {
				there := t.TempDir()
				client.run("mirror " + back + " " + lftpQuote(there))
				if got := readTree(t, there); !maps.EqualFunc(got, tree, slices.Equal) {
					t.Errorf(
						"of %s came %q, want %q, or the contents differ", back, slices.Sorted(maps.Keys(got)),
						slices.Sorted(maps.Keys(tree)))
				}
			}
		})
	}
}

// as lets a script log in as the tenant's alice.
func as(tenant, script string) string {
	return strings.NewReplacer("alice@acme", "alice@"+tenant, lftpQuote(password), oldPassword).Replace(script)
}
