package relay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// stall is longer than any test.
const stall = time.Hour

// events counts the events of a cluster.
type events struct {
	mu     sync.Mutex
	active int
	counts map[string]int
	waits  chan struct{} // receives once for each event

	bugs, panics atomic.Int64 // number of panics to raise in RelayOpened, and raised so far
}

func newEvents() *events { return &events{counts: map[string]int{}, waits: make(chan struct{}, 1000)} }

func (e *events) count(what string, active int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.active += active
	if what != "" {
		e.counts[what]++
		e.waits <- struct{}{}
	}
}

func (e *events) RelayOpened() {
	if e.bugs.Load() > e.panics.Load() {
		e.panics.Add(1)
		panic("a bug")
	}
	e.count("", 1)
}

func (e *events) RelayClosed(result Result)  { e.count(string(result), -1) }
func (e *events) RelayRefused(reason Reason) { e.count("refused "+string(reason), 0) }

// want waits for the next event and checks the number of events of its kind.
func (e *events) want(t *testing.T, what string, n int) {
	t.Helper()
	<-e.waits
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.counts[what] != n {
		t.Errorf("got events %v, want %d %s", e.counts, n, what)
	}
}

// counted returns the number of relays with this result.
func (e *events) counted(result Result) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.counts[string(result)]
}

// A replica is a cluster with its ports, all in this process.
type replica struct {
	*Cluster
	address netip.Addr
	ports   *dataconn.Ports
	events  *events

	headerless atomic.Int32 // connections without a load balancer header
}

// replicas returns the addresses of the replicas. A load balancer at the address trusted sends headers.
func replicas() []string { return []string{"127.0.0.2", "127.0.0.3", "127.0.0.4"} }

const trusted = "127.0.0.9"

// freePorts returns n ports that no program and no other test uses.
func freePorts(t *testing.T, n int) netaddr.PortRange {
	t.Helper()
	first := ftptest.FreePorts(t, n, replicas()...)
	return netaddr.PortRange{First: first, Last: first + uint16(n) - 1}
}

// start starts replicas with two ports each.
func start(t *testing.T) []*replica {
	t.Helper()
	ports := freePorts(t, 2*len(replicas()))
	var all []*replica
	for n := range replicas() {
		all = append(all, startReplica(t, n, ports, takeTimeout, stall))
	}
	return all
}

func startReplica(t *testing.T, n int, ports netaddr.PortRange, within, stall time.Duration) *replica {
	t.Helper()
	r := &replica{address: netip.MustParseAddr(replicas()[n]), events: newEvents()}
	log := slog.New(slog.DiscardHandler)
	r.Cluster = New(t.Context(), Options{
		Replica: n, Peers: replicas(), Ports: ports, Address: r.address, StallTimeout: stall, Observe: r.events,
		Guard: panics.NewGuard(log), Log: log,
		Trust: NewTrust([]netip.Prefix{netip.MustParsePrefix(trusted + "/32")}, func() {
			r.headerless.Add(1)
		}, nil, log),
	})
	r.within = within
	r.ports = dataconn.NewPorts(
		dataconn.PortOptions{Range: Slice(ports, n, len(replicas())), Address: r.address, Receive: r.Receive})
	must.OK(t, r.ports.Open(t.Context()))
	t.Cleanup(r.ports.Close)
	must.OK(t, r.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		cancel()
		r.Shutdown(ctx)
		if n := r.Guard.Count(); n != r.events.bugs.Load() {
			t.Errorf("got %d counted panics, want %d", n, r.events.bugs.Load())
		}
	})
	return r
}

// listen lets a session wait for a client.
func (r *replica) listen(t *testing.T, client string) (source dataconn.Source, port uint16) {
	t.Helper()
	waited := dataconn.Client{Local: r.address, Addr: netip.MustParseAddr(client), Tenant: "acme", User: "alice"}
	source, port, err := r.ports.Listen(t.Context(), waited, time.Hour)
	must.OK(t, err)
	t.Cleanup(source.Close)
	return source, port
}

