//go:build unix

package dataconn

import (
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A connection to a shared port takes none of the last descriptors. Its transfer gets an error, and the others go on to wait.
func TestSharedPortOnFewDescriptors(t *testing.T) {
	ports := NewPorts(somePorts(t, 1))
	one, address := listenOn(t, ports, aClient("127.0.0.1"), time.Hour)
	two, _ := listenOn(t, ports, aClient("127.0.0.2"), time.Hour)
	restore := fewDescriptors(t)
	refused, err := dialFrom(t.Context(), two.client.Addr, address)
	if err != nil {
		t.Fatal(err)
	}
	defer refused.Close()
	if conn, err := two.Open(t.Context()); conn != nil || !errors.Is(err, syscall.EMFILE) {
		t.Errorf("the transfer has %v, %v", conn, err)
	}
	if _, err := refused.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the client reads %v, want the end", err)
	}
	restore()
	conn, err := dialFrom(t.Context(), one.client.Addr, address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	opened(t, one, conn)
	nothingLeft(t, ports)
}

// fewDescriptors leaves the process its last descriptors, until restore is called.
func fewDescriptors(t *testing.T) (restore func()) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	const limit, reserve = 256, 32
	few := before
	few.Cur = limit
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	var files []*os.File
	restore = func() {
		for _, f := range files {
			_ = f.Close()
		}
		files = nil
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(restore)
	for taken := uintptr(0); taken < limit-reserve; {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		taken = f.Fd()
	}
	return restore
}
