package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"syscall"
)

// A ListenError says which address of the configuration could not be listened on.
type ListenError struct {
	Key     string // of the configuration, such as tls.implicit_listen
	Address string
	Err     error
}

// Error is one line, with the key to change.
func (e *ListenError) Error() string {
	what := "choose"
	if errors.Is(e.Err, syscall.EADDRINUSE) { // often the old FTP server
		what = "stop the program that uses it, or choose"
	}
	return fmt.Sprintf("cannot listen on %s: %v: %s another address with %s", e.Address, e.Err, what, e.Key)
}

// Unwrap returns the operating system's error.
func (e *ListenError) Unwrap() error { return e.Err }

// listenTCP opens the address that a key has, and logs it. If systemd has opened a socket that has the name of the key,
// listenTCP takes that. For an empty address it opens none, and the listener is nil. An error is a [ListenError].
func listenTCP(ctx context.Context, key, address string, log *slog.Logger) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	l, err := inherited(key, os.Getenv, firstInherited)
	if l == nil && err == nil {
		l, err = new(net.ListenConfig).Listen(ctx, "tcp", address)
	}
	if err != nil {
		if call, ok := errors.AsType[*os.SyscallError](err); ok {
			err = call.Err // the address is in Error
		}
		return nil, &ListenError{Key: key, Address: address, Err: err}
	}
	log.Info("listening", "key", key, "address", l.Addr().String())
	return l, nil
}
