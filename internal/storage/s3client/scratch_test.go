package s3client

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// The check of a bucket leaves no objects behind, even if S3 performs a request and the response is lost.
func TestVerifyWithoutAResponse(t *testing.T) {
	s := s3test.Start(t, "minio")
	for name, is := range map[string]func(in any) bool{
		"put":      func(in any) bool { _, ok := in.(*s3.PutObjectInput); return ok },
		"part":     func(in any) bool { _, ok := in.(*s3.UploadPartInput); return ok },
		"complete": func(in any) bool { _, ok := in.(*s3.CompleteMultipartUploadInput); return ok },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := servicetest.NewConfig(t, s)
			acme := cfg.Tenants["acme"]
			acme.Overwrite = config.DenyOverwrite
			lost := 0
			reach := s.AWSConfig()
			reach.APIOptions = append(reach.APIOptions, func(stack *middleware.Stack) error {
				return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("lose", func(
					ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
				) (middleware.InitializeOutput, middleware.Metadata, error) {
					out, metadata, err := next.HandleInitialize(ctx, in)
					if err == nil && is(in.Parameters) {
						lost++
						err = errors.New("the answer is lost")
					}
					return out, metadata, err
				}), middleware.After)
			})
			if _, err := checked(t, cfg, reach); err == nil || lost == 0 {
				t.Fatalf("after %d lost responses: unexpected result of the check: %v", lost, err)
			}
			left := s3test.Objects(t, s.Client(), acme.Bucket)
			left = append(left, s3test.OpenUploads(t, s.Client(), acme.Bucket)...)
			if len(left) > 0 {
				t.Errorf("the check left %q", left)
			}
		})
	}
}
