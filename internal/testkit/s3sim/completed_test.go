package s3sim_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// begin begins a multipart upload of "file" with one part that holds "bytes", and returns what completes it.
func (x *fixture) begin() *s3.CompleteMultipartUploadInput {
	x.Helper()
	key := aws.String("file")
	u, err := x.client.CreateMultipartUpload(x.Context(), &s3.CreateMultipartUploadInput{
		Bucket: aws.String(bucket), Key: key, ChecksumAlgorithm: types.ChecksumAlgorithmCrc32c,
	})
	if err != nil {
		x.Fatal(err)
	}
	p, err := x.client.UploadPart(x.Context(), &s3.UploadPartInput{
		Bucket: aws.String(bucket), Key: key, UploadId: u.UploadId, PartNumber: aws.Int32(1),
		Body:              strings.NewReader("bytes"),
		ChecksumAlgorithm: types.ChecksumAlgorithmCrc32c,
	})
	if err != nil {
		x.Fatal(err)
	}
	return &s3.CompleteMultipartUploadInput{
		Bucket: aws.String(bucket), Key: key, UploadId: u.UploadId, MultipartUpload: &types.CompletedMultipartUpload{
			Parts: []types.CompletedPart{{PartNumber: aws.Int32(1), ETag: p.ETag, ChecksumCRC32C: p.ChecksumCRC32C}},
		},
	}
}

// TestRepeatedComplete repeats the request that completes an upload.
func TestRepeatedComplete(t *testing.T) {
	for name, test := range map[string]struct {
		profile string
		forgets bool
		change  func(x *fixture, in *s3.CompleteMultipartUploadInput) // between the two requests
		code    string
	}{
		"aws": {profile: "aws"},
		"aws-condition": {profile: "aws", change: func(_ *fixture, in *s3.CompleteMultipartUploadInput) {
			in.IfNoneMatch = aws.String("*")
		}},
		"aws-forgotten": {profile: "aws", forgets: true, code: "NoSuchUpload"},
		"aws-replaced": {profile: "aws", change: func(x *fixture, _ *s3.CompleteMultipartUploadInput) {
			x.mustPut("file", "bytes")
		}, code: "NoSuchUpload"},
		"aws-other-parts": {profile: "aws", change: func(_ *fixture, in *s3.CompleteMultipartUploadInput) {
			in.MultipartUpload.Parts[0].ETag = aws.String("x")
		}, code: "NoSuchUpload"},
		"strict": {profile: "strict", code: "NoSuchUpload"},
		"minio":  {profile: "minio", code: "NoSuchUpload"},
		"removed-meanwhile": {profile: "aws", change: func(x *fixture, _ *s3.CompleteMultipartUploadInput) {
			wantCode(x.T, x.delete("file"), "")
		}, code: "NoSuchUpload"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t, s3sim.Options{Profile: profile(t, test.profile), Forgets: test.forgets})
			in := x.begin()
			first, err := x.client.CompleteMultipartUpload(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if test.change != nil {
				test.change(x, in)
			}
			before := x.Objects(bucket)
			again, err := x.client.CompleteMultipartUpload(t.Context(), in)
			wantCode(t, err, test.code)
			if err == nil && aws.ToString(again.ETag) != *first.ETag {
				t.Errorf("ETag %s, and at first %s", aws.ToString(again.ETag), *first.ETag)
			}
			if after := x.Objects(bucket); len(after) != len(before) || len(after) == 1 && after[0] != before[0] {
				t.Errorf("the bucket has changed: %v, before %v", after, before)
			}
		})
	}
}

// TestErrorInOK answers 200 with an error in the body to a request that completes an upload.
func TestErrorInOK(t *testing.T) {
	for name, performed := range map[string]bool{"performed": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t, s3sim.Options{Profile: profile(t, "aws")})
			in := x.begin()
			fault := s3sim.Fault{Status: http.StatusOK, Code: "InternalError", Performed: performed}
			client := x.Client(&s3sim.Caller{Fault: func(s3sim.Operation) s3sim.Fault { return fault }}, once)
			_, err := client.CompleteMultipartUpload(t.Context(), in)
			wantCode(t, err, "InternalError")
			if got := len(x.Objects(bucket)) == 1; got != performed {
				t.Errorf("it took effect: %v", got)
			}
		})
	}
}
