package dataconn

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A client has not connected to its port, and may still do so. Other sessions of its address get that port only if
// there is no other one, and then the one on which the wait has ended first.
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
			t.Fatalf("a session gets %s, to which a connection may come that is not its own: %q", address, late)
		}
		conn, err := dialFrom(t.Context(), localhost, address)
		must.OK(t, err)
		defer conn.Close()
		opened(t, w, conn)
	}
	if late[0] == late[1] {
		t.Errorf("both sessions had %s", late[0])
	}
	free := aClient("127.0.0.1")
	for n, tenant := range []string{"globex", "initech", "umbrella"} {
		free.Tenant = tenant // so that no share is used up
		if _, address := listenOn(t, ports, free, time.Hour); n > 0 && address != late[n-1] {
			t.Errorf("session %d gets %s, want %s", n, address, late[n-1])
		}
	}
}

// A port counts as one of a late connection for some time after the last wait on it.
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
				t.Errorf("connections may come to %v, want %v", got, late)
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
		time.Sleep(lateFor - time.Second)
		want(1)
		time.Sleep(time.Second)
		want()
	})
}
