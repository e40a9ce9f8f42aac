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
	// onePart is the part size in bytes.
	onePart = 5 << 20

	// smallWindow limits how many bytes an attacker's kernel buffers.
	smallWindow = 16 << 10
)

// mallory configures another user of acme, whose password is cheap to check.
func mallory() string {
	return "      mallory: {password_hash: " + strconv.Quote(servicetest.PasswordHash().Reveal()) + "}"
}

// attackMemory starts uploads as mallory that send slightly less than one part and then stop. The first uploads,
// which fill the memory share of one user, have sent their data when attackMemory returns. The others wait for
// memory. The connections end with the test.
func (s *site) attackMemory(t *testing.T, first, others int) (uploads []*ftptest.Client, data []net.Conn) {
	t.Helper()
	var sent sync.WaitGroup
	almost := make([]byte, onePart-60<<10) // enough to fill all blocks of a part
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
				t.Errorf("upload with enough memory: %v", err)
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

// wantFirstToEnd checks the first reply among uploads that hold memory.
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
		t.Errorf("first ended upload that held memory: got reply %s", reply)
	}
}

// TestSlowUploads holds memory with uploads that send less than the minimum rate. When other sessions of the user
// wait for memory, the slow uploads end with 426 one after another. An equally slow upload of another tenant
// continues.
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

// TestSlowUploadInTheWay uploads slowly as a user with one allowed transfer. The upload continues until another
// transfer of the user is refused. Then it ends, and the other transfer is accepted.
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
	drip(func(n int) bool { return n == 5*5 }) // longer than the window of the minimum rate
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

// TestOneTransferSlot checks that a user with one allowed transfer can still read and list with commands that need no
// data connection. During the transfer it sends STAT repeatedly.
func TestOneTransferSlot(t *testing.T) {
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
			break // the transfer ended
		}
		answered++
	}
	if answered > asked/2 {
		t.Errorf("%d of %d STAT commands got a reply at once, want two a second", answered, asked)
	}
}