// dial connects to a replica.
func (r *replica) dial(t *testing.T, from string, port uint16) *net.TCPConn {
	t.Helper()
	return ftptest.DialFrom(t, from, netip.AddrPortFrom(r.address, port).String())
}

// open returns the connection that the session gets.
func open(t *testing.T, source dataconn.Source) net.Conn {
	t.Helper()
	conn, err := source.Open(t.Context())
	must.OK(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// relayed connects a client of the owner through a replica, or directly, and returns both ends.
func relayed(t *testing.T, owner, by *replica) (client *net.TCPConn, session net.Conn) {
	t.Helper()
	source, port := owner.listen(t, "127.0.0.1")
	client = by.dial(t, "127.0.0.1", port)
	return client, open(t, source)
}

func finish(conn net.Conn) error { return conn.(*owned).Finish() }

// The slices cover all ports, and do not overlap.
func TestSlice(t *testing.T) {
	for _, tc := range []struct {
		ports    netaddr.PortRange
		replicas int
	}{
		{netaddr.PortRange{First: 30000, Last: 30099}, 3},
		{netaddr.PortRange{First: 30000, Last: 30002}, 3},
		{netaddr.PortRange{First: 30000, Last: 30099}, 1},
		{netaddr.PortRange{First: 49152, Last: 65535}, 7},
		{netaddr.PortRange{First: 1, Last: 65535}, 1000},
	} {
		next := int(tc.ports.First)
		for n := range tc.replicas {
			s := Slice(tc.ports, n, tc.replicas)
			if int(s.First) != next || s.Last < s.First || s.Size() > tc.ports.Size()/tc.replicas+1 {
				t.Fatalf("Slice %d of %d of %v = %v", n, tc.replicas, tc.ports, s)
			}
			next = int(s.Last) + 1
		}
		if next != int(tc.ports.Last)+1 {
			t.Errorf("%d slices of %v end before %d", tc.replicas, tc.ports, next)
		}
	}
}

// A connection reaches its session through any replica, with the address of the client. Either side can close its
// direction first, and the other direction continues.
func TestRelay(t *testing.T) {
	const big = 3 << 20
	all := start(t)
	for n, by := range all {
		t.Run(fmt.Sprint("client-first-", n), func(t *testing.T) {
			client, session := relayed(t, all[0], by)
			if session.RemoteAddr().String() != client.LocalAddr().String() {
				t.Errorf("got client %v, want %v", session.RemoteAddr(), client.LocalAddr())
			}
			content := bytes.Repeat([]byte("up "), big/3)
			go func() {
				_, _ = client.Write(content)
				_ = client.CloseWrite()
			}()
			if got, err := io.ReadAll(session); err != nil || !bytes.Equal(got, content) {
				t.Errorf("session: got %d bytes, %v, want %d", len(got), err, len(content))
			}
			if _, err := io.WriteString(session, "the end"); err != nil {
				t.Error(err)
			}
			if n > 0 {
				if err := finish(session); err != nil {
					t.Error(err)
				}
			}
			_ = session.Close()
			if got, err := io.ReadAll(client); err != nil || string(got) != "the end" {
				t.Errorf("client: got %q, %v", got, err)
			}
			if n > 0 {
				by.events.want(t, string(Complete), 1)
			}
		})
		if n == 0 {
			continue // not relayed
		}
		t.Run(fmt.Sprint("session-first-", n), func(t *testing.T) {
			client, session := relayed(t, all[0], by)
			content := bytes.Repeat([]byte("down"), big/4)
			ended := make(chan error, 1)
			go func() {
				_, err := session.Write(content)
				ended <- errors.Join(err, finish(session))
				_ = session.Close()
			}()
			if got, err := io.ReadAll(client); err != nil || !bytes.Equal(got, content) {
				t.Errorf("client: got %d bytes, %v, want %d", len(got), err, len(content))
			}
			if err := <-ended; err != nil {
				t.Errorf("the end of the download: %v", err)
			}
			by.events.want(t, string(Complete), 2)
		})
	}
}

// A connection that the client has reset is neither a complete upload nor a complete download.
func TestRelayOfAReset(t *testing.T) {
	all := start(t)
	client, session := relayed(t, all[0], all[1])
	_, _ = io.WriteString(client, "half a f")
	if _, err := io.ReadFull(session, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	reset(client)
	if n, err := session.Read(make([]byte, 8)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("session after a reset: got %d bytes, %v", n, err)
	}
	_ = session.Close()
	all[1].events.want(t, string(Failed), 1)

	client, session = relayed(t, all[0], all[1])
	_, _ = io.WriteString(session, "half a f")
	if _, err := io.ReadFull(client, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	reset(client)
	if err := finish(session); err == nil {
		t.Error("a download is complete although the client reset it")
	}
	_ = session.Close()
	all[1].events.want(t, string(Failed), 2)
}

// After a complete upload a client may close or reset its connection without reading the end of TLS, and after a
// complete download it may reset it. The relay is complete, and no data of the client is lost.
func TestRelayOfALateReset(t *testing.T) {
	all := start(t)
	const content, rest = "a file", "tickets, close_notify"
	for n, tc := range []struct {
		name   string
		upload bool
		end    func(*net.TCPConn)
	}{
		{"upload-closed", true, func(client *net.TCPConn) { _ = client.Close() }},
		{"upload-reset", true, reset},
		{"download-closed", false, func(client *net.TCPConn) { _ = client.Close() }},
		{"download-reset", false, reset},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client, session := relayed(t, all[0], all[1])
			var from, to net.Conn = session, client
			if tc.upload {
				from, to = client, session
			}
			must.Write(t, from, content)
			got := make([]byte, len(content))
			if _, err := io.ReadFull(to, got); err != nil || string(got) != content {
				t.Errorf("got %q, %v", got, err)
			}
			if tc.upload {
				tc.end(client)
				session.(*owned).Received()
				must.Write(t, session, rest)
				must.Write(t, session, rest) // after the first write was answered with a reset
			}
			if err := finish(session); err != nil && !tc.upload {
				t.Errorf("unexpected end of the download: %v", err)
			}
			if !tc.upload {
				tc.end(client)
			}
			_ = session.Close()
			all[1].events.want(t, string(Complete), n+1)
		})
	}
}

// reset closes a connection with RST.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}

// resetAfter is a connection of a client that is reset after some content.
type resetAfter struct {
	net.Conn
	content []byte
	done    chan struct{} // closed when the reset was read
}

func (c *resetAfter) Read(b []byte) (int, error) {
	if len(c.content) == 0 {
		close(c.done)
		return 0, syscall.ECONNRESET
	}
	n := copy(b, c.content)
	c.content = c.content[n:]
	return n, nil
}

// A slow owner receives all data that a client has sent before a reset, but no end of the file.
func TestRelayOfAResetToASlowOwner(t *testing.T) {
	ends, far := connected(t)
	must.OK(t, ends[1].SetWriteBuffer(1<<20))
	must.OK(t, far[1].SetReadBuffer(1<<12)) // so that most of the content waits in the socket of the relay
	client := &resetAfter{ends[0], bytes.Repeat([]byte("file"), 16<<10), make(chan struct{})}
	want := len(client.content)
	r := &relay{client: client, socket: ends[0], owner: ends[1], frames: frameWriter{conn: ends[1]}, stall: stall}
	result := make(chan error, 1)
	go func() { result <- r.run() }()
	<-client.done
	owner := &owned{proxyConn: &proxyConn{Conn: far[1]}, reader: bufio.NewReader(far[1]), stall: stall}
	got := make([]byte, want)
	if n, err := io.ReadFull(owner, got); err != nil {
		t.Errorf("owner: got %d bytes of %d, %v", n, want, err)
	}
	if _, err := owner.Read(got); !errors.Is(err, errCut) {
		t.Errorf("then the owner got %v", err)
	}
	_ = far[1].Close()
	if err := <-result; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("unexpected end of the relay: %v", err)
	}
}

// A client that reads the rest of a download slowly, for longer than the stall timeout, receives all of it.
func TestRelayToASlowClient(t *testing.T) {
	const stall, big = 4 * time.Second, 10 << 20
	ports := freePorts(t, 6)
	owner, by := startReplica(t, 0, ports, takeTimeout, stall), startReplica(t, 1, ports, takeTimeout, stall)
	client, session := relayed(t, owner, by)
	ended := make(chan error, 1)
	go func() {
		content := make([]byte, big)
		for len(content) > 0 {
			_ = session.SetWriteDeadline(time.Now().Add(stall))
			n, err := session.Write(content[:min(len(content), maxFrame)])
			if content = content[n:]; err != nil {
				ended <- err
				return
			}
		}
		ended <- finish(session)
		_ = session.Close()
	}()
	total := 0
	begin := time.Now()
	buffer := make([]byte, 256<<10)
	for {
		n, err := client.Read(buffer)
		if total += n; err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
		// the client reads at a fixed rate, whatever the load of the machine
		due := begin.Add(time.Duration(total) * time.Second / (2 << 20))
		<-time.After(time.Until(due))
	}
	if err := <-ended; err != nil || total != big {
		t.Errorf("client: got %d of %d bytes, and the download ended with %v", total, big, err)
	}
}

// If a session gives up a download, its client is cut, so that it does not take a part for the whole.
func TestRelayOfACutDownload(t *testing.T) {
	all := start(t)
	client, session := relayed(t, all[0], all[1])
	_, _ = io.WriteString(session, "half a f")
	if _, err := io.ReadFull(client, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	_ = session.Close()
	if n, err := client.Read(make([]byte, 8)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("client after the session closed: got %d bytes, %v", n, err)
	}
	all[1].events.want(t, string(Failed), 1)
}

// A replica that shuts down waits for its relays, and cuts them when the timeout ends.
func TestShutdown(t *testing.T) {
	all := start(t)
	client, session := relayed(t, all[0], all[1])
	ctx, cancel := context.WithCancel(t.Context())
	down := make(chan struct{})
	go func() {
		defer close(down)
		all[1].Shutdown(ctx)
	}()
	for { // until it accepts no more connections
		conn, err := net.Dial("tcp", client.RemoteAddr().String())
		if err != nil {
			break
		}
		_ = conn.Close()
	}
	if _, err := io.WriteString(client, "still"); err != nil {
		t.Errorf("while the replica is stopping: %v", err)
	}
	if _, err := io.ReadFull(session, make([]byte, 5)); err != nil {
		t.Errorf("while the replica is stopping: %v", err)
	}
	select {
	case <-down:
		t.Error("the replica did not wait for its relay")
	default:
	}
	cancel()
	<-down
	if n, err := session.Read(make([]byte, 8)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("session after the replica stopped: got %d bytes, %v", n, err)
	}
	if n, err := client.Read(make([]byte, 8)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("client after the replica stopped: got %d bytes, %v", n, err)
	}
}

// A replica that shuts down at once does not wait for the header of a load balancer.
func TestShutdownBeforeAHeader(t *testing.T) {
	all := start(t)
	by := all[1]
	_, port := all[0].listen(t, "127.0.0.1")
	silent := by.dial(t, trusted, port)
	served := by.dial(t, trusted, port) // accepted after the silent connection
	_, _ = io.WriteString(served, "PROXY TCP4 203.0.113.7 192.0.2.1 40000 30000\r\n")
	by.events.want(t, string(Unmatched), 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	by.Shutdown(ctx)
	if _, err := silent.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open after the replica stopped")
	}
	if by.headerless.Load() > 0 {
		t.Error("the replica waited until the header timed out")
	}
}

// handMade opens a relay by hand, from an address, for a client.
func handMade(t *testing.T, to *replica, from string, port uint16, client string, age time.Duration) net.Conn {
	t.Helper()
	conn := to.dial(t, from, port)
	h, err := relayHeader(
		&net.TCPAddr{IP: net.ParseIP(client), Port: 40000}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: int(port)},
		binary.BigEndian.AppendUint64([]byte{relayVersion}, uint64(age)))
	must.OK(t, err)
	if _, err := conn.Write(h); err != nil {
		t.Fatal(err)
	}
	return conn
}

// taken checks whether a session of the owner takes a relay.
func taken(t *testing.T, conn net.Conn, want bool) {
	t.Helper()
	b := make([]byte, frameHeader)
	_, err := io.ReadFull(conn, b)
	kind := byte(0)
	if err == nil {
		kind, _, err = parseHeader(b)
	}
	if got := err == nil && kind == frameTaken; got != want {
		t.Errorf("got taken %v (%v), want %v", got, err, want)
	}
}

// spoken returns a relay opened by hand for a client, and the session that has taken it.
func spoken(t *testing.T, owner *replica) (conn, session net.Conn) {
	t.Helper()
	source, port := owner.listen(t, "203.0.113.7")
	conn = handMade(t, owner, replicas()[1], port, "203.0.113.7", 0)
	taken(t, conn, true)
	return conn, open(t, source)
}

func frame(kind byte, data string) []byte {
	b := make([]byte, frameHeader)
	putHeader(b, kind, len(data))
	return append(b, data...)
}

// If a replica is killed, its connections end as if the client had sent everything. The owner must notice the
// difference in both directions.
func TestKilledRelay(t *testing.T) {
	all := start(t)
	for name, tc := range map[string]struct {
		sent     []byte
		complete bool
	}{
		"nothing":       {nil, false},
		"half-a-header": {[]byte{frameData, 0}, false},
		"half-a-frame":  {frame(frameData, "half a file")[:9], false},
		"whole-frames":  {append(frame(frameData, "half a "), frame(frameData, "file")...), false},
		"no-frame":      {[]byte("STOR it anyway"), false},
		"long-frame":    {[]byte{frameData, 0xff, 0xff, 0xff}, false},
		"end-with-data": {frame(frameEnd, "data"), false},
		"end":           {append(frame(frameData, "a file"), frame(frameEnd, "")...), true},
	} {
		t.Run(name, func(t *testing.T) {
			conn, session := spoken(t, all[0])
			if _, err := conn.Write(tc.sent); err != nil {
				t.Fatal(err)
			}
			_ = conn.(*net.TCPConn).CloseWrite()
			_, err := io.ReadAll(session)
			if (err == nil) != tc.complete {
				t.Errorf("session: unexpected error at the end: %v", err)
			}
			if _, again := session.Read(make([]byte, 1)); err != nil && (again == nil || errors.Is(again, io.EOF)) {
				t.Errorf("then it got %v", again)
			}
		})
	}
	for name, tc := range map[string]struct {
		sent     []byte
		complete bool
	}{
		"nothing":  {nil, false},
		"progress": {frame(frameProgress, ""), false},
		"end":      {frame(frameEnd, ""), false}, // the end of the data from the client
		"delivered": {append(
			append(frame(frameProgress, ""), frame(frameData, "not asked for")...),
			frame(frameDelivered, "")...), true},
	} {
		t.Run("download-"+name, func(t *testing.T) {
			conn, session := spoken(t, all[0])
			alive := frame(frameProgress, "")
			said := make([]byte, len(alive))
			// the frame must come before data, which would block it
			if _, err := io.ReadFull(conn, said); err != nil || !bytes.Equal(said, alive) {
				t.Fatalf("relay: got %q, %v; want %q", said, err, alive)
			}
			must.Write(t, session, "a file")
			if _, err := conn.Write(tc.sent); err != nil {
				t.Fatal(err)
			}
			_ = conn.(*net.TCPConn).CloseWrite()
			if err := finish(session); (err == nil) != tc.complete {
				t.Errorf("unexpected end of the download: %v", err)
			}
			want := slices.Concat(frame(frameData, "a file"), frame(frameEnd, ""))
			_ = session.Close()
			if got, _ := io.ReadAll(conn); !bytes.Equal(got, want) {
				t.Errorf("relay: got %q, want %q", got, want)
			}
		})
	}
}

// The owner sends alive frames repeatedly, and nothing after the end frame.
func TestOwnerSendsAlive(t *testing.T) {
	owner := startReplica(t, 0, freePorts(t, 6), takeTimeout, stall)
	owner.SetStallTimeout(40 * time.Millisecond)
	conn, session := spoken(t, owner)
	alive := frame(frameProgress, "")
	got := make([]byte, 3*len(alive))
	if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, slices.Repeat(alive, 3)) {
		t.Errorf("relay: got %q, %v", got, err)
	}
	if _, err := conn.Write(frame(frameDelivered, "")); err != nil {
		t.Fatal(err)
	}
	if err := finish(session); err != nil {
		t.Error(err)
	}
	session.(*owned).sendAlive() // the timer may fire at this time too
	_ = session.Close()
	rest, _ := io.ReadAll(conn)
	for bytes.HasPrefix(rest, alive) {
		rest = rest[len(alive):]
	}
	if !bytes.Equal(rest, frame(frameEnd, "")) {
		t.Errorf("then the relay got %q", rest)
	}
}

