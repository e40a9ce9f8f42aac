package linearizability

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"time"
)

// A Proxy is between one replica and an S3 server. It signs nothing: it passes each request on as it came, with its Host. What a [Plan] says of a request happens to it.
//
// A request that it has read goes on though the replica hangs up or dies, as in a network.
type Proxy struct {
	faults   *Faults
	replica  int
	target   *url.URL
	upstream http.RoundTripper
	listener net.Listener
	web      *http.Server
}

// NewProxy starts a proxy before an endpoint, for a replica.
func (f *Faults) NewProxy(replica int, endpoint string, upstream http.RoundTripper) (*Proxy, error) {
	target, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{faults: f, replica: replica, target: target, upstream: upstream, listener: listener}
	p.web = &http.Server{Handler: p}
	go func() { _ = p.web.Serve(listener) }()
	return p, nil
}

// Endpoint is the address at which the replica reaches its S3 server.
func (p *Proxy) Endpoint() string { return "http://" + p.listener.Addr().String() }

// Close ends all connections.
func (p *Proxy) Close() error { return p.web.Close() }

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the replica has died while it sent
	}
	request := newRequest(r, body)
	plan := p.faults.planOf(request)
	if plan == nil {
		p.answer(w, p.pass(r, body))
		return
	}
	fault := plan.choose(request)
	began := plan.now()
	if fault.before > 0 {
		<-time.After(fault.before)
	}
	var response *answer
	if !fault.refuse {
		unlock := plan.lock(request)
		plan.passing(p.replica, request)
		response = p.pass(r, body)
		plan.passed(p.replica, request)
		unlock()
	}
	plan.note(began, p.replica, request, fault, response)
	if fault.after > 0 {
		<-time.After(fault.after)
	}
	switch {
	case fault.drop:
		panic(http.ErrAbortHandler)
	case fault.status > 0:
		p.answer(w, fault.answer(r.Method))
	default:
		p.answer(w, response)
	}
}

// An answer is that of the S3 server, or one in its place. It is nil where the S3 server has not answered.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// pass sends a request to the S3 server.
func (p *Proxy) pass(r *http.Request, body []byte) *answer {
	out := r.Clone(context.WithoutCancel(r.Context()))
	out.RequestURI = "" // of servers only
	out.URL.Scheme, out.URL.Host = p.target.Scheme, p.target.Host
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.TransferEncoding = nil
	if len(body) == 0 {
		out.Body = http.NoBody
	}
	response, err := p.upstream.RoundTrip(out)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil
	}
	return &answer{response.StatusCode, response.Header, content}
}

// answer answers the replica.
func (p *Proxy) answer(w http.ResponseWriter, a *answer) {
	if a == nil {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the replica may have hung up
}
