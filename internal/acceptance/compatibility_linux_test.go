package acceptance_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// The tenant of TestOneOldDevice has an old device in one network, and a user with another one.
const oldDevices = `      müllerÿ: {password_hash: HASH}
      dos: {password_hash: HASH, compatibility: {charset: ibm850, backslash: separator}}
    compatibility_by_network:
      127.0.6.0/24: {charset: windows-1252}
      127.0.6.7: {charset: utf-8}
`

// TestOneOldDevice: the network says how a client writes before the login and after it, and what the user says counts
// more after it. Others of the tenant see the same files in UTF-8.
func TestOneOldDevice(t *testing.T) {
	t.Parallel()
	site := newSite(t, s3test.Start(t, "minio"), oldDevices)
	s := &reloadSite{site: site, t: t, file: filepath.Join(filepath.Dir(site.ca), "babelftp.yaml")}
	dial := func(from string) *ftptest.Client {
		c := ftptest.New(t, ftptest.DialFrom(t, from, s.address))
		c.Reply(220)
		return c
	}
	inLatin1 := strings.NewReplacer("ü", "\xfc", "ö", "\xf6", "ÿ", "\xff", "é", "\xe9").Replace
	inDOS := strings.NewReplacer("ö", "\x94", "é", "\x82").Replace

	// The bytes of the user's name are none of UTF-8, and the last one is Telnet's IAC.
	old := dial("127.0.6.1")
	if text := old.Command(331, "USER "+inLatin1("müllerÿ")); !strings.Contains(text, inLatin1("müllerÿ")) {
		t.Errorf("331 is %q", text)
	}
	old.Command(230, "PASS "+inLatin1(password))
	old.Store(inLatin1("café ÿ.txt"), "from an old device")
	s.mustStore(t, "café ÿ.txt", []byte("from an old device"))
	if names := old.Transfer("NLST"); names != inLatin1("café ÿ.txt")+"\r\n" {
		t.Errorf("the old device sees %q", names)
	}

	// Others of the tenant, and one in the smallest network, write UTF-8.
	for _, from := range []string{"127.0.0.1", "127.0.6.7"} {
		c := dial(from)
		c.Login("müllerÿ", password)
		if names := c.Transfer("NLST"); names != "café ÿ.txt\r\n" {
			t.Errorf("from %s are %q", from, names)
		}
		if reply, err := c.Upload("STOR "+inLatin1("é"), ""); err != nil || !strings.HasPrefix(reply, "501 ") {
			t.Errorf("from %s Latin 1 gets %q, %v", from, reply, err)
		}
	}

	// The user counts more than the network.
	c := dial("127.0.6.1")
	c.Login("dos", inDOS(password))
	c.Command(257, "MKD scans")
	c.Store(inDOS(`\scans\é.txt`), "of a user")
	s.mustStore(t, "scans/é.txt", []byte("of a user"))
	if names := c.Transfer("NLST scans"); !strings.Contains(names, inDOS("é.txt")+"\r\n") {
		t.Errorf("the user sees %q", names)
	}

	// A change counts for new sessions.
	s.edit(reloaded, "127.0.6.0/24: {charset: windows-1252}", "127.0.6.0/24: {charset: ibm850}")
	c = dial("127.0.6.1")
	c.Login("alice@acme", inDOS(password))
	for client, want := range map[*ftptest.Client]string{c: "caf\x82 \x98.txt", old: inLatin1("café ÿ.txt")} {
		if names := client.Transfer("NLST"); !strings.HasPrefix(names, want+"\r\n") {
			t.Errorf("after the change %q begins with another name than %q", names, want)
		}
	}
}
