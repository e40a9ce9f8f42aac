package s3error_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/base/s3error"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

func TestMain(m *testing.M) { s3test.Main(m) }

// TestResponseDetails checks that the code, the status and the operation are found in an error, if it has them.
func TestResponseDetails(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	bucket, key := s.Bucket(t), "missing"
	get := func(ctx context.Context) error {
		_, err := s.Client().GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
		return err
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for label, tc := range map[string]struct {
		err       error
		code      string
		status    int
		operation string
	}{
		"response":    {get(t.Context()), "NoSuchKey", http.StatusNotFound, "GetObject"},
		"no-response": {get(ended), "", 0, "GetObject"},
		"other":       {errors.New("other"), "", 0, "a request"},
		"nil":         {nil, "", 0, "a request"},
	} {
		t.Run(label, func(t *testing.T) {
			if code, status, operation := s3error.Code(tc.err), s3error.Status(tc.err),
				s3error.Operation(tc.err); code != tc.code || status != tc.status || operation != tc.operation {
				t.Errorf("%v: %q, %d, %s", tc.err, code, status, operation)
			}
			if has := s3error.HasCode(tc.err, "NoSuchBucket", "NoSuchKey", ""); has != (tc.code != "") {
				t.Errorf("%v: one of the codes: %t", tc.err, has)
			}
		})
	}
}

// TestConditions checks that a failed condition differs from an unsupported one.
func TestConditions(t *testing.T) {
	for server, want := range map[string]struct{ unconditional, failed bool }{"sim-aws": {false, true},
		"sim-strict": {true, false}} {
		t.Run(server, func(t *testing.T) {
			s := s3test.Start(t, server)
			bucket, key := s.Bucket(t), "missing"
			_, err := s.Client().PutObject(
				t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, IfMatch: aws.String(`"0"`)})
			if got := s3error.IsUnconditional(err); got != want.unconditional {
				t.Errorf("%v: conditions are unsupported: %t", err, got)
			}
			if got := s3error.IsConditionFailed(err); got != want.failed {
				t.Errorf("%v: the condition failed: %t", err, got)
			}
		})
	}
}
