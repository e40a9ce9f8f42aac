package relay

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A relay takes no descriptors but those of its two connections, also while its client takes nothing.
func TestDescriptors(t *testing.T) {
	all := start(t)
	client, session := relayed(t, all[0], all[1])
	before := pipes(t)
	for err := error(nil); err == nil; { // until nothing moves
		_ = session.SetWriteDeadline(time.Now().Add(time.Second))
		_, err = session.Write(make([]byte, maxFrame))
		if timeout, ok := errors.AsType[net.Error](err); err != nil && (!ok || !timeout.Timeout()) {
			t.Fatal(err)
		}
	}
	if after := pipes(t); after > before {
		t.Errorf("the relay has %d descriptors of pipes", after-before)
	}
	_ = client.Close()
}

// pipes counts the descriptors of pipes that this process has.
func pipes(t *testing.T) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	must.OK(t, err)
	for _, fd := range all {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "pipe:") {
			n++
		}
	}
	return n
}
