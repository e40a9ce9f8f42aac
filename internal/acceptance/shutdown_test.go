package acceptance_test

import (
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestTransfersCutAtTheEnd: when drain_timeout expires, or at a second signal, the server notifies each client and
// leaves no partial object.
func TestTransfersCutAtTheEnd(t *testing.T) {
	t.Parallel()
	for name, drain := range map[string]string{"drain_timeout": "1ms", "second-signal": "1h"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, s3test.Start(t, "minio"), "    resume: discard", "drain_timeout: "+drain)
			// more than the socket buffers hold
			if err := s.put(t.Context(), "large", string(make([]byte, 4*largeSize))); err != nil {
				t.Fatal(err)
			}
			var clients []*ftptest.Client
			for i := range 10 {
				upload, _ := s.uploading(t, fmt.Sprintf("/upload%02d", i), largeSize) // an upload in several parts
				download := s.alice(t)
				data := download.Data()
				t.Cleanup(func() { _ = data.Close() })
				download.Command(150, "RETR /large")
				if _, err := io.ReadFull(data, make([]byte, smallSize)); err != nil {
					t.Fatal(err)
				}
				clients = append(clients, upload, download)
			}
			s.server.signal(syscall.SIGTERM)
			if name == "second-signal" {
				s.server.expect(s.server.stderr, "msg=stopping")
				s.server.signal(syscall.SIGTERM)
			}
			for _, c := range clients {
				for _, code := range []int{426, 421} {
					if text := c.Reply(code); !strings.HasPrefix(text, "Le serveur s’arrête") {
						t.Errorf("%d %s", code, text)
					}
				}
				c.WantClosed()
			}
			if code := s.server.wait(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if got := strings.Join(s.objects(t, ""), " "); got != "large" {
				t.Errorf("the bucket has %s", got)
			}
			if got := s.uploads(t, ""); len(got) > 0 {
				t.Errorf("unexpected open uploads %q", got)
			}
		})
	}
}
