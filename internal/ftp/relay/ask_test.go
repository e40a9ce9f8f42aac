package relay

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A question reaches the other replica, unless that takes none, and comes from a peer only.
func TestAsk(t *testing.T) {
	all := start(t)
	asked := make(chan net.Conn, 1)
	all[1].Asked = func(conn net.Conn) { asked <- conn }
	conn, err := all[0].Ask(t.Context(), 1)
	must.OK(t, err)
	defer conn.Close()
	other := <-asked
	defer other.Close()
	must.Write(t, conn, "question")
	must.Write(t, other, "response")
	for from, want := range map[net.Conn]string{conn: "response", other: "question"} {
		got := make([]byte, len(want))
		if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if _, err := all[0].Ask(t.Context(), 2); err == nil {
		t.Error("a replica that takes no questions accepted one")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := all[0].Ask(ctx, 1); err == nil {
		t.Error("Ask succeeds after its context has ended")
	}

	stranger := all[1].dial(t, "127.0.0.1", Slice(all[1].Ports, 1, 3).First)
	header, err := relayHeader(stranger.LocalAddr(), stranger.RemoteAddr(), questionValue())
	must.OK(t, err)
	must.Write(t, stranger, string(header))
	if _, err := stranger.Read(make([]byte, 1)); err == nil {
		t.Error("a stranger may ask")
	}
}
