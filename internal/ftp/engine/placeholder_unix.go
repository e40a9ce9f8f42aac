//go:build unix

package engine

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// unconnectable makes a listener of a TCP socket that has no port and does not
// listen. One can set deadlines on it.
func unconnectable() (*net.TCPListener, error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	file := os.NewFile(uintptr(fd), "placeholder")
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return nil, fmt.Errorf("a TCP socket became a %T", listener)
	}
	return tcp, nil
}
