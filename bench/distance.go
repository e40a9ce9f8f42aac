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

// A distance is the delay of a connection to a distant server. The zero value has no delay.
type distance struct {
	latency   time.Duration // one way
	bandwidth int64         // bytes per second and connection in each direction; 0 is unlimited
}

// chunkSize is the number of bytes that are delayed together. At 25 MiB/s they take 2.5 ms.
const chunkSize = 64 << 10

// A distantServer simulates a server at a distance. It forwards connections and delays the bytes. Opening a
// connection is not delayed, because the kernel accepts it.
type distantServer struct {
	distance distance
	target   string
	listener net.Listener

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
}

// newDistantServer listens on an address such as "127.0.0.1:0" and forwards to s.
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

// endpoint returns the URL of the distant server.
func (d *distantServer) endpoint() string { return "http://" + d.listener.Addr().String() }

// close closes all connections.
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
		if d.register(near, far) {
			go d.connect(near, far)
		}
	}
}

// register adds both sides of a connection. It returns false after close.
func (d *distantServer) register(conns ...net.Conn) bool {
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

// connect copies bytes in both directions until both sides are closed.
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

// A chunk is data in transit.
type chunk struct {
	data []byte
	due  time.Time // arrival time
}

// carry copies bytes and the end of the stream from one side to the other. If a write fails, it resets the
// reading side.
func (w distance) carry(to, from net.Conn) {
	const least = 16 // minimum number of chunks in transit, so that the two goroutines need not alternate
	line := make(chan chunk, least+int(float64(w.bandwidth)*w.latency.Seconds())/chunkSize)
	free := make(chan []byte, cap(line)+2) // plus one for each goroutine
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
	var sent time.Time // departure of the last byte, which later bytes cannot overtake
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
