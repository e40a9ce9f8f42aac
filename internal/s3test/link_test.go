package s3test_test

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/s3test"
)

// TestDistance moves an object over a distance: it takes the time that it must, and comes whole.
func TestDistance(t *testing.T) {
	const (
		size      = 2 << 20
		bandwidth = 8 << 20
		latency   = 30 * time.Millisecond
		least     = 2*latency + time.Second*size/bandwidth
	)
	server := s3test.Start(t, "minio")
	distance, err := s3test.NewDistance(server, "127.0.0.1:0", s3test.Link{Latency: latency, Bandwidth: bandwidth})
	if err != nil {
		t.Fatal(err)
	}
	defer distance.Close()
	distant := *server
	distant.Endpoint = distance.Endpoint()
	b := newBucket(t, &distant)
	content := bytes.Repeat([]byte("0123456789abcde"), size/15+1)[:size]

	begin := time.Now()
	if err := b.put(t.Context(), "object", string(content)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < least {
		t.Errorf("the upload took %v, want %v at least", took, least)
	}
	begin = time.Now()
	if got, err := b.get(t.Context(), "object"); err != nil || got != string(content) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	if took := time.Since(begin); took < least {
		t.Errorf("the download took %v, want %v at least", took, least)
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
