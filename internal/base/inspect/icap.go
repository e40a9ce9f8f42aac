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

// icapPort is the default port (RFC 3507, section 4.2).
const icapPort = "1344"

// NewICAP returns an inspector that uses a service of an ICAP server, for example "icap://HOST:1344/SERVICE". Depending
// on the methods that the service supports, it gets each file as the body of a PUT request (REQMOD) or as the body of a
// response (RESPMOD). The file is accepted if the service returns it unmodified or responds with 204. An inspection
// fails if the service accepts no bytes, or does not respond after the last one, for longer than the timeout.
func NewICAP(address string, timeout time.Duration) (*Inspector, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "icap" || u.Hostname() == "" || u.User != nil {
		return nil, fmt.Errorf("invalid URL of an ICAP service %q: want icap://HOST:1344/SERVICE", address)
	}
	port := u.Port()
	if port == "" {
		port = icapPort
	}
	d := dialer{"tcp", net.JoinHostPort(u.Hostname(), port), timeout}
	return &Inspector{inspect: func(ctx context.Context, name string, r io.Reader) error {
		method, err := icapMethod(ctx, d, u)
		if err != nil {
			return err
		}
		x := &icapExchange{service: u, method: method, name: name, ended: make(chan struct{})}
		return d.exchange(ctx, func(conn net.Conn) error { return x.send(conn, r) }, x.receive)
	}}, nil
}

// icapMethod returns the method to use with a service, from its response to OPTIONS (section 4.10). REQMOD is
// preferred, because it defines how a service rejects a request.
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
		return fmt.Errorf("the service supports neither REQMOD nor RESPMOD: status %q, methods %q", status, methods)
	})
}

// readICAP reads the status line and the headers of a response. It returns the status without the protocol, such as
// "204 No Content", and a reader for the body.
func readICAP(conn net.Conn) (status string, header textproto.MIMEHeader, _ *bufio.Reader, _ error) {
	limited := &io.LimitedReader{R: conn, N: maxResponse}
	body := bufio.NewReader(limited)
	line, header, err := readHead(body)
	limited.N = math.MaxInt64
	status, ok := strings.CutPrefix(line, "ICAP/1.0 ")
	if err == nil && !ok {
		err = fmt.Errorf("invalid status line %q: not an ICAP server", line)
	}
	return status, header, body, err
}

// readHead reads a first line and headers. The caller limits their size.
func readHead(r *bufio.Reader) (line string, header textproto.MIMEHeader, err error) {
	text := textproto.NewReader(r)
	if line, err = text.ReadLine(); err == nil {
		header, err = text.ReadMIMEHeader()
	}
	return line, header, err
}

// An icapExchange is the inspection of one file by REQMOD (section 4.8) or RESPMOD (section 4.9).
type icapExchange struct {
	service      *url.URL
	method, name string

	sum   []byte        // SHA-256 of the file
	ended chan struct{} // closed when the last byte was sent and sum is set
}

// send sends the request: the headers of an encapsulated HTTP message, and the file as its chunked body (section
// 4.4.1).
func (x *icapExchange) send(conn net.Conn, file io.Reader) error {
	const host = "babelftp.invalid" // host of the encapsulated HTTP message, which is not sent to any HTTP server
	path := "/" + strings.TrimPrefix((&url.URL{Path: x.name}).EscapedPath(), "/")
	head, sections := fmt.Sprintf("PUT http://%s%s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", host, path), ""
	if x.method == "RESPMOD" {
		request := fmt.Sprintf("GET http://%s%s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", host, path)
		response := "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n"
		head = request + response
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
	buffered := bufio.NewWriterSize(conn, bufferSize+64) // room for a chunk with its length
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
			_ = conn.Close() // without the last chunk there will be no response
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

// receive reads the response: 204, or 200 with an HTTP message (sections 4.8.2 and 4.9.2).
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
		return fmt.Errorf("unexpected ICAP status %q", status)
	}
	sections := header.Get("Encapsulated")
	if strings.HasPrefix(strings.TrimSpace(sections), "null-body") {
		return errors.New("missing HTTP message in the ICAP response")
	}
	line, _, err := readHead(body)
	if err != nil {
		return err
	}
	isResponse := strings.HasPrefix(line, "HTTP/")
	if x.method == "REQMOD" && isResponse || isResponse && strings.Fields(line + " 0 0")[1] != "200" {
		return &Refusal{} // the service has replaced the message by an error page
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
		return &Refusal{} // the service has returned another body before it received all of the file
	}
	if !bytes.Equal(returned.Sum(nil), x.sum) {
		return &Refusal{}
	}
	return nil
}

// threat returns the name of the threat that a service has found. It parses the headers that most services send
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
