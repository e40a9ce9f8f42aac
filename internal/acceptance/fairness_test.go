package acceptance_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

const (
	// onePart is the size of a part in bytes.
	onePart = 5 << 20

	// smallWindow is how many bytes of an attacker wait in its kernel.
	smallWindow = 16 << 10
)

// mallory is a further user of acme, whose password takes the server little time to check.
func mallory() string {
	return "      mallory: {password_hash: " + strconv.Quote(servicetest.PasswordHash().Reveal()) + "}"
}

// attackMemory lets mallory begin so many uploads, each of which sends just less than a part and then no more. The
// first ones, whose parts fill the share of one user, have sent it when attackMemory returns. The others wait for
// memory. The connections end with the test.
func (s *site) attackMemory(t *testing.T, first, others int) (uploads []*ftptest.Client, data []net.Conn) {
	t.Helper()
	var sent sync.WaitGroup
	almost := make([]byte, onePart-60<<10) // which takes all of the blocks of the part
	for i := range first + others {
		c := ftptest.Dial(t, s.address)
		c.Login("mallory@acme", servicetest.Password)
		conn := c.Data()
		t.Cleanup(func() { _ = conn.Close() })
		must.OK(t, conn.(*net.TCPConn).SetWriteBuffer(smallWindow))
		c.Command(150, "STOR /attack "+strconv.Itoa(i))
		uploads, data = append(uploads, c), append(data, conn)
		write := func() {
			if _, err := conn.Write(almost); err != nil && i < first {
				t.Errorf("an upload for which there is memory: %v", err)
			}
		}
		if i < first {
			sent.Go(write)
			continue
		}
		sent.Wait()
		go write()
	}
	sent.Wait()
	return uploads, data
}

// wantFirstToEnd checks the reply to the upload that ends first of those that hold memory.
func wantFirstToEnd(t *testing.T, holding []*ftptest.Client, code string) {
	t.Helper()
	replies := make(chan string, len(holding))
	for _, c := range holding {
		go func() {
			reply, err := c.Conn.Reply()
			replies <- fmt.Sprint(reply, err)
		}()
	}
	if reply := <-replies; !strings.HasPrefix(reply, code) {
		t.Errorf("the first upload that ends of those that hold memory gets %s", reply)
	}
}

// TestSlowUploads lets a user hold memory and send a byte now and then, which is less than the minimum. As others of
// its sessions wait for memory, one of these uploads after another ends with 426. An upload of another tenant that is
// as slow may go on.
func TestSlowUploads(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"), mallory(), "memory: 64MiB", "stall_timeout: 5s")
	const share = 64 << 20 * 9 / 16 / onePart // parts of one user
	holding, data := s.attackMemory(t, share, 0)
	slow := ftptest.Dial(t, s.address)
	slow.Login("alice@umbrella", password)
	conn := slow.Data()
	slow.Command(150, "STOR /slow")
	ended := make(chan struct{})
	dripped := make(chan int)
	go func() {
		drip := time.NewTicker(200 * time.Millisecond)
		defer drip.Stop()
		for n := 0; ; n++ {
			select {
			case <-drip.C:
			case <-ended:
				dripped <- n
				return
			}
			for _, c := range append(data, conn) {
				_, _ = c.Write([]byte("x"))
			}
		}
	}()
	s.attackMemory(t, 0, share)
	wantFirstToEnd(t, holding, "426 ")
	close(ended)
	sent := <-dripped
	_ = conn.Close()
	slow.Reply(226)
	if got := slow.Transfer("RETR /slow"); len(got) != sent {
		t.Errorf("the slow upload has %d bytes, want %d", len(got), sent)
	}
}

// TestSlowUploadInTheWay lets a user, who may do one transfer and no second, send a byte now and then. It may go on
// until another transfer of the user is refused: then it ends, and the other one is let in.
func TestSlowUploadInTheWay(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"), "    limits: {user: {transfers: 1}}", "stall_timeout: 3s")
	slow, other := s.alice(t), s.alice(t)
	conn := slow.Data()
	defer conn.Close()
	slow.Command(150, "STOR /slow")
	dripping, stop := context.WithCancel(t.Context())
	var dripped sync.WaitGroup
	drip := func(until func(n int) bool) {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for n := 0; dripping.Err() == nil && !until(n); n++ {
			<-tick.C
			_, _ = conn.Write([]byte("x"))
		}
	}
	drip(func(n int) bool { return n == 5*5 }) // longer than the window in which it should send more
	slow.Command(211, "STAT")
	dripped.Go(func() { drip(func(int) bool { return false }) })
	defer dripped.Wait()
	defer stop()
	data := other.Data()
	other.Command(450, "STOR /other")
	slow.Reply(426)
	other.Command(150, "STOR /other")
	_ = data.Close()
	other.Reply(226)
}

// TestOneDoor has a user that may do one transfer at the same time read and list by commands that have no data
// connection. During its transfer it asks for the status again and again.
func TestOneDoor(t *testing.T) {
	t.Parallel()
	s := (&site{env: []string{"BABELFTP_LIMITS_ADDRESS_COMMAND_RATE=2"}}).open(
		t, s3test.Start(t, "minio"), mallory(), "    limits: {user: {transfers: 1, download_rate: 4KiB}}")
	s3test.Put(t, s.client, s.buckets[acme], prefix+"file", string(content(smallSize)))
	first, second := ftptest.Dial(t, s.address), ftptest.Dial(t, s.address)
	for _, c := range []*ftptest.Client{first, second} {
		c.Login("mallory@acme", servicetest.Password)
	}
	conn := first.Data()
	defer conn.Close()
	first.Command(150, "RETR /file")
	for _, line := range []string{"STAT /*", "STAT /", "XSHA512 /file 1 90000", "HASH /file"} {
		second.Command(450, line)
	}

	const asked = 40
	must.Write(t, first, strings.Repeat("STAT\r\n", asked)+"ABOR\r\n")
	answered := 0
	for {
		reply, err := first.Conn.Reply()
		must.OK(t, err)
		if code, _ := ftptest.Parse(reply); code != 211 {
			break // the transfer has ended
		}
		answered++
	}
	if answered > asked/2 {
		t.Errorf("%d of %d STAT are answered at once, with two commands a second", answered, asked)
	}
}
