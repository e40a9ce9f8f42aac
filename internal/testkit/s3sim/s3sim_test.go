package s3sim_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// bucket is the name of the only bucket of each test.
const bucket = "bucket"

// A fixture is a server with a bucket.
type fixture struct {
	*testing.T
	*s3sim.Server
	client *s3.Client
}

func newFixture(t *testing.T, opts s3sim.Options) *fixture {
	s := s3sim.New(opts)
	s.CreateBucket(bucket)
	return &fixture{T: t, Server: s, client: s.Client(nil, once)}
}

// once is an option of a client that makes no second attempt.
func once(o *s3.Options) { o.RetryMaxAttempts = 1 }

func profile(t *testing.T, name string) driver.Profile {
	t.Helper()
	p, known := driver.ProfileNamed(name)
	if !known {
		t.Fatalf("no profile is called %q", name)
	}
	return p
}

func (x *fixture) put(key, content string, change ...func(*s3.PutObjectInput)) (string, error) {
	in := &s3.PutObjectInput{Bucket: aws.String(bucket), Key: &key, Body: strings.NewReader(content)}
	for _, f := range change {
		f(in)
	}
	out, err := x.client.PutObject(x.Context(), in)
	if err != nil {
		return "", err
	}
	return *out.ETag, nil
}

func (x *fixture) mustPut(key, content string, change ...func(*s3.PutObjectInput)) string {
	x.Helper()
	etag, err := x.put(key, content, change...)
	if err != nil {
		x.Fatal(err)
	}
	return etag
}

func (x *fixture) delete(key string) error {
	_, err := x.client.DeleteObject(x.Context(), &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: &key})
	return err
}

// want checks the objects of the bucket: keys and contents in turn.
func (x *fixture) want(pairs ...string) {
	x.Helper()
	got := []string{}
	for _, o := range x.Objects(bucket) {
		got = append(got, o.Key, string(o.Content.Bytes()))
	}
	if !slices.Equal(got, pairs) {
		x.Errorf("the bucket holds %q, want %q", got, pairs)
	}
}

// wantCode checks S3's code of an error. An empty code means success.
func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var api smithy.APIError
	switch {
	case code == "" && err == nil:
	case !errors.As(err, &api) || api.ErrorCode() != code:
		t.Errorf("error is %v, want %s", err, code)
	}
}

// A parts describes how a multipart upload is made, and what the server makes of it.
type parts struct {
	profile string
	sizes   []int
	numbers []int // 1, 2, 3 when nil
	summed  bool  // with CRC-32C
	forgets bool  // completes without the sums
	code    string
}

func TestRulesOfParts(t *testing.T) {
	for name, test := range map[string]parts{
		"aws":           {profile: "aws", sizes: []int{10, 10, 3}},
		"aws-gap":       {profile: "aws", sizes: []int{10, 3}, numbers: []int{1, 3}},
		"aws-checksums": {profile: "aws", sizes: []int{10, 3}, summed: true},
		"aws-checksums-gap": {profile: "aws", sizes: []int{10, 3}, numbers: []int{1, 3}, summed: true,
			code: "InvalidPartOrder"},
		"aws-checksums-not-completed": {profile: "aws", sizes: []int{10, 3}, summed: true, forgets: true,
			code: "InvalidRequest"},
		"aws-unequal": {profile: "aws", sizes: []int{10, 12, 3}},
		"aws-small":   {profile: "aws", sizes: []int{10, 9, 3}, code: "EntityTooSmall"},
		"aws-directory-gap": {profile: "aws-directory", sizes: []int{10, 3}, numbers: []int{1, 3},
			code: "InvalidPartOrder"},
		"aws-directory-not-from-one": {profile: "aws-directory", sizes: []int{10, 3}, numbers: []int{2, 3},
			code: "InvalidPartOrder"},
		"r2":             {profile: "r2", sizes: []int{10, 10, 3}},
		"r2-gap":         {profile: "r2", sizes: []int{10, 3}, numbers: []int{1, 3}},
		"r2-unequal":     {profile: "r2", sizes: []int{10, 12, 3}, code: "InvalidPart"},
		"r2-last-larger": {profile: "r2", sizes: []int{10, 12}, code: "InvalidPart"},
		"strict":         {profile: "strict", sizes: []int{10, 10, 3}},
		"strict-gap":     {profile: "strict", sizes: []int{10, 3}, numbers: []int{1, 3}, code: "InvalidPartOrder"},
		"strict-unequal": {profile: "strict", sizes: []int{10, 12, 3}, code: "InvalidPart"},
		"minio-gap":      {profile: "minio", sizes: []int{10, 3}, numbers: []int{1, 3}, summed: true},
		"order":          {profile: "minio", sizes: []int{10, 10}, numbers: []int{2, 1}, code: "InvalidPartOrder"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t, s3sim.Options{Profile: profile(t, test.profile), MinPartSize: 10})
			wantCode(t, x.upload("file", test), test.code)
			if open := len(x.Uploads(bucket)); (open == 0) != (test.code == "") {
				t.Errorf("%d uploads are open", open)
			}
		})
	}
}

