package tracing

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/middleware"

	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// The span of a request to S3 has an error status if there was no response or an unexpected one. A missing object is an
// expected response.
func TestStatusOfRequests(t *testing.T) {
	collector := servicetest.StartCollector(t)
	tracer, _ := newTracer(t, collector.URL)
	ctx := session(t, tracer, about).CommandBegan(t.Context(), report.Command{Name: "STOR", Began: time.Now()})
	want := map[string]bool{"200": false, "404": false, "412": false, "416": false, "403": true, "500": true,
		"503": true, sessionlog.NoResponse: true, "canceled": false}
	for status := range want {
		AddRequest(ctx, &sessionlog.Request{Service: "S3", Operation: status, Status: status, Begin: time.Now()})
	}
	// Not part of a command.
	AddRequest(t.Context(), &sessionlog.Request{Service: "S3", Operation: "ListObjectsV2", Status: "200"})
	tracer.Shutdown(t.Context())
	spans := collector.Spans()
	if len(spans) != len(want) {
		t.Fatalf("got %+v", spans)
	}
	for _, span := range spans {
		failed := want[strings.TrimPrefix(span.Name, "S3.")]
		if span.Failed != failed || (span.Attributes["error.type"] != "") != failed {
			t.Errorf("got %+v", span)
		}
	}
}

// The span of each request names the bucket, if there is one.
func TestBucketOfRequests(t *testing.T) {
	for _, test := range []struct {
		input any
		want  string
	}{
		{&s3.PutObjectInput{Bucket: aws.String("acme-data")}, "acme-data"},
		{&s3.DeleteObjectsInput{Bucket: aws.String("acme-data")}, "acme-data"},
		{&s3.PutObjectInput{}, ""}, {&s3.ListBucketsInput{}, ""}, {&sts.AssumeRoleInput{}, ""}, {nil, ""}, {"text", ""},
	} {
		if got := bucketOf(test.input); got != test.want {
			t.Errorf("%T: %q, want %q", test.input, got, test.want)
		}
	}
	collector, bucket := servicetest.StartCollector(t), httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(bucket.Close)
	tracer, _ := newTracer(t, collector.URL)
	seen := []string{}
	for _, traced := range []*Tracer{tracer, nil} {
		client := s3.New(
			s3.Options{Region: "us-east-1", BaseEndpoint: &bucket.URL, UsePathStyle: true,
				Credentials: aws.AnonymousCredentials{}}, s3.WithAPIOptions(traced.Observe))
		ctx := session(t, tracer, about).CommandBegan(t.Context(), report.Command{Name: "SIZE"})
		_, err := client.HeadObject(
			ctx, &s3.HeadObjectInput{Bucket: aws.String("acme-data"), Key: aws.String("f")},
			s3.WithAPIOptions(func(stack *middleware.Stack) error {
				return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("look", func(
					ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
				) (middleware.DeserializeOutput, middleware.Metadata, error) {
					name, _ := ctx.Value(bucketKey{}).(string)
					seen = append(seen, name)
					return next.HandleDeserialize(ctx, in)
				}), middleware.After)
			}))
		if err == nil {
			t.Error("unexpected object")
		}
	}
	tracer.Shutdown(t.Context())
	if !slices.Equal(seen, []string{"acme-data", ""}) {
		t.Errorf("got %q", seen)
	}
}