// If the network between relay and owner fails, neither sees an end. The relay cuts its client, whether it sends
// or waits.
func TestOwnerOutOfReach(t *testing.T) {
	for name, said := range map[string][]byte{
		"before-data": nil,
		"in-a-frame":  frame(frameData, "half a file")[:9],
	} {
		t.Run(name, func(t *testing.T) {
			ports := freePorts(t, 6)
			l, err := net.Listen("tcp", netip.AddrPortFrom(netip.MustParseAddr(replicas()[0]), ports.First).String())
			must.OK(t, err)
			defer l.Close()
			by := startReplica(t, 1, ports, takeTimeout, stall)
			by.SetStallTimeout(100 * time.Millisecond)
			client := by.dial(t, "127.0.0.1", ports.First)
			owner, err := l.Accept()
			must.OK(t, err)
			defer owner.Close()
			if _, err := owner.Write(slices.Concat(frame(frameTaken, ""), frame(frameProgress, ""), said)); err != nil {
				t.Fatal(err)
			}
			for err == nil { // more than the socket buffers hold
				_, err = client.Write(make([]byte, maxFrame))
			}
			by.events.want(t, string(Failed), 1)
		})
	}
}

// A timeout in the middle of a frame loses no bytes.
func TestDeadlineInAFrame(t *testing.T) {
	all := start(t)
	conn, session := spoken(t, all[0])
	whole := append(frame(frameData, "data"), frame(frameEnd, "")...)
	var got []byte
	for _, b := range whole {
		if _, err := conn.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
		for waiting := true; waiting && len(got) < 4; {
			_ = session.SetReadDeadline(time.Now().Add(time.Millisecond))
			buffer := make([]byte, 10)
			n, err := session.Read(buffer)
			got = append(got, buffer[:n]...)
			waiting = err == nil
		}
	}
	_ = session.SetReadDeadline(time.Time{})
	rest, err := io.ReadAll(session)
	if got = append(got, rest...); err != nil || string(got) != "data" {
		t.Errorf("session: got %q, %v", got, err)
	}
}

