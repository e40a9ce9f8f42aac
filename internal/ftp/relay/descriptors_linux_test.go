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

// A relay uses no descriptors besides its two connections, even while its client reads nothing.
func TestDescriptors(t *testing.T) {
	all := start(t)
	client, session := relayed(t, all[0], all[1])
	before := pipes(t)
	for err := error(nil); err == nil; { // until the writes block
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

// pipes returns the number of pipe descriptors of this process.
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
