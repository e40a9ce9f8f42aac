package serve

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

// notifySystemd reports the state of the server to systemd if it runs in a unit with Type=notify. A path that
// starts with @ is an abstract socket, which Go supports.
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
