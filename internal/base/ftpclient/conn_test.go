package ftpclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/textproto"
	"strings"
	"testing"
)

func TestReply(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, sent string
		code       int
		text       string
		foreign    bool
	}{
		{name: "one-line", sent: "220 hello\r\n", code: 220, text: "hello"},
		{name: "no-text", sent: "220 \r\n", code: 220},
		{name: "lines", sent: "211-Features\r\n UTF8\r\n220 no\r\n211 End\r\n", code: 211,
			text: "Features\n UTF8\n220 no\nEnd"},
		{name: "line-feed", sent: "220 hello\n", code: 220, text: "hello"},
		{name: "http", sent: "HTTP/1.1 400 Bad Request\r\n\r\n", foreign: true},
		{name: "no-line", sent: "\x16\x03\x01", foreign: true},
		{name: "no-such-code", sent: "620 hello\r\n", foreign: true},
		{name: "no-space", sent: "220\r\n", foreign: true},
		{name: "no-number", sent: "2x0 hello\r\n", foreign: true},
		{name: "no-end", sent: "220-hello\r\n"},
		{name: "nothing", sent: ""},
		{name: "too-long", sent: "220-" + strings.Repeat("x", maxReplies) + "\r\n220 hello\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client, server := net.Pipe()
			c := New(t.Context(), client)
			defer c.Close()
			go func() {
				_, _ = io.WriteString(server, tt.sent)
				_ = server.Close()
			}()
			code, text, err := c.Reply()
			if code != tt.code || text != tt.text || (err == nil) != (tt.code > 0) {
				t.Errorf("%d %q, %v; want %d %q", code, text, err, tt.code, tt.text)
			}
			if _, foreign := errors.AsType[textproto.ProtocolError](err); foreign != tt.foreign {
				t.Errorf("protocol error %t (%v), want %t", foreign, err, tt.foreign)
			}
		})
	}
}

// The connection ends with the context of New, also while a caller waits for a reply.
func TestContext(t *testing.T) {
	t.Parallel()
	client, server := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	c := New(ctx, client)
	go func() {
		_, _ = server.Read(make([]byte, 100))
		cancel()
	}()
	if code, _, err := c.Cmd("NOOP"); code != 0 || err == nil {
		t.Errorf("code %d, %v", code, err)
	}
}
