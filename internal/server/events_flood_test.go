package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report/events"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// TestEventsOfAnotherUser stores files of alice while the receiver of events does not respond. When the events fill
// alice's share of the backlog, only alice gets 451. In the end, the receiver gets every event.
func TestEventsOfAnotherUser(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		gate := make(chan struct{})
		open := sync.OnceFunc(func() { close(gate) })
		var mu sync.Mutex
		got := map[string]int{} // events by user
		cfg := servicetest.NewConfig(t, s)
		cfg.Tenants["acme"].Users["bob"] = &config.User{PasswordHash: servicetest.PasswordHash()}
		cfg.Tenants["acme"].Webhook = newWebhookOf(t, func(_ http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			<-gate
			var batch []events.Event
			if err == nil && r.Context().Err() == nil && json.Unmarshal(body, &batch) == nil {
				mu.Lock()
				defer mu.Unlock()
				for _, e := range batch {
					got[e.User]++
				}
			}
		})
		t.Cleanup(open)
		srv := start(t, cfg, Options{AWS: s.AWSConfig(), sweepEvents: 100 * time.Millisecond, eventBacklog: 32 << 10})
		alice, bob := session(t, srv, "alice"), session(t, srv, "bob")
		store := func(c *ftptest.Client, name string) int {
			t.Helper()
			reply, err := c.Upload("STOR "+name, "content")
			must.OK(t, err)
			code, _ := ftptest.Parse(reply)
			return code
		}
		const others = 5
		stored := 0
		for store(alice, fmt.Sprint("a", stored)) == 226 {
			if stored++; stored == 1000 {
				t.Fatal("alice was never refused")
			}
		}
		alice.Command(550, fmt.Sprint("MDTM a", stored)) // without its event, nothing is stored
		alice.Command(451, "DELE a0")
		alice.Want("content", "RETR a0")
		for i := range others {
			if code := store(bob, fmt.Sprint("b", i)); code != 226 {
				t.Errorf("bob: got reply %d", code)
			}
		}
		open()
		until := func(what string, done func() bool) {
			t.Helper()
			for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					mu.Lock()
					defer mu.Unlock()
					t.Fatalf("%s: stored %d and %d files, got events %v", what, stored, others, got)
				}
			}
		}
		until("the receiver lacks events", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return got["alice"] >= stored && got["bob"] >= others
		})
		until("alice is still refused", func() bool { return store(alice, "again") == 226 })
	})
}
