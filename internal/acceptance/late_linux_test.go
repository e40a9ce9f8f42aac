package acceptance_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// The balancer holds some data connections until their sessions have left the ports. Nothing in them says whose they
// are, and all clients have its address. They disturb no other transfer.
func TestLateDataConnections(t *testing.T) {
	t.Parallel()
	c := newClusterSite(t, s3test.Start(t, "minio"), 0)
	var clients sync.WaitGroup
	const atOnce = 20 // of four addresses
	for number := range atOnce {
		clients.Go(func() {
			if err := c.late(number); err != nil {
				t.Errorf("client %d: %v", number, err)
			}
		})
	}
	clients.Wait()
}

// late stores files and reads them again. The connections of some other transfers come too late.
func (c *clusterSite) late(number int) error {
	client, err := c.connect(number)
	if err != nil {
		return err
	}
	defer client.Close()
	const files = 6
	for n := range files {
		if n%2 == 0 {
			if err := client.tooLate(c.balancer); err != nil {
				return err
			}
		}
		name := fmt.Sprintf("%d-%d", number, n)
		stored := client.file(n)
		if _, err := client.transfer(0, "STOR "+name, stored); err != nil {
			return err
		}
		if back, err := client.transfer(0, "RETR "+name, nil); err != nil || !bytes.Equal(back, stored) {
			return fmt.Errorf("%s: %d bytes come back, want %d, %w", name, len(back), len(stored), err)
		}
	}
	return nil
}

// tooLate lets a data connection come after the session has left its port.
func (c *clusterClient) tooLate(b *balancer) error {
	address, err := c.Passive()
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(address)
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	release := b.hold(number)
	defer release()
	data, err := c.DialData(address)
	if err != nil {
		return err
	}
	defer data.Close()
	if c.TLS == nil {
		if _, err := io.WriteString(data, "too late"); err != nil {
			return err
		}
	}
	reply, err := c.Send("ABOR") // closes a data connection that waits for a transfer
	if err != nil || !strings.HasPrefix(reply, "226") {
		return fmt.Errorf("ABOR: %q, %w", reply, err)
	}
	return nil
}
