package acceptance_test

import (
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
)

// A faultClient is a session that returns every reply. Many talkers run in parallel, so a broken connection is an
// error and not the end of the test.
type faultClient struct {
	*ftptest.Conn
	host string
}

// newFaultClient logs a tenant's alice in.
func newFaultClient(s *site, tenant string) (*faultClient, error) {
	host, _, err := net.SplitHostPort(s.address)
	if err != nil {
		return nil, err
	}
	conn, err := ftptest.Open(s.address)
	if err != nil {
		return nil, err
	}
	k := &faultClient{conn, host}
	if r := k.reply(); r.code != 220 {
		return nil, fmt.Errorf("greeting: %v", r)
	}
	for _, step := range []struct {
		line string
		code int
	}{{"USER alice@" + tenant, 331}, {"PASS " + password, 230}, {"TYPE I", 200}} {
		if r := k.send("%s", step.line); r.code != step.code {
			return nil, fmt.Errorf("%s: %v", step.line, r)
		}
	}
	return k, nil
}

// A response is the last reply to a command, and what was downloaded.
type response struct {
	code int
	text string
	data string
	err  error // of the connection
}

func (r response) String() string {
	if r.err != nil {
		return r.err.Error()
	}
	return fmt.Sprintf("%d %s", r.code, r.text)
}

// done tells whether the command was (RFC 959 4.2.1).
func (r response) done() bool { return r.code/100 == 2 }

// send sends a command and reads one reply.
func (k *faultClient) send(format string, args ...any) response {
	return newResponse(k.Send(fmt.Sprintf(format, args...)))
}

func (k *faultClient) reply() response { return newResponse(k.Reply()) }

func newResponse(reply string, err error) response {
	code, text := ftptest.Parse(reply)
	return response{code: code, text: text, err: err}
}

// transfer sends a command that moves data, the data of an upload, and what an upload has none of, reads what comes.
func (k *faultClient) transfer(line string, upload *string) response {
	r := k.send("EPSV")
	if !r.done() {
		return r
	}
	_, port, _ := strings.Cut(r.text, "(|||")
	conn, err := net.Dial("tcp", net.JoinHostPort(k.host, strings.TrimSuffix(port, "|)")))
	if err != nil {
		return response{err: err}
	}
	defer conn.Close()
	if r = k.send("%s", line); r.code/100 != 1 {
		return r
	}
	var data []byte
	if upload != nil {
		_, _ = io.WriteString(conn, *upload) // the server may have closed it already, and says why
		_ = conn.Close()
	} else {
		data, _ = io.ReadAll(conn)
	}
	r = k.reply()
	r.data = string(data)
	return r
}
