package acceptance_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"
)

// connections counts those of a server that are open.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]time.Time // of the last change of the state
	late int                    // how many have been idle for long before their end
}

// note is for [http.Server.ConnState].
func (c *connections) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	const long = 30 * time.Second // after a minute they end by themselves
	if state != http.StateClosed {
		c.open[conn] = time.Now()
		return
	}
	if time.Since(c.open[conn]) > long {
		c.late++
	}
	delete(c.open, conn)
}

func (c *connections) count() (open, late int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open), c.late
}

// TestConnectionsOfChangedWebhooks changes a webhook again and again while it is in use. The receiver has the
// connections of the last one only.
func TestConnectionsOfChangedWebhooks(t *testing.T) {
	t.Parallel()
	seen := &connections{open: map[net.Conn]time.Time{}}
	delivered := make(chan struct{}, 100)
	receiver := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		delivered <- struct{}{}
	}))
	receiver.Config.ConnState = seen.note
	receiver.Start()
	t.Cleanup(receiver.Close)
	timeout := func(n int) string { return fmt.Sprintf("timeout: %ds", 10+n) }
	s := newReloadSite(t, "    webhook: {url: "+strconv.Quote(receiver.URL)+", secret: "+webhookSecret+", "+timeout(0)+"}")
	const changes = 8
	for n := range changes {
		c := s.login("alice@acme", 230)
		c.Store("/file", "some data")
		<-delivered
		s.edit(reloaded, timeout(n), timeout(n+1))
		c.Command(221, "QUIT")
	}
	waitUntil(t, func() bool { open, _ := seen.count(); return open <= 1 }, func() { t.Error("connections stay open") })
	if _, late := seen.count(); late > 0 {
		t.Errorf("%d connections of former webhooks stay open until they have been idle for long", late)
	}
}
