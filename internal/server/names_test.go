package server

import (
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/configtest"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// A tenant can refuse names with control characters. Those that another client has stored can be renamed.
func TestControlCharactersRefused(t *testing.T) {
	s := s3test.Start(t, "embedded")
	cfg := configtest.New(t, s)
	cfg.Tenants["acme"].ControlCharacters = config.RefuseControlCharacters
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	c := ftptest.Dial(t, srv.Addr().String())
	c.Login("alice", configtest.Password)
	c.Store("file", "abc")
	c.Command(553, "MKD a\nb")
	c.Command(553, "SITE MKDIR a\x1b[2Jb")
	c.Command(350, "RNFR file")
	c.Command(553, "RNTO a\tb")
	_ = c.Data()
	c.Command(553, "STOR a\nb/c")
	if list := c.Transfer("NLST"); list != "file\r\n" {
		t.Errorf("NLST shows %q", list)
	}
	put(t, s, cfg, "alice/old\nname")
	c.Command(350, "RNFR old\nname")
	c.Command(250, "RNTO new name")
	if list := c.Transfer("NLST"); list != "file\r\nnew name\r\n" {
		t.Errorf("NLST shows %q", list)
	}
}
