package inspect

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"strings"
	"time"
)

// icapPort is the port of a URL without one (RFC 3507, 4.2).
const icapPort = "1344"

// NewICAP makes an inspector of a service of an ICAP server, at "icap://HOST:1344/SERVICE". The service gets each file
// as the body of a PUT (REQMOD), or else as that of an answer (RESPMOD), by what it offers. The file is accepted if it
// comes back as it was, or the service says that it stays so (204). It fails where it takes no bytes, or does not
// answer after the last one, for longer than the timeout.
func NewICAP(address string, timeout time.Duration) (*Inspector, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "icap" || u.Hostname() == "" || u.User != nil {
		return nil, fmt.Errorf("%q is no address of an ICAP service: want icap://HOST:1344/SERVICE", address)
	}
	port := u.Port()
	if port == "" {
		port = icapPort
	}
	d := dialer{"tcp", net.JoinHostPort(u.Hostname(), port), timeout}
	return &Inspector{judge: func(ctx context.Context, name string, r io.Reader) error {
		method, err := icapMethod(ctx, d, u)
		if err != nil {
			return err
		}
		x := &icapExchange{service: u, method: method, name: name, ended: make(chan struct{})}
		return d.exchange(ctx, func(conn net.Conn) error { return x.send(conn, r) }, x.receive)
	}}, nil
}

// icapMethod asks which method the service offers: REQMOD, which has a way to refuse, rather than RESPMOD (4.10).
func icapMethod(ctx context.Context, d dialer, service *url.URL) (method string, err error) {
	return method, d.exchange(ctx, func(conn net.Conn) error {
		_, err := fmt.Fprintf(
			conn, "OPTIONS %s ICAP/1.0\r\nHost: %s\r\nEncapsulated: null-body=0\r\n\r\n", service, service.Host)
		return err
	}, func(conn net.Conn) error {
		status, header, _, err := readICAP(conn)
		if err != nil {
			return err
		}
		methods := strings.ToUpper(strings.Join(header.Values("Methods"), ","))
		for _, method = range []string{"REQMOD", "RESPMOD"} {
			if strings.Contains(methods, method) {
				return nil
			}
		}
		return fmt.Errorf("the service answers OPTIONS with %q and the methods %q", status, methods)
	})
}

// readICAP reads the first line of an answer without its protocol, such as "204 No Content", and the headers. What
// follows comes from the reader that it returns.
func readICAP(conn net.Conn) (status string, header textproto.MIMEHeader, _ *bufio.Reader, _ error) {
	limited := &io.LimitedReader{R: conn, N: maxAnswer}
	body := bufio.NewReader(limited)
	line, header, err := readHead(body)
	limited.N = math.MaxInt64
	status, ok := strings.CutPrefix(line, "ICAP/1.0 ")
	if err == nil && !ok {
		err = fmt.Errorf("the answer is not that of an ICAP server: %q", line)
	}
	return status, header, body, err
}

// readHead reads a first line and headers. Their reader bounds them.
func readHead(r *bufio.Reader) (line string, header textproto.MIMEHeader, err error) {
	text := textproto.NewReader(r)
	if line, err = text.ReadLine(); err == nil {
		header, err = text.ReadMIMEHeader()
	}
	return line, header, err
}

// An icapExchange has one file judged by REQMOD (4.8) or RESPMOD (4.9).
type icapExchange struct {
	service      *url.URL
	method, name string

	sum   []byte        // SHA-256 of the file
	ended chan struct{} // closed when the last byte was sent, and sum is there
}

// send sends the request: the headers of an HTTP message, and the file as its body in chunks (4.4.1).
func (x *icapExchange) send(conn net.Conn, file io.Reader) error {
	const host = "babelftp.invalid" // for the HTTP message, which goes nowhere
	path := "/" + strings.TrimPrefix((&url.URL{Path: x.name}).EscapedPath(), "/")
	head, sections := fmt.Sprintf("PUT http://%s%s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", host, path), ""
	if x.method == "RESPMOD" {
		request := fmt.Sprintf("GET http://%s%s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", host, path)
		answer := "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n"
		head = request + answer
		sections = fmt.Sprintf("req-hdr=0, res-hdr=%d, res-body=%d", len(request), len(head))
	} else {
		sections = fmt.Sprintf("req-hdr=0, req-body=%d", len(head))
	}
	if _, err := fmt.Fprintf(
		conn, "%s %s ICAP/1.0\r\nHost: %s\r\nAllow: 204\r\nEncapsulated: %s\r\n\r\n%s",
		x.method, x.service, x.service.Host, sections, head); err != nil {
		return err
	}
	hash := sha256.New()
	buffered := bufio.NewWriterSize(conn, bufferSize+64) // a chunk with its length
	chunks := httputil.NewChunkedWriter(buffered)
	for buffer := make([]byte, bufferSize); ; {
		n, err := file.Read(buffer)
		hash.Write(buffer[:n])
		if n > 0 {
			if _, err := chunks.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			_ = conn.Close() // without the last chunk there is no answer to wait for
			return err
		}
		if err := buffered.Flush(); err != nil {
			return err
		}
	}
	x.sum = hash.Sum(nil)
	close(x.ended)
	if err := chunks.Close(); err != nil {
		return err
	}
	if _, err := buffered.WriteString("\r\n"); err != nil {
		return err
	}
	return buffered.Flush()
}

// receive reads the answer: 204, or 200 with an HTTP message (4.8.2, 4.9.2).
func (x *icapExchange) receive(conn net.Conn) error {
	status, header, body, err := readICAP(conn)
	if err != nil {
		return err
	}
	code, _, _ := strings.Cut(status, " ")
	if name, found := threat(header); found {
		return refuse(name)
	}
	switch code {
	case "204":
		return nil
	case "200":
	default:
		return fmt.Errorf("the service answers %q", status)
	}
	sections := header.Get("Encapsulated")
	if strings.HasPrefix(strings.TrimSpace(sections), "null-body") {
		return errors.New("the service answers 200 without a message")
	}
	line, _, err := readHead(body)
	if err != nil {
		return err
	}
	answer := strings.HasPrefix(line, "HTTP/") // a request comes back as it was, or an answer instead
	if x.method == "REQMOD" && answer || answer && strings.Fields(line + " 0 0")[1] != "200" {
		return &Refusal{}
	}
	returned := sha256.New()
	if !strings.Contains(sections, "null-body") {
		if _, err := io.Copy(returned, httputil.NewChunkedReader(body)); err != nil {
			return err
		}
	}
	select {
	case <-x.ended:
	default:
		return &Refusal{} // it cannot return bytes that it has not got
	}
	if !bytes.Equal(returned.Sum(nil), x.sum) {
		return &Refusal{}
	}
	return nil
}

// threat returns the name of what a service has found, by the headers that most of them have
// (draft-stecher-icap-subid).
func threat(header textproto.MIMEHeader) (name string, found bool) {
	infection, virus := header.Get("X-Infection-Found"), header.Get("X-Virus-Id")
	for field := range strings.SplitSeq(infection, ";") {
		if name, ok := strings.CutPrefix(strings.TrimSpace(field), "Threat="); ok {
			return name, true
		}
	}
	return virus, infection != "" || virus != "" || header.Get("X-Violations-Found") != ""
}
