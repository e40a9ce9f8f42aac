package s3client

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// reason returns the actual failure from the errors that the SDK and net/http wrap.
func TestReason(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, tc := range []struct{ name, endpoint, want string }{
		{"https-for-http", "https://" + plain.Listener.Addr().String(),
			"http: server gave HTTP response to HTTPS client"},
		{"unknown-authority", secure.URL, "x509: certificate signed by unknown authority"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client := s3.New(s3.Options{
				BaseEndpoint: &tc.endpoint, Region: "us-east-1", UsePathStyle: true,
				Credentials: aws.AnonymousCredentials{}, Retryer: aws.NopRetryer{},
			})
			_, err := client.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: aws.String("acme")})
			if err == nil {
				t.Fatal("the bucket is reachable")
			}
			if got := reason(err, 0); !strings.HasSuffix(got, tc.want) || strings.Contains(got, "operation error") {
				t.Errorf("got reason %q, want %q", got, tc.want)
			}
		})
	}
}

// A small body is sent in one write with the headers, and any body arrives complete.
func TestSmallBodiesGoWithTheHeaders(t *testing.T) {
	var received []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		received, _ = io.ReadAll(r.Body) // the test compares what was read
	}))
	defer server.Close()
	var writes atomic.Int64
	transport := &http.Transport{
		WriteBufferSize: writeBuffer,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return countingConn{conn, &writes}, err
		},
	}
	defer transport.CloseIdleConnections()
	client := coalescingClient{&http.Client{Transport: transport}}
	for _, tc := range []struct {
		name     string
		size     int
		oneWrite bool
	}{
		{"empty", 0, true}, {"small", 4 << 10, true}, {"largest", writeBuffer - maxHeaders, true},
		{"larger", writeBuffer - maxHeaders + 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := bytes.Repeat([]byte("x"), tc.size)
			body := &closable{Reader: bytes.NewReader(want)}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL, body)
			must.OK(t, err)
			if request.ContentLength = int64(tc.size); tc.size == 0 {
				request.Body = http.NoBody // as the SDK does
			}
			writes.Store(0)
			response, err := client.Do(request)
			must.OK(t, err)
			_ = response.Body.Close()
			if !bytes.Equal(received, want) {
				t.Errorf("got %d of %d bytes", len(received), len(want))
			}
			if got := writes.Load() == 1; got != tc.oneWrite {
				t.Errorf("got %d writes", writes.Load())
			}
			if tc.size > 0 && tc.oneWrite && !body.closed {
				t.Error("the body was not closed")
			}
		})
	}
}

type countingConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countingConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// A closable is a body with a type that net/http does not know.
type closable struct {
	io.Reader
	closed bool
}

func (c *closable) Close() error {
	c.closed = true
	return nil
}