func (x *fixture) upload(key string, test parts) error {
	create := &s3.CreateMultipartUploadInput{Bucket: aws.String(bucket), Key: &key}
	if test.summed {
		create.ChecksumAlgorithm = types.ChecksumAlgorithmCrc32c
	}
	plain := func(o *s3.Options) { o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired }
	u, err := x.client.CreateMultipartUpload(x.Context(), create, plain)
	if err != nil {
		return err
	}
	completed := &types.CompletedMultipartUpload{}
	for i, size := range test.sizes {
		number := int32(i + 1)
		if test.numbers != nil {
			number = int32(test.numbers[i])
		}
		in := &s3.UploadPartInput{
			Bucket: aws.String(bucket), Key: &key, UploadId: u.UploadId, PartNumber: &number,
			Body: strings.NewReader(strings.Repeat("x", size)), ChecksumAlgorithm: create.ChecksumAlgorithm,
		}
		p, err := x.client.UploadPart(x.Context(), in, plain)
		if err != nil {
			return err
		}
		part := types.CompletedPart{PartNumber: &number, ETag: p.ETag}
		if !test.forgets {
			part.ChecksumCRC32C = p.ChecksumCRC32C
		}
		completed.Parts = append(completed.Parts, part)
	}
	_, err = x.client.CompleteMultipartUpload(x.Context(), &s3.CompleteMultipartUploadInput{
		Bucket: aws.String(bucket), Key: &key, UploadId: u.UploadId, MultipartUpload: completed,
	})
	return err
}

// TestFaults runs each fault under virtual time.
func TestFaults(t *testing.T) {
	for name, test := range map[string]struct {
		fault   s3sim.Fault
		timeout time.Duration
		took    time.Duration
		code    string // of the error, or "lost"
		done    bool
	}{
		"none": {done: true},
		"delays": {fault: s3sim.Fault{Before: time.Second, After: time.Minute}, took: 61 * time.Second,
			done: true},
		"request-lost": {fault: s3sim.Fault{Before: time.Second, LoseRequest: true}, took: time.Second, code: "lost"},
		"answer-lost":  {fault: s3sim.Fault{LoseAnswer: true}, code: "lost", done: true},
		"slow-down":    {fault: s3sim.Fault{Status: http.StatusServiceUnavailable, Code: "SlowDown"}, code: "SlowDown"},
		"error-after": {
			fault: s3sim.Fault{Status: http.StatusInternalServerError, Code: "InternalError", Performed: true},
			code:  "InternalError", done: true,
		},
		"given-up": {fault: s3sim.Fault{Before: time.Minute}, timeout: time.Second, took: time.Second,
			code: "lost", done: true},
		"given-up-early": {fault: s3sim.Fault{Before: time.Minute, Forget: true}, timeout: time.Second,
			took: time.Second, code: "lost"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newFixture(t, s3sim.Options{})
				x.client = x.Client(&s3sim.Caller{Fault: func(s3sim.Operation) s3sim.Fault { return test.fault }}, once)
				ctx := t.Context()
				if test.timeout > 0 {
					var done context.CancelFunc
					ctx, done = context.WithTimeout(ctx, test.timeout)
					defer done()
				}
				begin := time.Now()
				_, err := x.client.PutObject(ctx, &s3.PutObjectInput{
					Bucket: aws.String(bucket), Key: aws.String("file"), Body: bytes.NewReader([]byte("bytes")),
				})
				if test.code == "lost" {
					if err == nil {
						t.Error("the request succeeded")
					}
				} else {
					wantCode(t, err, test.code)
				}
				if took := time.Since(begin); took != test.took {
					t.Errorf("it took %v, want %v", took, test.took)
				}
				time.Sleep(time.Hour)
				if got := len(x.Objects(bucket)) == 1; got != test.done {
					t.Errorf("it took effect: %v", got)
				}
			})
		})
	}
}

// TestCut cuts the body of an answer.
func TestCut(t *testing.T) {
	x := newFixture(t, s3sim.Options{})
	x.mustPut("file", "bytes")
	client := x.Client(&s3sim.Caller{Fault: func(s3sim.Operation) s3sim.Fault { return s3sim.Fault{Cut: 2} }}, once)
	out, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String("file")})
	if err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(out.Body); string(content) != "by" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v", content, err)
	}
}