// Relays are accepted from peers only, and everything else is refused.
func TestRefusals(t *testing.T) {
	all := start(t)
	owner := all[0]
	source, port := owner.listen(t, "203.0.113.7")
	foreign := Slice(owner.Ports, 1, 3).First
	t.Run("stranger", func(t *testing.T) {
		taken(t, handMade(t, owner, "127.0.0.1", port, "203.0.113.7", 0), false)
	})
	t.Run("balancer", func(t *testing.T) { // its headers are trusted
		taken(t, handMade(t, owner, trusted, port, "203.0.113.7", 0), false)
		owner.events.want(t, "refused no_peer", 1)
	})
	t.Run("peer-without-a-header", func(t *testing.T) {
		conn := owner.dial(t, replicas()[1], port)
		_, _ = io.WriteString(conn, "data of a file")
		taken(t, conn, false)
		owner.events.want(t, "refused header", 1)
	})
	t.Run("peer-with-another-header", func(t *testing.T) {
		conn := owner.dial(t, replicas()[1], port)
		_, _ = io.WriteString(conn, "PROXY TCP4 203.0.113.7 192.0.2.1 40000 21\r\n")
		taken(t, conn, false)
		owner.events.want(t, "refused header", 2)
	})
	t.Run("other-version", func(t *testing.T) {
		conn := owner.dial(t, replicas()[1], port)
		h, err := relayHeader(
			&net.TCPAddr{IP: net.IPv4(203, 0, 113, 7)}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, []byte{9})
		must.OK(t, err)
		_, _ = conn.Write(h)
		taken(t, conn, false)
		owner.events.want(t, "refused header", 3)
	})
	t.Run("wrong-way", func(t *testing.T) {
		taken(t, handMade(t, owner, replicas()[1], foreign, "203.0.113.7", 0), false)
		owner.events.want(t, "refused slice", 1)
	})
	t.Run("other-client", func(t *testing.T) {
		taken(t, handMade(t, owner, replicas()[1], port, "203.0.113.8", 0), false)
	})
	t.Run("too-late", func(t *testing.T) { // it arrived before the session had the port
		taken(t, handMade(t, owner, replicas()[1], port, "203.0.113.7", time.Hour), false)
	})
	t.Run("too-many", func(t *testing.T) {
		var leave []func()
		for {
			one, ok := owner.relays.acquire(netip.MustParseAddr("127.0.0.1"))
			if !ok {
				break
			}
			leave = append(leave, one)
		}
		taken(t, owner.dial(t, "127.0.0.1", foreign), false)
		owner.events.want(t, "refused too_many", 1)
		for _, one := range leave {
			one()
		}
	})
	t.Run("no-session", func(t *testing.T) {
		taken(t, owner.dial(t, "127.0.0.1", foreign), false)
		owner.events.want(t, string(Unmatched), 1)
	})
	t.Run("right", func(t *testing.T) {
		taken(t, handMade(t, owner, replicas()[1], port, "203.0.113.7", 0), true)
		open(t, source)
	})
}

