package main

import (
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// A distance is what bytes take to a server. The zero value has no delay.
type distance struct {
	latency   time.Duration // of each byte, each way
	bandwidth int64         // bytes per second of a connection, each way; 0 for what the machine can
}

// chunkSize is how many bytes travel together. At 25 MiB/s they take 2.5 ms.
const chunkSize = 64 << 10

// A distantServer is a server at a distance. It forwards connections to the server, and delays bytes as the distance
// says. Connections open without delay, because the kernel accepts them.
type distantServer struct {
	distance distance
	target   string
	listener net.Listener

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
}

// newDistantServer listens on an address such as "127.0.0.1:0" for a server that clients reach over TCP.
func newDistantServer(s *s3test.Server, address string, way distance) (*distantServer, error) {
	endpoint, err := url.Parse(s.Endpoint)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	d := &distantServer{distance: way, target: endpoint.Host, listener: listener, conns: map[net.Conn]struct{}{}}
	go d.serve()
	return d, nil
}

// endpoint is the URL of the distant server.
func (d *distantServer) endpoint() string { return "http://" + d.listener.Addr().String() }

// close ends all connections.
func (d *distantServer) close() error {
	err := d.listener.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for conn := range d.conns {
		_ = conn.Close()
	}
	return err
}

func (d *distantServer) serve() {
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
func (d *distantServer) enter(conns ...net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range conns {
		if d.closed {
			_ = conn.Close()
		} else {
			d.conns[conn] = struct{}{}
		}
	}
	return !d.closed
}

// connect copies bytes both ways until both sides have ended.
func (d *distantServer) connect(near, far net.Conn) {
	var ways sync.WaitGroup
	ways.Go(func() { d.distance.carry(far, near) })
	ways.Go(func() { d.distance.carry(near, far) })
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
func (w distance) carry(to, from net.Conn) {
	const least = 16 // chunks on their way, so that the two goroutines need not alternate
	line := make(chan chunk, least+int(float64(w.bandwidth)*w.latency.Seconds())/chunkSize)
	free := make(chan []byte, cap(line)+2) // and those in the hands of the two goroutines
	var delivered sync.WaitGroup
	delivered.Go(func() {
		broken := false
		for c := range line {
			if time.Sleep(time.Until(c.due)); !broken {
				if _, err := to.Write(c.data); err != nil {
					broken = true
					s3test.Reset(from)
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
			buffer = make([]byte, chunkSize)
		}
		n, err := from.Read(buffer)
		if n > 0 {
			sent = latest(sent, time.Now())
			if w.bandwidth > 0 {
				sent = sent.Add(time.Duration(int64(n) * int64(time.Second) / w.bandwidth))
			}
			line <- chunk{buffer[:n], sent.Add(w.latency)}
		}
		if err == nil {
			continue
		}
		close(line)
		delivered.Wait()
		if errors.Is(err, io.EOF) {
			_ = s3test.CloseWrite(to)
		} else {
			s3test.Reset(to)
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
