package acceptance_test

import (
	"bytes"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/testkit/configtest"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// These are attacks of users that have a right password, on the running program.

// TestAnnouncedSizeTakesNoMemoryOfOthers announces huge files where all parts must have one size, and sends as much
// as it can of them. Others store files meanwhile.
func TestAnnouncedSizeTakesNoMemoryOfOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "sim-r2"), mallory(), "    s3: {profile: r2}", "memory: 64MiB")
	for i := range 3 {
		c := ftptest.Dial(t, s.address)
		c.Login("mallory@acme", configtest.Password)
		c.Command(200, "TYPE I")
		c.Command(200, "ALLO 2600000000000")
		conn := c.Data()
		t.Cleanup(func() { _ = conn.Close() })
		c.Command(150, "STOR /attack "+strconv.Itoa(i))
		if i > 0 { // it waits for the memory of the first one
			go func() { _, _ = conn.Write(make([]byte, 64<<20)) }()
			continue
		}
		const almost = 64<<20*9/16 - 1<<20 // of a part that is as large as the share of a user
		if _, err := conn.Write(make([]byte, almost)); err != nil {
			t.Fatal(err)
		}
	}
	for _, user := range []string{"alice@umbrella", "alice@acme"} {
		c := ftptest.Dial(t, s.address)
		c.Login(user, password)
		c.Store("/one MiB", strings.Repeat("x", 1<<20))
	}
}

// TestTrickle lets uploads hold the memory of a user and send more than the minimum rate, but far less than what
// fills their parts in time. As another of its sessions waits for memory, one of them ends with 426.
func TestTrickle(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"), mallory(), "memory: 64MiB", "stall_timeout: 10s")
	const share = 64 << 20 * 9 / 16 / onePart // parts of one user
	holding, data := s.attackMemory(t, share, 0)
	ended := make(chan struct{})
	defer close(ended)
	go trickle(data, ended)
	s.attackMemory(t, 0, 1)
	wantFirstToEnd(t, holding, "426 ")
}

// trickle sends 600 bytes each five seconds on connections, until ended is closed. So do those who know the default
// of `limits.min_upload_rate`. There is not enough of it to fill a part.
func trickle(data []net.Conn, ended <-chan struct{}) {
	drip := time.NewTicker(100 * time.Millisecond)
	defer drip.Stop()
	for {
		select {
		case <-drip.C:
		case <-ended:
			return
		}
		for _, c := range data {
			_, _ = c.Write(make([]byte, 12))
		}
	}
}

// TestOneDoor has a user that may do one transfer at the same time read and list by commands that have no data
// connection. During its transfer it asks for the status again and again.
func TestOneDoor(t *testing.T) {
	t.Parallel()
	s := newSite(
		t, s3test.Start(t, "minio"), mallory(),
		"    limits: {per_user: {transfers: 1, download_rate: 4KiB, command_rate: 2}}")
	key, bucket := prefix+"file", s.buckets[acme]
	if _, err := s.client.PutObject(
		t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key,
			Body: bytes.NewReader(content(smallSize))}); err != nil {
		t.Fatal(err)
	}
	first, second := ftptest.Dial(t, s.address), ftptest.Dial(t, s.address)
	for _, c := range []*ftptest.Client{first, second} {
		c.Login("mallory@acme", configtest.Password)
	}
	conn := first.Data()
	defer conn.Close()
	first.Command(150, "RETR /file")
	for _, line := range []string{"STAT /*", "STAT /", "XSHA512 /file 1 90000", "HASH /file"} {
		second.Command(450, line)
	}

	const asked = 40
	if _, err := io.WriteString(first, strings.Repeat("STAT\r\n", asked)+"ABOR\r\n"); err != nil {
		t.Fatal(err)
	}
	answered := 0
	for {
		reply, err := first.Conn.Reply()
		if err != nil {
			t.Fatal(err)
		}
		if code, _ := ftptest.Parse(reply); code != 211 {
			break // the transfer has ended
		}
		answered++
	}
	if answered > asked/2 {
		t.Errorf("%d of %d STAT are answered at once, with two commands a second", answered, asked)
	}
}
