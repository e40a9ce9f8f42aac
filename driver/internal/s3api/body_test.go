package s3api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/profile"
)

// A response may begin before net/http has noticed that the body of the request has ended. The connection must stay
// open.
func TestResponseBeforeTheRequestHasEnded(t *testing.T) {
	reading, written := make(chan struct{}), make(chan struct{})
	var outcome error // error of the request
	ended := sync.OnceFunc(func() { close(written) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Amz-Request-Id", "request")
		w.(http.Flusher).Flush()
		<-written
		_, _ = io.WriteString(w, "<DeleteResult><Deleted><Key>a</Key></Deleted><Deleted><Key>b</Key></Deleted></DeleteResult>")
	}))
	defer server.Close()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return slowConn{conn, reading}, err
	}}
	defer transport.CloseIdleConnections()
	client := s3.New(s3.Options{
		BaseEndpoint: aws.String(server.URL), UsePathStyle: true, Region: "any",
		Credentials: credentials.NewStaticCredentialsProvider("id", "key", ""),
		HTTPClient:  noticingClient{&http.Client{Transport: transport}, sync.OnceFunc(func() { close(reading) })},
	})
	b := NewBucket(client, "bucket", profile.Profile{BatchDelete: true}, &Stats{}, time.Minute)
	ctx := httptrace.WithClientTrace(
		t.Context(), &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) {
			outcome = cmp.Or(outcome, i.Err)
			ended()
		}})
	versions := []Version{{Bucket: b, Key: "a"}, {Bucket: b, Key: "b"}}
	if err := errors.Join(b.DeleteVersions(ctx, versions)...); err != nil {
		t.Error(err)
	}
	if outcome != nil {
		t.Errorf("unexpected outcome %v of the request", outcome)
	}
}

// A slowConn returns from the last write of a request only when the client reads the body of the response.
type slowConn struct {
	net.Conn
	reading chan struct{}
}

func (c slowConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if bytes.HasSuffix(p, []byte("</Delete>")) {
		<-c.reading
	}
	return n, err
}

// A noticingClient calls notice when the body of a response is first read. At that time the SDK has already closed the
// body of the request.
type noticingClient struct {
	s3.HTTPClient
	notice func()
}

func (c noticingClient) Do(r *http.Request) (*http.Response, error) {
	response, err := c.HTTPClient.Do(r)
	if err == nil {
		response.Body = noticingBody{response.Body, c.notice}
	}
	return response, err
}

type noticingBody struct {
	io.ReadCloser
	notice func()
}

func (b noticingBody) Read(p []byte) (int, error) {
	b.notice()
	return b.ReadCloser.Read(p)
}
