package server

import (
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/configtest"
	"github.com/babelftp/babelftp/internal/ftptest"
	"github.com/babelftp/babelftp/internal/redistest"
)

// waitForMetric waits until /metrics has a line.
func waitForMetric(t *testing.T, srv *Server, line string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !hasMetric(t, srv, line) {
		if time.Now().After(deadline) {
			t.Fatalf("/metrics lacks %s", line)
		}
		time.Sleep(time.Millisecond)
	}
}

// Two replicas count failures together. A ban cuts sessions and refuses logins at both. It stays while the store does not answer.
func TestReplicasShareBans(t *testing.T) {
	shared := redistest.Start(t)
	var replicas []*Server
	var administrators []*admin.Client
	for range 2 {
		cfg, s, administrator := bansBehind(t)
		cfg.Limits.Bans.AddressScore = 4
		cfg.Limits.StoreURL = value.NewSecret(shared.URL())
		srv := start(t, cfg, Options{AWS: s.AWSConfig()})
		waitForMetric(t, srv, "babelftp_limits_store_up 1")
		replicas, administrators = append(replicas, srv), append(administrators, administrator)
	}
	guess := func(srv *Server, from, reply string) {
		t.Helper()
		c, _ := dialFrom(t, srv, from, 220)
		c.Command(331, "USER alice")
		if text, err := c.Send("PASS guess"); err != nil || text[:3] != reply {
			t.Errorf("a guess from %s gets %q: %v, want %s", from, text, err, reply)
		}
	}
	const attacker, other = "127.0.0.2", "127.0.0.3"
	var waiting []*ftptest.Client
	for _, srv := range replicas {
		c, _ := dialFrom(t, srv, attacker, 220)
		waiting = append(waiting, c)
	}
	guess(replicas[0], attacker, "530")
	guess(replicas[1], attacker, "530")
	guess(replicas[0], attacker, "530")
	guess(replicas[1], attacker, "530")
	for i, c := range waiting {
		if text := c.Reply(421); text != banned {
			t.Errorf("replica %d says %q", i, text)
		}
		dialFrom(t, replicas[i], attacker, 421)
	}

	if _, err := administrators[0].Ban(t.Context(), "alice@acme", time.Hour); err != nil {
		t.Fatal(err)
	}
	waitFor := func(replica, bans int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			all, err := administrators[replica].Bans(t.Context())
			if err == nil && len(all) == bans {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("replica %d has the bans %v: %v, want %d", replica, all, err, bans)
			}
		}
	}
	waitFor(1, 2)
	c, _ := dialFrom(t, replicas[1], other, 220)
	c.Command(331, "USER alice")
	c.Command(421, "PASS "+configtest.Password)
	if _, err := administrators[1].Unban(t.Context(), "alice@acme"); err != nil {
		t.Fatal(err)
	}
	waitFor(0, 1)
	c, _ = dialFrom(t, replicas[0], other, 220)
	c.Login("alice", configtest.Password)

	shared.Kill()
	for _, srv := range replicas {
		waitForMetric(t, srv, "babelftp_limits_store_up 0")
		dialFrom(t, srv, attacker, 421) // replicas know the bans of each other
	}
	for range 3 {
		guess(replicas[0], other, "530")
	}
	guess(replicas[0], other, "421")
	c, _ = dialFrom(t, replicas[1], other, 220)
	shared.Restart()
	if text := c.Reply(421); text != banned { // when the store is back
		t.Errorf("a session of an address that was banned during the outage reads %q", text)
	}
	for _, srv := range replicas {
		waitForMetric(t, srv, "babelftp_limits_store_up 1")
		dialFrom(t, srv, attacker, 421)
	}
}
