package linearizability

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// A Proxy is between one replica and an S3 server. It passes each request on as it came, with its Host. What a [Plan]
// says of a request happens to it. Replicas sign the time by the clock of S3 as they see it. Where that is wrong, S3
// servers refuse it, so that proxies have to sign anew.
//
// A request that it has read goes on though the replica hangs up or dies, as in a network.
type Proxy struct {
	faults   *Faults
	replica  int
	skew     time.Duration
	target   *url.URL
	upstream http.RoundTripper
	listener net.Listener
	web      *http.Server

	mu  sync.Mutex
	cut chan struct{} // closed when the replica is not cut off any more, nil when it is not
}

// NewProxy starts a proxy before an endpoint, for a replica. The clock of S3 is ahead of that of the replica by a
// skew, or behind.
func (f *Faults) NewProxy(
	replica int, endpoint string, upstream http.RoundTripper, skew time.Duration,
) (*Proxy, error) {
	target, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{faults: f, replica: replica, skew: skew, target: target, upstream: upstream, listener: listener}
	p.web = &http.Server{Handler: p}
	go func() { _ = p.web.Serve(listener) }()
	return p, nil
}

// Endpoint is the address at which the replica reaches its S3 server.
func (p *Proxy) Endpoint() string { return "http://" + p.listener.Addr().String() }

// Close ends all connections.
func (p *Proxy) Close() error { return p.web.Close() }

// CutOff lets nothing through, in neither direction, until restore is called: the replica waits. Answers that have
// not come until then are lost.
func (p *Proxy) CutOff() (restore func()) {
	cut := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.cut = nil
		close(cut)
	}
}

// crossing waits while the replica is cut off, and then breaks the connection.
func (p *Proxy) crossing() {
	p.mu.Lock()
	cut := p.cut
	p.mu.Unlock()
	if cut != nil {
		<-cut
		panic(http.ErrAbortHandler)
	}
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the replica has died while it sent
	}
	p.crossing()
	request := newRequest(r, body)
	plan := p.faults.planOf(request)
	if plan == nil {
		p.answer(w, p.pass(r, body, request))
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
		passed := plan.now()
		response = p.pass(r, body, request)
		plan.pass(p.replica, request, passed)
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
func (p *Proxy) pass(r *http.Request, body []byte, q request) *answer {
	out := r.Clone(context.WithoutCancel(r.Context()))
	out.RequestURI = "" // of servers only
	out.URL.Scheme, out.URL.Host = p.target.Scheme, p.target.Host
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.TransferEncoding = nil
	if plan := p.faults.planOf(q); plan != nil && q.kind == "LIST" {
		plan.shorten(out.URL)
	}
	if p.faults.Sign != nil && p.faults.Sign(out) != nil {
		return nil
	}
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
	a := &answer{response.StatusCode, response.Header, content}
	p.faults.Clock.reset(a, p.skew, q.kind == "LIST" || q.kind == "COPY")
	return a
}

// answer answers the replica.
func (p *Proxy) answer(w http.ResponseWriter, a *answer) {
	p.crossing()
	if a == nil {
		panic(http.ErrAbortHandler)
	}
	if a.header.Get("Date") == "" {
		a.header.Set("Date", p.faults.Clock.shown(time.Now()).Add(p.skew).UTC().Format(http.TimeFormat))
	}
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the replica may have hung up
}
