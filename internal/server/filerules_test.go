package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// The rules of the tenant and of the user both apply. They refuse a file before its first byte, and the audit log has
// the reason.
func TestFileRules(t *testing.T) {
	s, cfg := simulated(t)
	acme := cfg.Tenants["acme"]
	acme.Files = config.FileRules{Deny: []string{"*.exe"}, MaxSize: 100}
	acme.Users["alice"].Files = config.FileRules{Deny: []string{"~*"}, MaxSize: 5}
	lines := auditLines(t, cfg, s, func(c *ftptest.Client) {
		upload := func(command, content, want string) {
			t.Helper()
			if reply, err := c.Upload(command, content); err != nil || !strings.HasPrefix(reply, want) {
				t.Errorf("%s: got %q, %v; want %q", command, reply, err, want)
			}
		}
		c.Login("alice", servicetest.Password)
		c.Store("a", "abcde")
		c.Command(257, "MKD dir.exe")
		upload("STOR dir.exe/a.exe", "a", "553 Files with this kind of name are not accepted here. (dir.exe/a.exe)")
		upload("STOR ~a", "a", "553 ")
		upload("APPE a.exe", "a", "553 ")
		upload("STOU a.exe", "a", "553 ")
		c.Command(350, "REST 1")
		upload("STOR a.exe", "a", "553 ")
		c.Command(350, "RNFR a")
		if reply := c.Command(553, "RNTO a.exe"); !strings.HasSuffix(reply, " (a.exe)") {
			t.Errorf("RNTO: got %q", reply)
		}
		c.Command(350, "SITE CPFR a")
		c.Command(553, "SITE CPTO a.exe")

		upload("STOR b", "abcdef", "552 The file is too large; the limit is 5 bytes. (b)")
		upload("APPE a", "f", "552 ")
		c.Command(350, "REST 4")
		upload("STOR a", "ef", "552 ")
		c.Command(552, "ALLO 6")
		upload("STOR b", "abc", "552 ")
		c.Command(200, "TYPE A")
		c.Command(200, "ALLO 6") // converting the line ends makes it shorter
		upload("STOR b", "a\r\nb\r\n", "226 ")
		c.Command(200, "TYPE I")
		if list := c.Transfer("NLST"); list != "a\r\nb\r\ndir.exe\r\n" {
			t.Errorf("NLST: got %q", list)
		}
	})
	names, sizes := 0, 0
	for _, line := range lines {
		text := fmt.Sprint(line["error"])
		if strings.Contains(text, "files.deny") && line["outcome"] == "failed" && line["path"] != nil {
			names++
		}
		if strings.Contains(text, "files.max_size") && line["outcome"] == "failed" && line["path"] != nil {
			sizes++
		}
	}
	if names != 7 || sizes != 4 {
		t.Errorf("got %d audit lines about names and %d about sizes, want 7 and 4: %v", names, sizes, lines)
	}
}
