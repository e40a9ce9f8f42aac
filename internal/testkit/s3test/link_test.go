package s3test_test

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestLinkProxy moves an object over a distance: it comes whole. How long that takes is in TestLink.
func TestLinkProxy(t *testing.T) {
	const (
		size      = 2 << 20
		bandwidth = 8 << 20
		latency   = 30 * time.Millisecond
	)
	server := s3test.Start(t, "minio")
	distance, err := s3test.NewLinkProxy(server, "127.0.0.1:0", s3test.Link{Latency: latency, Bandwidth: bandwidth})
	if err != nil {
		t.Fatal(err)
	}
	defer distance.Close()
	distant := *server
	distant.Endpoint = distance.Endpoint()
	b := newBucket(t, &distant)
	content := bytes.Repeat([]byte("0123456789abcde"), size/15+1)[:size]

	if err := b.put(t.Context(), "object", string(content)); err != nil {
		t.Fatal(err)
	}
	if got, err := b.get(t.Context(), "object"); err != nil || got != string(content) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}

	// A connection that ends at one side ends at the other.
	out, err := b.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &b.name, Key: new("object")})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	if err := distance.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(out.Body); err == nil {
		t.Error("the body ended as if it were whole")
	}
}
