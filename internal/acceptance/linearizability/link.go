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

// A Link sits between one replica and an S3 server. A [Plan] decides which requests it disturbs, and a [Clock]
// decides which times the replica sees. Replicas sign requests with the time of that clock, and S3 servers reject a
// wrong time, so the link signs every request again.
//
// If the replica hangs up or dies, a request that the link has read still reaches the server, as in a real network.
type Link struct {
	faults  *Faults
	replica int
	skew    time.Duration
	proxy   *s3test.Proxy

	mu  sync.Mutex
	cut chan struct{} // closed when the replica is reconnected; nil while it is connected
}

// NewLink installs a link for a replica in proxy. The skew is how far the clock of S3 is ahead of the clock of the
// replica.
func (f *Faults) NewLink(replica int, proxy *s3test.Proxy, skew time.Duration) *Link {
	l := &Link{faults: f, replica: replica, skew: skew, proxy: proxy}
	proxy.Inject(s3test.Fault{Effect: l.handle})
	return l
}

// CutOff blocks both directions until restore is called. The replica waits, and responses that have not reached it
// by then are lost.
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

// cross waits while the replica is cut off, and then resets the connection.
func (l *Link) cross(e *s3test.Exchange) {
	l.mu.Lock()
	cut := l.cut
	l.mu.Unlock()
	if cut != nil {
		<-cut
		e.Reset()
	}
}

// handle implements [s3test.Effect].
func (l *Link) handle(e *s3test.Exchange) {
	l.proxy.Reset() // drop the counts of requests, because a long run has millions that nobody reads
	body, err := io.ReadAll(e.Request.Body)
	if err != nil {
		e.Reset() // the replica died while sending
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

// forward sends a request to the S3 server. It returns nil if no response arrives.
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

// respond sends a response to the replica, or resets the connection if response is nil.
func (l *Link) respond(e *s3test.Exchange, response *http.Response) {
	l.cross(e)
	if response == nil {
		e.Reset()
	}
	if response.Header.Get("Date") == "" {
		response.Header.Set("Date", l.faults.Clock.replicaTime(time.Now()).Add(l.skew).UTC().Format(http.TimeFormat))
	}
	_ = e.Respond(response, response.Body) // the replica may have hung up
}
