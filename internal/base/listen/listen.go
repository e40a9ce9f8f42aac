// Package listen opens the addresses of a configuration, and names the key to change where that fails.
package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
)

// An Error says which address of the configuration could not be listened on.
type Error struct {
	Key     string // of the configuration, such as tls.implicit_listen
	Address string
	Err     error
}

// Error is one line, with the key to change.
func (e *Error) Error() string {
	return fmt.Sprintf("cannot listen on %s: %v: choose another address with %s", e.Address, e.Err, e.Key)
}

// Unwrap returns the operating system's error.
func (e *Error) Unwrap() error { return e.Err }

// TCP opens the address that a key has, and logs it. If systemd has opened a socket that has the name of the key, TCP
// takes that. For an empty address it opens none, and the listener is nil. An error is an [Error].
func TCP(ctx context.Context, key, address string, log *slog.Logger) (net.Listener, error) {
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
		return nil, &Error{Key: key, Address: address, Err: err}
	}
	log.Info("listening", "key", key, "address", l.Addr().String())
	return l, nil
}
