package acceptance_test

import (
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestOutage cuts off the S3 server. Each command gets a temporary error, and the session works again when S3 is
// back.
func TestOutage(t *testing.T) {
	t.Parallel()
	const temporary = "4"
	storage := s3test.Start(t, "minio")
	s, proxy := newSiteBehindProxy(t, storage)
	small := string(content(smallSize))
	s.alice(t).Store("/there", small)

	send := func(lines ...string) func(c *ftptest.Conn) (string, error) {
		return func(c *ftptest.Conn) (reply string, err error) {
			for _, line := range lines {
				if reply, err = c.Send(line); err != nil || reply[0] != '3' {
					break
				}
			}
			return reply, err
		}
	}
	upload := func(line string) func(c *ftptest.Conn) (string, error) {
		return func(c *ftptest.Conn) (string, error) { return c.Upload(line, small) }
	}
	download := func(line string) func(c *ftptest.Conn) (string, error) {
		return func(c *ftptest.Conn) (string, error) { _, reply, err := c.Download(line); return reply, err }
	}
	calls := []func(c *ftptest.Conn) (string, error){
		upload("STOR /new"), upload("APPE /there"), download("RETR /there"), download("LIST /"), download("MLSD /"),
		send("SIZE /there"), send("RNFR /there", "RNTO /elsewhere"), send("DELE /there"), send("MKD /dir"),
		send("CWD /dir"), send("MDTM /there"),
	}
	var sessions []*ftptest.Client
	for range calls {
		sessions = append(sessions, s.alice(t))
	}
	cut := proxy.Cut()
	var all sync.WaitGroup
	for i, call := range calls {
		all.Go(func() {
			if reply, err := call(sessions[i].Conn); err != nil || !strings.HasPrefix(reply, temporary) {
				t.Errorf("call %d: got %q, %v, want a temporary reply", i, reply, err)
			}
		})
	}
	all.Wait()
	cut.End()
	for _, c := range sessions {
		c.Transfer("LIST /")
	}
	sessions[0].Store("/new", small)
	if got := strings.Join(s.objects(t, ""), " "); got != "new there" {
		t.Errorf("the bucket has %s", got)
	}

	t.Run("during-an-upload", func(t *testing.T) {
		c, data := s.uploading(t, "/never", largeSize/2)
		waitUntil(t, func() bool {
			return len(s.uploads(t, "")) > 0
		}, func() { t.Fatal("no multipart upload began") })
		cut := proxy.Cut()
		_, _ = data.Write(content(largeSize / 2)) // the server may have closed the data connection already
		_ = data.Close()
		if reply, err := c.Conn.Reply(); err != nil || !strings.HasPrefix(reply, temporary) {
			t.Errorf("reply to the upload: got %q, %v", reply, err)
		}
		cut.End()
		c.Store("/after", small)
		// for the sweep
		files := slices.DeleteFunc(s.objects(t, ""), func(key string) bool {
			return strings.HasPrefix(key, ".babelftp/")
		})
		if got := strings.Join(files, " "); got != "after new there" {
			t.Errorf("the bucket has %s", got)
		}
	})
	t.Run("during-a-download", func(t *testing.T) {
		c := s.alice(t)
		large := string(content(largeSize))
		c.Store("/large", large)
		data := c.Data()
		c.Command(150, "RETR /large")
		if _, err := io.ReadFull(data, make([]byte, largeSize/10)); err != nil {
			t.Fatal(err)
		}
		cut := proxy.Cut()
		_, _ = io.Copy(io.Discard, data) // more data remains than the connection buffers
		_ = data.Close()
		if reply, err := c.Conn.Reply(); err != nil || !strings.HasPrefix(reply, temporary) {
			t.Errorf("reply to the download: got %q, %v", reply, err)
		}
		cut.End()
		c.Want(large, "RETR /large")
	})
}
