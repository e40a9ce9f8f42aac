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

// A ListenError says which configured address could not be opened.
type ListenError struct {
	Key     string // configuration key, such as tls.implicit_listen
	Address string
	Err     error
}

// Error returns one line that names the key to change.
func (e *ListenError) Error() string {
	what := "choose"
	if errors.Is(e.Err, syscall.EADDRINUSE) { // often the old FTP server
		what = "stop the program that uses it, or choose"
	}
	return fmt.Sprintf("cannot listen on %s: %v: %s another address with %s", e.Address, e.Err, what, e.Key)
}

func (e *ListenError) Unwrap() error { return e.Err }

// listenTCP opens the address of a configuration key, and logs it. It prefers a socket that systemd passed under the
// same name. It returns nil if the address is empty. Its errors are of type [ListenError].
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
		} // Error adds the address itself
		return nil, &ListenError{Key: key, Address: address, Err: err}
	}
	log.Info("listening", "key", key, "address", l.Addr().String())
	return l, nil
}
