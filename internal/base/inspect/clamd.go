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

// NewClamd makes an inspector of a clamd, at "unix:" and the path of its socket, or at "tcp://HOST:PORT". It fails
// where clamd takes no bytes, or does not answer after the last one, for longer than the timeout. It also fails for a
// file that is longer than StreamMaxLength, and where the client pauses longer than ReadTimeout, both of clamd.conf.
func NewClamd(address string, timeout time.Duration) (*Inspector, error) {
	d := dialer{timeout: timeout}
	if path, ok := strings.CutPrefix(address, "unix:"); ok && strings.HasPrefix(path, "/") {
		d.network, d.address = "unix", path
	} else if u, err := url.Parse(address); err == nil && u.Scheme == "tcp" && u.Port() != "" {
		d.network, d.address = "tcp", u.Host
	} else {
		return nil, fmt.Errorf("%q is no address of clamd: want unix:/run/clamav/clamd.ctl or tcp://HOST:3310", address)
	}
	return &Inspector{judge: func(ctx context.Context, _ string, r io.Reader) error {
		return d.exchange(ctx, func(conn net.Conn) error { return sendInstream(conn, r) }, receiveClamd)
	}}, nil
}

// sendInstream sends the command INSTREAM: chunks with their lengths, of which the last is empty (clamd(8)).
func sendInstream(conn net.Conn, r io.Reader) error {
	if _, err := io.WriteString(conn, "zINSTREAM\x00"); err != nil {
		return err
	}
	const header = 4
	for chunk := make([]byte, header+bufferSize); ; {
		n, err := r.Read(chunk[header:])
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			_ = conn.Close() // without the empty chunk there is no answer to wait for
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

// receiveClamd reads the answer, "stream: OK" for example.
func receiveClamd(conn net.Conn) error {
	answer, err := bufio.NewReader(io.LimitReader(conn, maxAnswer)).ReadString(0)
	switch {
	case err != nil && answer != "": // such as COMMAND READ TIMED OUT, which has no NUL
		return fmt.Errorf("clamd answers %q", strings.TrimSpace(answer))
	case err != nil:
		return err
	}
	answer = strings.TrimSuffix(answer, "\x00")
	result, ok := strings.CutPrefix(answer, "stream: ")
	if ok && result == "OK" {
		return nil
	}
	if name, found := strings.CutSuffix(result, " FOUND"); ok && found {
		return refuse(name)
	}
	return fmt.Errorf("clamd answers %q", answer)
}
