package inspect

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"
)

// NewClamd returns an inspector that uses a clamd at "unix:" followed by the path of its socket, or at
// "tcp://HOST:PORT". An inspection fails if clamd accepts no bytes, or does not respond after the last one, for longer
// than the timeout. It also fails if the file is longer than StreamMaxLength of clamd.conf, or if the client pauses for
// longer than ReadTimeout.
func NewClamd(address string, timeout time.Duration) (*Inspector, error) {
	d := dialer{timeout: timeout}
	if path, ok := strings.CutPrefix(address, "unix:"); ok && strings.HasPrefix(path, "/") {
		d.network, d.address = "unix", path
	} else if u, err := url.Parse(address); err == nil && u.Scheme == "tcp" && u.Port() != "" {
		d.network, d.address = "tcp", u.Host
	} else {
		return nil, fmt.Errorf("invalid clamd address %q: want unix:/run/clamav/clamd.ctl or tcp://HOST:3310", address)
	}
	return &Inspector{inspect: func(ctx context.Context, _ string, r io.Reader) error {
		return d.exchange(ctx, func(conn net.Conn) error { return sendInstream(conn, r) }, receiveClamd)
	}}, nil
}

// sendInstream sends the command INSTREAM followed by chunks with their lengths. The last chunk is empty. See clamd(8).
func sendInstream(conn net.Conn, r io.Reader) error {
	if _, err := io.WriteString(conn, "zINSTREAM\x00"); err != nil {
		return err
	}
	const header = 4
	for chunk := make([]byte, header+bufferSize); ; {
		n, err := r.Read(chunk[header:])
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			_ = conn.Close() // without the empty chunk there will be no response
			return err
		}
		if n > 0 {
			binary.BigEndian.PutUint32(chunk, uint32(n))
			if _, err := conn.Write(chunk[:header+n]); err != nil {
				return err
			}
		}
		if ended {
			_, err := conn.Write(make([]byte, header))
			return err
		}
	}
}

// receiveClamd reads the response, for example "stream: OK".
func receiveClamd(conn net.Conn) error {
	response, err := bufio.NewReader(io.LimitReader(conn, maxResponse)).ReadString(0)
	switch {
	case err != nil && response != "": // such as COMMAND READ TIMED OUT, which is not terminated by NUL
		return fmt.Errorf("unexpected response of clamd: %q", strings.TrimSpace(response))
	case err != nil:
		return err
	}
	response = strings.TrimSuffix(response, "\x00")
	result, ok := strings.CutPrefix(response, "stream: ")
	if ok && result == "OK" {
		return nil
	}
	if name, found := strings.CutSuffix(result, " FOUND"); ok && found {
		return refuse(name)
	}
	return fmt.Errorf("unexpected response of clamd: %q", response)
}
