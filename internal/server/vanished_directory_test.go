package server

import (
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/configtest"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
)

// Another session deletes the only file below the directory that a session is in. The directory without a marker is
// gone, but the session can list it, leave it, come back and remove it.
func TestSessionInAVanishedDirectory(t *testing.T) {
	s, cfg := simulated(t)
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	login := func() *ftptest.Client {
		c := ftptest.Dial(t, srv.Addr().String())
		c.Login("alice", configtest.Password)
		return c
	}
	here, there := login(), login()
	put(t, s, cfg, "alice/a/b/file")
	here.Command(250, "CWD a/b")
	there.Command(250, "DELE a/b/file")

	if list := here.Transfer("MLSD"); strings.Contains(list, "file") {
		t.Errorf("MLSD shows %q", list)
	}
	if list := here.Transfer("NLST"); list != "" {
		t.Errorf("NLST shows %q", list)
	}
	here.Command(250, "MLST")
	here.Command(250, "CDUP")
	if reply := here.Command(257, "PWD"); !strings.Contains(reply, `/a"`) {
		t.Errorf("PWD: %q", reply)
	}
	here.Command(250, "CWD b")
	here.Command(250, "CDUP")
	here.Command(250, "RMD b")
	here.Command(550, "RMD b")
	here.Command(550, "CWD b")
	here.Command(250, "CDUP")
	here.Command(250, "RMD a")
	here.Command(550, "CWD a")

	login().Command(550, "CWD a")                   // it has seen nothing
	there.Command(257, "MKD a/b")                   // of which it knows already
	there.Command(550, "MKD a/b")                   // a marker is in the bucket now
	login().Command(250, "CWD a/b")                 // for everybody
	there.Command(250, "RMD a/b")                   // and both end
	there.Command(250, "RMD a")                     // with it
	login().Command(550, "RMD a")                   // for everybody
	if list := there.Transfer("NLST"); list != "" { // as in the bucket
		t.Errorf("NLST shows %q", list)
	}
}
