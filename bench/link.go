package s3test

import (
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"time"
)

// A Link describes the connection to a distant server. The zero value has no delay.
type Link struct {
	Latency   time.Duration // of each byte, each way
	Bandwidth int64         // bytes per second of a connection, each way; 0 for what the machine can
}

// linkChunk is how many bytes travel together. At 25 MiB/s they take 2.5 ms.
const linkChunk = 64 << 10

// A LinkProxy makes a server look distant. It forwards connections to the server, and delays bytes as the Link says.
// Connections open without delay, because the kernel accepts them.
type LinkProxy struct {
	link     Link
	target   string
	listener net.Listener

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]struct{}
}

// NewLinkProxy listens on an address such as "127.0.0.1:0" for a server that clients reach over TCP.
func NewLinkProxy(s *Server, address string, link Link) (*LinkProxy, error) {
	endpoint, err := url.Parse(s.Endpoint)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	d := &LinkProxy{link: link, target: endpoint.Host, listener: listener, conns: map[net.Conn]struct{}{}}
	go d.serve()
	return d, nil
}

// Endpoint is the URL of the distant server.
func (d *LinkProxy) Endpoint() string { return "http://" + d.listener.Addr().String() }

// Close ends all connections.
func (d *LinkProxy) Close() error {
	err := d.listener.Close()
	d.Cut()
	return err
}

// Cut ends all connections, and those that are opened from now on.
func (d *LinkProxy) Cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = true
	for conn := range d.conns {
		_ = conn.Close()
	}
}

// Mend undoes Cut for new connections.
func (d *LinkProxy) Mend() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = false
}

func (d *LinkProxy) serve() {
	for {
		near, err := d.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", d.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		if d.enter(near, far) {
			go d.connect(near, far)
		}
	}
}

// enter records both sides of a connection.
func (d *LinkProxy) enter(conns ...net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range conns {
		if d.down {
			_ = conn.Close()
		} else {
			d.conns[conn] = struct{}{}
		}
	}
	return !d.down
}

// connect copies bytes both ways until both sides have ended.
func (d *LinkProxy) connect(near, far net.Conn) {
	var ways sync.WaitGroup
	ways.Go(func() { d.link.carry(far, near) })
	ways.Go(func() { d.link.carry(near, far) })
	ways.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range []net.Conn{near, far} {
		_ = conn.Close()
		delete(d.conns, conn)
	}
}

// A chunk is bytes in transit.
type chunk struct {
	data []byte
	due  time.Time // at the other end
}

// carry copies the bytes of one side, and their end, to the other. When that accepts no more, carry resets the first
// side.
func (l Link) carry(to, from net.Conn) {
	const least = 16 // chunks on their way, so that the two goroutines need not alternate
	line := make(chan chunk, least+int(float64(l.Bandwidth)*l.Latency.Seconds())/linkChunk)
	free := make(chan []byte, cap(line)+2) // and those in the hands of the two goroutines
	var delivered sync.WaitGroup
	delivered.Go(func() {
		broken := false
		for c := range line {
			if time.Sleep(time.Until(c.due)); !broken {
				if _, err := to.Write(c.data); err != nil {
					broken = true
					reset(from)
				}
			}
			select {
			case free <- c.data[:cap(c.data)]:
			default:
			}
		}
	})
	var sent time.Time // when the last byte has left: no other leaves before
	for {
		var buffer []byte
		select {
		case buffer = <-free:
		default:
			buffer = make([]byte, linkChunk)
		}
		n, err := from.Read(buffer)
		if n > 0 {
			sent = latest(sent, time.Now())
			if l.Bandwidth > 0 {
				sent = sent.Add(time.Duration(int64(n) * int64(time.Second) / l.Bandwidth))
			}
			line <- chunk{buffer[:n], sent.Add(l.Latency)}
		}
		if err == nil {
			continue
		}
		close(line)
		delivered.Wait()
		if errors.Is(err, io.EOF) {
			_ = closeWrite(to)
		} else {
			reset(to)
		}
		return
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// closeWrite ends one direction of a connection.
func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return conn.Close()
}

// reset ends a connection by RST, as a crashed machine does, and not by FIN.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
