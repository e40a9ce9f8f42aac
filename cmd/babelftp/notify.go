package main

import (
	"errors"
	"io"
	"net"
	"os"
)

// States of the server for systemd, see sd_notify(3).
const (
	serviceReady    = "READY=1"
	serviceStopping = "STOPPING=1"
)

// notifySystemd tells systemd how far the server is, where a unit with Type=notify runs it. An address that begins
// with @ is an abstract one, to Go too.
func notifySystemd(state string) error {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		return err
	}
	_, err = io.WriteString(conn, state)
	return errors.Join(err, conn.Close())
}
