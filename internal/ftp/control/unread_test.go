package control_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/ftp/control"
)

// A client that reads no replies is disconnected after a minute, however many commands it has sent.
func TestUnreadReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, end := inBubble(t, control.Config{LoginTimeout: 5 * time.Minute})
		greeting := make([]byte, 1000)
		if n, err := near.Read(greeting); err != nil || !strings.HasPrefix(string(greeting[:n]), "220") {
			t.Fatalf("got %q, %v", greeting[:n], err)
		}
		begin := time.Now()
		// the write fails once the session has ended
		if _, err := io.WriteString(near, strings.Repeat("NOOP\r\n", 1000)); err == nil {
			t.Error("the session read all commands")
		}
		if took := time.Since(begin); took > 61*time.Second {
			t.Errorf("the session ended after %v", took)
		}
		end()
	})
}