// A load balancer in front of all replicas sends headers. Relayed connections keep the address of the client,
// including IPv6, and health checks are not relayed.
func TestRelayBehindABalancer(t *testing.T) {
	all := start(t)
	source, port := all[0].listen(t, "2001:db8::7")
	probe := all[1].dial(t, trusted, port)
	_, _ = io.WriteString(probe, "PROXY UNKNOWN\r\n")
	taken(t, probe, false)
	headerless := all[1].dial(t, trusted, port)
	_, _ = io.WriteString(headerless, "data of a file")
	taken(t, headerless, false)
	conn := all[1].dial(t, trusted, port)
	_, _ = io.WriteString(conn, "PROXY TCP6 2001:db8::7 2001:db8::1 40000 30000\r\na file")
	_ = conn.CloseWrite()
	session := open(t, source)
	if got := session.RemoteAddr().String(); got != "[2001:db8::7]:40000" {
		t.Errorf("unexpected client %s", got)
	}
	if got := session.LocalAddr().String(); got != "[2001:db8::1]:30000" {
		t.Errorf("unexpected reached address %s", got)
	}
	if got, err := io.ReadAll(session); err != nil || string(got) != "a file" {
		t.Errorf("session: got %q, %v", got, err)
	}
}

// If an owner is down or does not respond in time, the client loses its connection and the replica loses nothing.
func TestOwnerAway(t *testing.T) {
	ports := freePorts(t, 3)
	r := startReplica(t, 0, ports, 100*time.Millisecond, stall)
	port := Slice(ports, 1, 3).First
	taken(t, r.dial(t, "127.0.0.1", port), false)
	r.events.want(t, string(Unreachable), 1)
	silent, err := net.Listen("tcp", fmt.Sprintf("%s:%d", replicas()[1], port))
	must.OK(t, err)
	defer silent.Close()
	for tries := 1; r.events.counted(Unmatched) == 0; tries++ { // on a busy machine even the connection may time out
		taken(t, r.dial(t, "127.0.0.1", port), false)
		<-r.events.waits
		if r.events.counted(Unmatched)+r.events.counted(Unreachable) != 1+tries {
			t.Fatalf("after %d connections: unexpected events %v", 1+tries, r.events.counts)
		}
	}
	if r.events.active != 0 {
		t.Errorf("got %d open relays", r.events.active)
	}
}

