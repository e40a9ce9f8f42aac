package s3test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// A Proxy is between an S3 server and its clients. It counts their requests, and injects faults where a test asks for
// them.
type Proxy struct {
	server   *Server
	target   *url.URL
	listener net.Listener
	web      *http.Server
	client   *tls.Config // nil without TLS

	// Anonymous removes the Server header of responses, so that clients do not recognize the server.
	Anonymous bool

	mu     sync.Mutex
	seen   []s3sim.Operation
	faults []*Fault
	conns  map[net.Conn]struct{}
}

// StartProxy is a proxy before an S3 server, until the end of the test.
func StartProxy(tb testing.TB, s *Server) *Proxy {
	tb.Helper()
	p, err := NewProxy(s)
	must.OK(tb, err)
	tb.Cleanup(func() { _ = p.Close() })
	return p
}

// StartTLSProxy is StartProxy for clients that speak HTTP/2 over TLS.
func StartTLSProxy(tb testing.TB, s *Server) *Proxy {
	tb.Helper()
	p, err := newProxy(s)
	must.OK(tb, err)
	server, client := must.CertificatePair(tb, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	p.web.TLSConfig, p.client = &tls.Config{Certificates: []tls.Certificate{server}}, client
	go func() { _ = p.web.ServeTLS(p.listener, "", "") }()
	tb.Cleanup(func() { _ = p.Close() })
	return p
}

// NewProxy starts a proxy of a server.
func NewProxy(s *Server) (*Proxy, error) {
	p, err := newProxy(s)
	if err == nil {
		go func() { _ = p.web.Serve(p.listener) }()
	}
	return p, err
}

// newProxy makes a proxy that does not serve yet.
func newProxy(s *Server) (*Proxy, error) {
	target, err := url.Parse(s.Endpoint)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{server: s, target: target, listener: listener, conns: map[net.Conn]struct{}{}}
	p.web = &http.Server{
		Handler: p,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
		ConnState: p.note,
	}
	return p, nil
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// Server is the server as clients see it through the proxy.
func (p *Proxy) Server() *Server {
	s := *p.server
	s.Endpoint = "http://" + p.listener.Addr().String()
	transport := &http.Transport{DisableCompression: true}
	if p.client != nil {
		s.Endpoint = "https://" + p.listener.Addr().String()
		transport.TLSClientConfig, transport.ForceAttemptHTTP2 = p.client, true
	}
	s.HTTPClient = &http.Client{Transport: transport}
	return &s
}

// Close ends all connections.
func (p *Proxy) Close() error { return p.web.Close() }

// note keeps the connections that are open.
func (p *Proxy) note(conn net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state {
	case http.StateNew:
		p.conns[conn] = struct{}{}
	case http.StateClosed:
		delete(p.conns, conn)
	}
}

// Cut ends all connections, and those on which a request comes from now on. End mends it.
func (p *Proxy) Cut() *Injection {
	cut := p.Inject(Fault{Effect: (*Exchange).Reset})
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
	return cut
}

// Reset forgets the requests so far.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = nil
}

// Operations returns the requests so far.
func (p *Proxy) Operations() []s3sim.Operation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

// Counts returns how many requests there were for each operation.
func (p *Proxy) Counts() map[string]int {
	counts := map[string]int{}
	for _, o := range p.Operations() {
		counts[o.Name]++
	}
	return counts
}

// A Fault applies an Effect to some of the requests.
type Fault struct {
	Operation string // "PutObject", any when empty
	KeyPrefix string // of their keys, or of the prefixes of listings
	After     int    // how many such requests pass before the first
	Times     int    // how many the fault meets, all when 0
	Effect    Effect

	passed, applied int
}

// Inject adds a fault. It has priority over the faults before it. End removes it.
func (p *Proxy) Inject(f Fault) *Injection {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := &Injection{proxy: p, fault: &f}
	p.faults = append([]*Fault{i.fault}, p.faults...)
	return i
}

// An Injection is an active fault.
type Injection struct {
	proxy *Proxy
	fault *Fault
}

// Applied is how many requests the fault has handled so far.
func (i *Injection) Applied() int {
	i.proxy.mu.Lock()
	defer i.proxy.mu.Unlock()
	return i.fault.applied
}

// End removes the fault.
func (i *Injection) End() {
	i.proxy.mu.Lock()
	defer i.proxy.mu.Unlock()
	for k, f := range i.proxy.faults {
		if f == i.fault {
			i.proxy.faults = append(i.proxy.faults[:k:k], i.proxy.faults[k+1:]...)
			return
		}
	}
}

// enter counts a request and returns the effect of a fault on it, nil for none.
func (p *Proxy) enter(o s3sim.Operation) Effect {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, o)
	for _, f := range p.faults {
		if f.Operation != "" && f.Operation != o.Name || !strings.HasPrefix(o.Key+o.Prefix, f.KeyPrefix) {
			continue
		}
		if f.passed < f.After {
			f.passed++
			continue
		}
		if f.Times == 0 || f.applied < f.Times {
			f.applied++
			return f.Effect
		}
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := &Exchange{Request: r, proxy: p, w: w}
	if effect := p.enter(s3sim.OperationOf(r)); effect != nil {
		effect(e)
		return
	}
	e.relay(r.Body, func(response *http.Response) io.Reader { return response.Body })
}

// An Exchange is a request that a client has sent, and its response.
type Exchange struct {
	Request *http.Request // An effect may change it before Forward.

	proxy *Proxy
	w     http.ResponseWriter
}

// Forward sends the request with this body to the server.
func (e *Exchange) Forward(body io.Reader) (*http.Response, error) {
	out := e.Request.Clone(e.Request.Context())
	out.RequestURI = "" // of servers only
	out.URL.Scheme, out.URL.Host = e.proxy.target.Scheme, e.proxy.target.Host
	// The Host stays, because the client has signed it.
	if out.Body = io.NopCloser(body); out.ContentLength == 0 {
		out.Body = http.NoBody
	}
	response, err := e.proxy.server.HTTPClient.Transport.RoundTrip(out)
	if err == nil && e.proxy.Anonymous {
		response.Header.Del("Server")
	}
	return response, err
}

// Respond sends a response with this body to the client. A response to HEAD has no body.
func (e *Exchange) Respond(response *http.Response, body io.Reader) error {
	if e.Request.Method == http.MethodHead {
		body = http.NoBody
	}
	maps.Copy(e.w.Header(), response.Header)
	e.w.WriteHeader(response.StatusCode)
	_, err := io.Copy(e.w, body)
	return err
}

// conn is the client's connection.
func (e *Exchange) conn() net.Conn { return e.Request.Context().Value(connKey{}).(net.Conn) }

// Reset ends the connection of the client by RST. It does not return.
func (e *Exchange) Reset() {
	Reset(e.conn())
	panic(http.ErrAbortHandler)
}

// errCut ends a body that was cut.
var errCut = errors.New("cut by the proxy")

// CloseWrite ends one direction of a connection.
func CloseWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return conn.Close()
}

// Reset ends a connection by RST, as a crashed machine does, and not by FIN.
func Reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
