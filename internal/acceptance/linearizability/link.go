package linearizability

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// A Link is between one replica and an S3 server. A [Plan] decides what happens to a request. The link shows the times
// of S3 by a [Clock]. Replicas sign requests by that clock, and S3 servers refuse a wrong time, so the link signs
// requests again.
//
// A request that the link has read goes on if the replica hangs up or dies, as in a network.
type Link struct {
	faults  *Faults
	replica int
	skew    time.Duration
	proxy   *s3test.Proxy

	mu  sync.Mutex
	cut chan struct{} // closed when the replica is connected again; nil while it is connected
}

// NewLink makes a proxy the link of a replica. The skew is by how much the clock of S3 is ahead of the clock of the
// replica.
func (f *Faults) NewLink(replica int, proxy *s3test.Proxy, skew time.Duration) *Link {
	l := &Link{faults: f, replica: replica, skew: skew, proxy: proxy}
	proxy.Inject(s3test.Fault{Effect: l.handle})
	return l
}

// CutOff lets nothing through, in neither direction, until restore is called: the replica waits. Responses that have
// not come until then are lost.
func (l *Link) CutOff() (restore func()) {
	cut := make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.cut = nil
		close(cut)
	}
}

// cross waits while the replica is cut off, and then breaks the connection.
func (l *Link) cross(e *s3test.Exchange) {
	l.mu.Lock()
	cut := l.cut
	l.mu.Unlock()
	if cut != nil {
		<-cut
		e.Reset()
	}
}

// handle is an [s3test.Effect].
func (l *Link) handle(e *s3test.Exchange) {
	l.proxy.Reset() // a long run has millions of requests, and nobody counts them
	body, err := io.ReadAll(e.Request.Body)
	if err != nil {
		e.Reset() // the replica has died while it sent
	}
	l.cross(e)
	e.Request = e.Request.WithContext(context.WithoutCancel(e.Request.Context()))
	e.Request.ContentLength, e.Request.TransferEncoding = int64(len(body)), nil
	q := newRequest(e.Request, body)
	plan := l.faults.planOf(q)
	if plan == nil {
		l.respond(e, l.forward(e, body, q)) //nolint:bodyclose // its body is in memory
		return
	}
	plan.shorten(e.Request.URL)
	fault := plan.choose(q)
	began := plan.now()
	if fault.before > 0 {
		<-time.After(fault.before)
	}
	var response *http.Response
	if !fault.refuse {
		unlock := plan.lock(q)
		passed := plan.now()
		response = l.forward(e, body, q) //nolint:bodyclose // its body is in memory
		plan.pass(l.replica, q, passed)
		unlock()
	}
	plan.note(began, l.replica, q, fault, response)
	if fault.after > 0 {
		<-time.After(fault.after)
	}
	switch {
	case fault.drop:
		e.Reset()
	case fault.status > 0:
		l.respond(e, s3test.ErrorResponse(fault.status, fault.code)) //nolint:bodyclose // its body is in memory
	default:
		l.respond(e, response)
	}
}

// forward sends a request to the S3 server. It returns nil if no response has come.
func (l *Link) forward(e *s3test.Exchange, body []byte, q request) *http.Response {
	if e.Sign() != nil {
		return nil
	}
	response, err := e.Forward(bytes.NewReader(body))
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil
	}
	content = l.faults.Clock.adjust(response, content, l.skew, q.hasTimes())
	response.Body = io.NopCloser(bytes.NewReader(content))
	return response
}

// respond sends a response to the replica, or breaks the connection if there is none.
func (l *Link) respond(e *s3test.Exchange, response *http.Response) {
	l.cross(e)
	if response == nil {
		e.Reset()
	}
	if response.Header.Get("Date") == "" {
		response.Header.Set("Date", l.faults.Clock.shown(time.Now()).Add(l.skew).UTC().Format(http.TimeFormat))
	}
	_ = e.Respond(response, response.Body) // the replica may have hung up
}
