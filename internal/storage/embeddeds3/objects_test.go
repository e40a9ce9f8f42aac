package embeddeds3_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/babelftp/babelftp/internal/storage/embeddeds3"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

const mib = 1 << 20

// A bucket is a bucket with a client that uses the defaults of the SDK.
type bucket struct {
	*s3.Client
	name string
}

func newBucket(t *testing.T) bucket {
	t.Helper()
	b := bucket{Client: start(t, t.TempDir()).Client(), name: "bucket"}
	if _, err := b.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &b.name}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b bucket) get(t *testing.T, key string) []byte {
	t.Helper()
	out, err := b.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &b.name, Key: &key})
	must.OK(t, err)
	defer out.Body.Close()
	content, err := io.ReadAll(out.Body)
	must.OK(t, err)
	return content
}

func (b bucket) keys(t *testing.T) []string {
	t.Helper()
	keys := []string{}
	pages := s3.NewListObjectsV2Paginator(b.Client, &s3.ListObjectsV2Input{
		Bucket: &b.name, EncodingType: types.EncodingTypeUrl, MaxKeys: aws.Int32(2),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		must.OK(t, err)
		for _, object := range page.Contents {
			keys = append(keys, *object.Key)
		}
	}
	return keys
}

func (b bucket) openUploads(t *testing.T) int {
	t.Helper()
	out, err := b.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &b.name})
	must.OK(t, err)
	return len(out.Uploads)
}

func wantCode(t *testing.T, err error, want string) {
	t.Helper()
	var apiErr smithy.APIError
	if !errors.As(err, &apiErr) || apiErr.ErrorCode() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestRefusedNameLeavesNothing(t *testing.T) {
	b := newBucket(t)
	for _, test := range []struct{ name, key, want string }{
		{name: "long-segment", key: "new/folder/" + strings.Repeat("n", 256), want: "KeyTooLongError"},
		{name: "empty-segment", key: "new//name", want: "InvalidURI"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := b.PutObject(
				t.Context(), &s3.PutObjectInput{Bucket: &b.name, Key: &test.key, Body: strings.NewReader("x")})
			wantCode(t, err, test.want)
			out, err := b.ListObjectsV2(
				t.Context(), &s3.ListObjectsV2Input{Bucket: &b.name, Delimiter: aws.String("/")})
			if err != nil || len(out.Contents)+len(out.CommonPrefixes) > 0 {
				t.Errorf("unexpected objects %v %v, %v", out.Contents, out.CommonPrefixes, err)
			}
		})
	}
}

// endlessly is a request body that blocks after its first bytes until ctx ends. It closes taken when it blocks.
type endlessly struct {
	ctx   context.Context
	taken chan<- struct{}
	sent  int
}

func (e *endlessly) Read(p []byte) (int, error) {
	if e.sent > 2*mib {
		if e.taken != nil {
			close(e.taken)
			e.taken = nil
		}
		<-e.ctx.Done()
		return 0, e.ctx.Err()
	}
	e.sent += len(p)
	return len(p), nil
}

// putHalf sends half of an object and returns when ctx ends. Like the requests of the driver, the request has a
// checksum: without one, versitygw would store the received half as the whole object.
func putHalf(ctx context.Context, client *s3.Client, key string, taken chan<- struct{}) error {
	_, err := client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String("bucket"), Key: &key,
		Body: &endlessly{ctx: ctx, taken: taken}, ContentLength: aws.Int64(64 * mib),
		ChecksumCRC32C: aws.String("AAAAAA=="),
	}, func(o *s3.Options) {
		// Over plain HTTP, the SDK computes no checksum for a body that cannot be read twice.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.APIOptions = append(o.APIOptions, v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)
	})
	return err
}

// objectFiles lists the files below a data folder, including temporary ones.
func objectFiles(t *testing.T, dir string) []string {
	t.Helper()
	files := []string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files = append(files, name)
		return err
	})
	must.OK(t, err)
	return files
}

func TestCloseWaitsForRequests(t *testing.T) {
	dir := t.TempDir()
	s, err := embeddeds3.Start(t.Context(), embeddeds3.Options{Dir: dir})
	must.OK(t, err)
	b := bucket{Client: s.Client(), name: "bucket"}
	if _, err := b.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &b.name}); err != nil {
		t.Fatal(err)
	}
	putCtx, endPut := context.WithCancel(t.Context())
	taken, done := make(chan struct{}), make(chan error)
	go func() { done <- putHalf(putCtx, b.Client, "dir/half", taken) }()
	<-taken

	closeCtx, giveUp := context.WithCancel(t.Context())
	giveUp()
	if err := s.Close(closeCtx); !errors.Is(err, context.Canceled) {
		t.Errorf("unexpected error of the first Close: %v", err)
	}
	if now, err := os.Getwd(); err != nil || now != dir {
		t.Errorf("got working directory %q, %v, although a request needs %q", now, err, dir)
	}
	endPut()
	if err := <-done; err == nil {
		t.Error("stored a part of an upload")
	}
	stop(t, s)
	if now, err := os.Getwd(); err != nil || now == dir {
		t.Errorf("working directory: still %q, %v", now, err)
	}
}
