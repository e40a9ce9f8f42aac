package dataconn

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// After a client did not connect to its port, its connection may still arrive. Other sessions from its address get
// this port only if no other port is free, and then the port whose wait ended first.
func TestLateConnection(t *testing.T) {
	ports := NewPorts(PortOptions{Range: somePorts(t, 3)})
	var late []string
	for range 2 {
		w, address := listenOn(t, ports, aClient("127.0.0.1"), time.Hour)
		w.Close()
		late = append(late, address)
	}
	for range 20 {
		w, address := listenOn(t, ports, aClient("127.0.0.1"), time.Hour)
		if slices.Contains(late, address) {
			t.Fatalf("got address %s, on which a late connection of another session may arrive: %q", address, late)
		}
		conn, err := dialFrom(t.Context(), localhost, address)
		must.OK(t, err)
		defer conn.Close()
		opened(t, w, conn)
	}
	if late[0] == late[1] {
		t.Errorf("both sessions got %s", late[0])
	}
	free := aClient("127.0.0.1")
	for n, tenant := range []string{"globex", "initech", "umbrella"} {
		free.Tenant = tenant // so that no share is exhausted
		if _, address := listenOn(t, ports, free, time.Hour); n > 0 && address != late[n-1] {
			t.Errorf("session %d: got %s, want %s", n, address, late[n-1])
		}
	}
}

// A port is avoided for lateTTL after the last wait on it.
func TestLateConnectionIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ports := NewPorts(PortOptions{})
		addr := netip.MustParseAddr("192.0.2.7")
		want := func(late ...uint16) {
			t.Helper()
			synctest.Wait()
			ports.mu.Lock()
			defer ports.mu.Unlock()
			if got := ports.late[addr].oldestFirst(); !slices.Equal(got, late) ||
				len(ports.late) > 0 != (len(late) > 0) {
				t.Errorf("got late ports %v, want %v", got, late)
			}
		}
		expect := func(port uint16) {
			ports.mu.Lock()
			defer ports.mu.Unlock()
			ports.expectLate(addr, port)
		}
		expect(1)
		time.Sleep(time.Second)
		expect(2)
		time.Sleep(time.Second)
		expect(1)
		want(2, 1)
		time.Sleep(lateTTL - time.Second)
		want(1)
		time.Sleep(time.Second)
		want()
	})
}
