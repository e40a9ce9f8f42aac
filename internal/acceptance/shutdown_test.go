package acceptance_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// mustEnd wants some last replies, and then the end of the connection.
func mustEnd(t *testing.T, c *ftptest.Conn, replies ...string) {
	t.Helper()
	defer c.Close()
	for _, want := range replies {
		if got, err := c.Reply(); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("the reply is %q, %v, want %q", got, err, want)
			return
		}
	}
	if err := c.Closed(); err != nil {
		t.Errorf("after %q: %v", replies, err)
	}
}

// transfers begins ten uploads, which have sent half a file, and ten downloads.
func transfers(t *testing.T, s *site, half []byte) (clients []*ftptest.Conn, data []net.Conn) {
	t.Helper()
	key := prefix + "large"
	body := bytes.NewReader(make([]byte, 4*largeSize)) // more than the sockets hold
	if _, err := s.client.PutObject(
		t.Context(), &s3.PutObjectInput{Bucket: aws.String(s.buckets[acme]), Key: &key, Body: body}); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		c, err := s.dialAlice()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		d, err := c.Data()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		command := "RETR /large"
		if i%2 == 0 {
			command = fmt.Sprintf("STOR /upload%02d", i)
		}
		if reply, err := c.Send(command); err != nil || !strings.HasPrefix(reply, "150") {
			t.Fatalf("%s: %q, %v", command, reply, err)
		}
		if i%2 == 0 {
			_, err = d.Write(half)
		} else {
			_, err = io.ReadFull(d, make([]byte, smallSize))
		}
		if err != nil {
			t.Fatal(err)
		}
		clients, data = append(clients, c), append(data, d)
	}
	return clients, data
}

// TestTransfersEndBeforeTheServer: twenty clients are in the middle of transfers at SIGTERM, and complete them.
func TestTransfersEndBeforeTheServer(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"), "drain_timeout: 10m")
	half := content(smallSize)
	clients, data := transfers(t, s, half)
	s.server.signal(syscall.SIGTERM)
	s.server.expect(s.server.stderr, "msg=stopping")
	for i, c := range clients {
		if i%2 == 0 {
			if _, err := data[i].Write(half); err != nil {
				t.Error(err)
			}
			_ = data[i].Close()
		} else if n, err := io.Copy(io.Discard, data[i]); err != nil || n != 4*largeSize-smallSize {
			t.Errorf("client %d got %d bytes, %v", i, n, err)
		}
		mustEnd(t, c, "226 ", "421 ")
		if i%2 == 0 {
			s.mustStore(t, fmt.Sprintf("upload%02d", i), slices.Concat(half, half))
		}
	}
	if code := s.server.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestTransfersCutAtTheEnd: at the end of drain_timeout, and at a second signal, the server tells each client, and
// leaves no partial object.
func TestTransfersCutAtTheEnd(t *testing.T) {
	t.Parallel()
	for name, drain := range map[string]string{"drain_timeout": "1ms", "second-signal": "1h"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, s3test.Start(t, "minio"), "    resume: discard", "drain_timeout: "+drain)
			clients, _ := transfers(t, s, content(largeSize)) // of several parts
			s.server.signal(syscall.SIGTERM)
			if name == "second-signal" {
				s.server.expect(s.server.stderr, "msg=stopping")
				s.server.signal(syscall.SIGTERM)
			}
			for _, c := range clients {
				mustEnd(t, c, "426 Le serveur s’arrête", "421 Le serveur s’arrête")
			}
			if code := s.server.wait(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if got := strings.Join(s.objects(t, ""), " "); got != "large" {
				t.Errorf("the bucket has %s", got)
			}
			if got := s.uploads(t, ""); len(got) > 0 {
				t.Errorf("uploads are open: %q", got)
			}
		})
	}
}
