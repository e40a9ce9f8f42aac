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

// A Proxy sits between an S3 server and its clients. It records their requests and injects faults.
type Proxy struct {
	server   *Server
	target   *url.URL
	listener net.Listener
	web      *http.Server
	client   *tls.Config // nil without TLS

	// Anonymous removes the Server header from responses, so that clients do not recognize the server.
	Anonymous bool

	mu     sync.Mutex
	seen   []s3sim.Operation
	faults []*Fault
	conns  map[net.Conn]struct{}
}

// StartProxy starts a proxy for an S3 server. The proxy is closed at the end of the test.
func StartProxy(tb testing.TB, s *Server) *Proxy {
	tb.Helper()
	p, err := NewProxy(s)
	must.OK(tb, err)
	tb.Cleanup(func() { _ = p.Close() })
	return p
}

// StartTLSProxy is like [StartProxy] for clients that use HTTP/2 over TLS.
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

// NewProxy starts a proxy for a server. The caller must close it.
func NewProxy(s *Server) (*Proxy, error) {
	p, err := newProxy(s)
	if err == nil {
		go func() { _ = p.web.Serve(p.listener) }()
	}
	return p, err
}

// newProxy returns a proxy that listens but does not serve yet.
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
		ConnState: p.track,
	}
	return p, nil
}

// connKey is the context key of a request's connection.
type connKey struct{}

// Server returns the server with the endpoint and the HTTP client of the proxy.
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

// Close closes all connections.
func (p *Proxy) Close() error { return p.web.Close() }

// track keeps the set of open connections.
func (p *Proxy) track(conn net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state {
	case http.StateNew:
		p.conns[conn] = struct{}{}
	case http.StateClosed:
		delete(p.conns, conn)
	}
}

// Cut closes all connections, and resets every connection on which a new request arrives. Ending the injection
// restores the service.
func (p *Proxy) Cut() *Injection {
	cut := p.Inject(Fault{Effect: (*Exchange).Reset})
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
	return cut
}

// Reset discards the recorded requests.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = nil
}

// Operations returns the recorded requests.
func (p *Proxy) Operations() []s3sim.Operation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

// Counts returns the number of recorded requests for each operation.
func (p *Proxy) Counts() map[string]int {
	counts := map[string]int{}
	for _, o := range p.Operations() {
		counts[o.Name]++
	}
	return counts
}

// A Fault applies an Effect to matching requests.
type Fault struct {
	Operation string // such as "PutObject"; any operation if empty
	KeyPrefix string // prefix of the key, or of the prefix of a listing
	After     int    // number of matching requests to skip
	Times     int    // number of requests to affect, all if 0
	Effect    Effect

	passed, applied int
}

// Inject adds a fault, which takes priority over earlier ones. End removes it.
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

// Applied returns how many requests the fault has affected so far.
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

// record adds a request to the record and returns the effect to apply, or nil.
func (p *Proxy) record(o s3sim.Operation) Effect {
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
	if effect := p.record(s3sim.OperationOf(r)); effect != nil {
		effect(e)
		return
	}
	e.relay(r.Body, func(response *http.Response) io.Reader { return response.Body })
}

// An Exchange is a client's request and its response.
type Exchange struct {
	Request *http.Request // An effect may change it before Forward.

	proxy *Proxy
	w     http.ResponseWriter
}

// Forward sends the request with the given body to the server.
func (e *Exchange) Forward(body io.Reader) (*http.Response, error) {
	out := e.Request.Clone(e.Request.Context())
	out.RequestURI = "" // must be empty in client requests
	out.URL.Scheme, out.URL.Host = e.proxy.target.Scheme, e.proxy.target.Host
	// Keep the Host header, because the client signed it.
	if out.Body = io.NopCloser(body); out.ContentLength == 0 {
		out.Body = http.NoBody
	}
	response, err := e.proxy.server.HTTPClient.Transport.RoundTrip(out)
	if err == nil && e.proxy.Anonymous {
		response.Header.Del("Server")
	}
	return response, err
}

// Respond sends a response with the given body to the client. A response to HEAD has no body.
func (e *Exchange) Respond(response *http.Response, body io.Reader) error {
	if e.Request.Method == http.MethodHead {
		body = http.NoBody
	}
	maps.Copy(e.w.Header(), response.Header)
	e.w.WriteHeader(response.StatusCode)
	_, err := io.Copy(e.w, body)
	return err
}

// conn returns the client's connection.
func (e *Exchange) conn() net.Conn { return e.Request.Context().Value(connKey{}).(net.Conn) }

// Reset resets the client's connection and aborts the handler. It does not return.
func (e *Exchange) Reset() {
	Reset(e.conn())
	panic(http.ErrAbortHandler)
}

// errCut is the error at the end of a body that was cut.
var errCut = errors.New("cut by the proxy")

// CloseWrite closes the write side of a connection, or the whole connection if it cannot be half closed.
func CloseWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return conn.Close()
}

// Reset closes a connection with RST instead of FIN, as if the peer had crashed.
func Reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
