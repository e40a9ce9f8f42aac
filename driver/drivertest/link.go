package drivertest

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// A Link is the way between the SDK and an S3 server: it makes it long or narrow, or lets a [Fault] happen on it.
// Unlike a [Spy] it is below the SDK, which retries, checks and decodes what comes over it. It is safe for concurrent
// use.
type Link struct {
	client s3.HTTPClient

	mu        sync.Mutex
	latency   time.Duration
	bandwidth int64
	fault     Fault
	requests  int
}

// A Fault is what happens to a request on a link, which is the n-th. It calls send to have it answered, or not.
type Fault func(n int, r *http.Request, send func() (*http.Response, error)) (*http.Response, error)

// NewLink returns a client like the one given, over a link. It asks S3 once where the SDK would try again, unless
// opts say otherwise.
func NewLink(client *s3.Client, opts ...func(*s3.Options)) (*s3.Client, *Link) {
	l := &Link{client: client.Options().HTTPClient}
	through := func(o *s3.Options) {
		o.HTTPClient, o.RetryMaxAttempts = l, 1
	}
	o := client.Options()
	o.ExpressCredentials = nil // those of the client given stay its own
	return s3.New(o, append([]func(*s3.Options){through}, opts...)...), l
}

// SetSpeed lets each answer come so much later, and bodies as so many bytes a second by each connection; 0 is as fast
// as they are.
func (l *Link) SetSpeed(latency time.Duration, bandwidth int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latency, l.bandwidth = latency, bandwidth
}

// InjectFault sets what happens to the requests that follow; nil ends that. It counts them from 1.
func (l *Link) InjectFault(fault Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault, l.requests = fault, 0
}

// Requests returns how many there were since InjectFault.
func (l *Link) Requests() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests
}

// Do implements s3.HTTPClient.
func (l *Link) Do(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	l.requests++
	n, latency, bandwidth, fault := l.requests, l.latency, l.bandwidth, l.fault
	l.mu.Unlock()
	if latency > 0 {
		select {
		case <-time.After(latency):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	send := func() (*http.Response, error) { return l.client.Do(r) }
	var out *http.Response
	var err error
	if fault != nil {
		out, err = fault(n, r, send)
	} else {
		out, err = send()
	}
	if err == nil && bandwidth > 0 {
		out.Body = &throttledBody{ReadCloser: out.Body, bandwidth: bandwidth, due: time.Now()}
	}
	return out, err
}

// A throttledBody yields so many bytes a second.
type throttledBody struct {
	io.ReadCloser
	bandwidth int64
	due       time.Time // of the next byte
}

// throttledRead is how many bytes come together, so that a slow body comes evenly.
const throttledRead = 32 << 10

// Read implements io.Reader.
func (b *throttledBody) Read(p []byte) (int, error) {
	time.Sleep(time.Until(b.due))
	n, err := b.ReadCloser.Read(p[:min(len(p), throttledRead)])
	b.due = b.due.Add(time.Duration(int64(n) * int64(time.Second) / b.bandwidth))
	return n, err
}
