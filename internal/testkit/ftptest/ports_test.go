package ftptest

import (
	"net"
	"strconv"
	"testing"
)

// A port is of one test, until that test ends. A port is not free while a program listens on it at one of the hosts.
func TestFreePorts(t *testing.T) {
	const localhost, other = "127.0.0.1", "127.0.0.2"
	t.Run("ports-of-a-test", func(t *testing.T) {
		first := int(FreePorts(t, 2, localhost, other))
		if _, free := reserve(first+1, 2, []string{localhost}); free {
			t.Errorf("another test gets port %d", first+1)
		}
	})
	const first, n = lastPort + 1, 3 // which no other test gets
	release, free := reserve(first, n, []string{localhost, other})
	if !free {
		t.Fatalf("ports %d to %d are not free", first, first+n-1)
	}
	release()
	l, err := net.Listen("tcp", net.JoinHostPort(other, strconv.Itoa(first+1)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, free := reserve(first, n, []string{localhost, other}); free {
		t.Error("a port on which a program listens is free")
	}
	if release, free := reserve(first, n, []string{localhost}); !free {
		t.Error("ports are still reserved after their release, or after an attempt that failed")
	} else {
		release()
	}
}