// If a port is in use, Start opens nothing.
func TestStartFails(t *testing.T) {
	ports := freePorts(t, 3)
	other, err := net.Listen("tcp", fmt.Sprintf("%s:%d", replicas()[0], ports.Last))
	must.OK(t, err)
	defer other.Close()
	c := New(
		t.Context(), Options{Replica: 0, Peers: replicas(), Ports: ports, Address: netip.MustParseAddr(replicas()[0])})
	if err := c.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("Start: %v", err)
	}
	l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", replicas()[0], ports.First+1))
	if err != nil {
		t.Errorf("another port is still open: %v", err)
	} else {
		_ = l.Close()
	}
	New(t.Context(), Options{}).Shutdown(t.Context()) // nothing to shut down
}

// A panic ends one relay, and the replica relays the next connection.
func TestPanic(t *testing.T) {
	all := start(t)
	by := all[1]
	source, port := all[0].listen(t, "127.0.0.1")
	by.events.bugs.Add(1)
	taken(t, by.dial(t, "127.0.0.1", port), false)
	client := by.dial(t, "127.0.0.1", port)
	session := open(t, source)
	if session.RemoteAddr().String() != client.LocalAddr().String() {
		t.Errorf("got next client %v, want %v", session.RemoteAddr(), client.LocalAddr())
	}
}

