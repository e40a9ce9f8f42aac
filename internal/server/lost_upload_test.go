package server

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// If the data connection of an upload is lost, the reply tells the truth about the bucket: it holds nothing, or an
// upload that can be resumed.
func TestLostUpload(t *testing.T) {
	t.Parallel()
	const stored, sent = "stored before", "half of a file"
	const nothing, resumable = "Data connection lost. Nothing was stored.",
		"Data connection lost. The upload can be resumed."
	for _, tt := range []struct {
		name, command, sent string
		keep                bool
		want                string
		size                string // reply to SIZE
	}{
		{"stor", "STOR /new", sent, false, nothing, "550 "},
		{"stor-over-a-file", "STOR /old", sent, false, nothing, fmt.Sprint("213 ", len(stored))},
		{"appe", "APPE /old", sent, false, nothing, fmt.Sprint("213 ", len(stored))},
		{"stor-kept", "STOR /new", sent, true, resumable, fmt.Sprint("213 ", len(sent)-1)},
		{"appe-of-a-new-file-is-not-kept", "APPE /new", sent, true, nothing, "550 "},
		{"stor-over-a-file-kept", "STOR /old", sent, true, resumable, fmt.Sprint("213 ", len(stored))},
		{"nothing-came", "STOR /new", "", true, nothing, "550 "},
		{"first-byte-only", "STOR /new", "x", true, nothing, "550 "}, // a pending upload lacks the last byte
		{"appe-is-not-kept", "APPE /old", sent, true, nothing, fmt.Sprint("213 ", len(stored))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, cfg := simulated(t)
			acme := cfg.Tenants["acme"]
			acme.DefaultLanguage = language.English
			if tt.keep {
				acme.Resume = config.KeepInterrupted
			}
			srv := start(t, cfg, Options{AWS: s.AWSConfig()})
			c := session(t, srv, "alice")
			c.Store("/old", stored)
			if text := lose(t, c, tt.command, tt.sent); text != tt.want {
				t.Errorf("426 %q, want %q", text, tt.want)
			}
			if reply, err := c.Send("SIZE " + tt.command[len("STOR "):]); err != nil ||
				!strings.HasPrefix(reply, tt.size) {
				t.Errorf("SIZE: got %q, %v, want %s", reply, err, tt.size)
			}
			if tt.want != resumable || strings.HasSuffix(tt.command, "old") {
				return
			}
			c.Command(350, fmt.Sprint("REST ", len(tt.sent)-1))
			if text := lose(t, c, "STOR /new", ""); text != resumable { // as before, although nothing arrived
				t.Errorf("426 %q, want %q", text, resumable)
			}
			c.Command(350, fmt.Sprint("REST ", len(tt.sent)-1))
			_ = begin(t, c, "STOR /new", "es").Close()
			c.Reply(226)
			c.Want(tt.sent[:len(tt.sent)-1]+"es", "RETR /new")
		})
	}
}

// lose resets the data connection of an upload after the server received content, and returns the text of the 426
// reply.
func lose(t *testing.T, c *ftptest.Client, command, content string) string {
	t.Helper()
	conn := c.Data().(*net.TCPConn)
	c.Command(150, command)
	must.Write(t, conn, content)
	for !strings.Contains(c.Command(211, "STAT"), fmt.Sprintf("A transfer is running, %d byte", len(content))) {
	}
	must.OK(t, conn.SetLinger(0))
	_ = conn.Close()
	return c.Reply(426)
}
