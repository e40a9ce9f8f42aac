package drivertest

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// A Link limits the latency and the bandwidth between the SDK and an S3 server. It is safe for concurrent use.
type Link struct {
	client s3.HTTPClient

	mu        sync.Mutex
	latency   time.Duration
	bandwidth int64
}

// NewLink returns a copy of a client that uses a link. It does not use the retries of the SDK.
func NewLink(client *s3.Client) (*s3.Client, *Link) {
	l := &Link{client: client.Options().HTTPClient}
	o := client.Options()
	o.ExpressCredentials = nil // the original client keeps its own
	return s3.New(o, func(o *s3.Options) { o.HTTPClient, o.RetryMaxAttempts = l, 1 }), l
}

// SetSpeed delays each response by latency and limits each connection to bandwidth bytes per second. 0 means no limit.
func (l *Link) SetSpeed(latency time.Duration, bandwidth int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latency, l.bandwidth = latency, bandwidth
}

// Do implements s3.HTTPClient.
func (l *Link) Do(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	latency, bandwidth := l.latency, l.bandwidth
	l.mu.Unlock()
	if latency > 0 {
		select {
		case <-time.After(latency):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	out, err := l.client.Do(r)
	if err == nil && bandwidth > 0 {
		out.Body = &throttledBody{ReadCloser: out.Body, bandwidth: bandwidth, due: time.Now()}
	}
	return out, err
}

// A throttledBody limits the speed of a body.
type throttledBody struct {
	io.ReadCloser
	bandwidth int64
	due       time.Time // when the next byte may be read
}

// throttledRead limits the bytes per read, so that a slow body arrives evenly.
const throttledRead = 32 << 10

func (b *throttledBody) Read(p []byte) (int, error) {
	time.Sleep(time.Until(b.due))
	n, err := b.ReadCloser.Read(p[:min(len(p), throttledRead)])
	b.due = b.due.Add(time.Duration(int64(n) * int64(time.Second) / b.bandwidth))
	return n, err
}