// connected returns two connections and their other ends.
func connected(t *testing.T) (ends, far [2]*net.TCPConn) {
	t.Helper()
	l := must.Listen(t)
	for n := range ends {
		conn, err := net.Dial("tcp", l.Addr().String())
		must.OK(t, err)
		accepted, err := l.Accept()
		must.OK(t, err)
		t.Cleanup(func() { _ = accepted.Close() })
		ends[n], far[n] = conn.(*net.TCPConn), accepted.(*net.TCPConn)
	}
	return ends, far
}

// panicking is a connection of a client whose Read panics.
type panicking struct{ net.Conn }

func (panicking) Read([]byte) (int, error) { panic("a bug") }

// A panic in a relay resets both sides, so that neither takes a part for the whole.
func TestPanicOfARelay(t *testing.T) {
	ends, far := connected(t)
	r := &relay{client: panicking{ends[0]}, socket: ends[0], owner: ends[1], frames: frameWriter{conn: ends[1]},
		stall: stall}
	err := r.run()
	if p, ok := errors.AsType[*panics.Error](err); !ok || p.Value != "a bug" {
		t.Errorf("unexpected end of the relay: %v", err)
	}
	for n, conn := range far {
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("side %d: unexpected error at the end: %v", n, err)
		}
	}
}

// The network of a client cannot use more than its share of the relays.
func TestShareOfRelays(t *testing.T) {
	var s relayLimit
	fill := func(client string) (n int, leave func()) {
		for {
			one, ok := s.acquire(netip.MustParseAddr(client))
			if !ok {
				return n, leave
			}
			n, leave = n+1, one
		}
	}
	first, leave := fill("203.0.113.7")
	second, _ := fill("2001:db8::1")
	if same, _ := fill("2001:db8::2"); same > 0 {
		t.Errorf("another address of the network got %d more relays", same)
	}
	third, _ := fill("203.0.113.8")
	if first != maxRelays*3/4 || second != (maxRelays-first)*3/4 || third == 0 {
		t.Errorf("the networks got %d, %d and %d relays", first, second, third)
	}
	leave()
	if again, _ := fill("203.0.113.7"); again != 0 && again != 1 { // its share has shrunk
		t.Errorf("after the end of one relay: got %d more", again)
	}
	for n := 0; s.all < maxRelays; n++ {
		if one, ok := s.acquire(netip.AddrFrom4([4]byte{192, 0, byte(n >> 8), byte(n)})); !ok || one == nil {
			t.Fatalf("a client without a relay got none of the %d free ones", maxRelays-s.all)
		}
	}
	if _, ok := s.acquire(netip.MustParseAddr("198.51.100.1")); ok {
		t.Error("got more relays than the limit")
	}
}
