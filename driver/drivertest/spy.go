package drivertest

import (
	"context"
	"io"
	"maps"
	"reflect"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
)

// A Spy is a driver.Client that counts the requests which go through it to another, and lets a test interfere with them: fail
// them, hold them up, or break what they bring. It is safe for concurrent use.
type Spy struct {
	client driver.Client

	mu     sync.Mutex
	counts map[string]int
	hooks  hooks
}

// hooks is what interferes with a request.
type hooks struct {
	before   func(ctx context.Context, operation string, in any) error
	answered func()
	after    func(operation string, out any) error
}

var _ driver.Client = (*Spy)(nil)

// NewSpy returns a spy that passes everything on.
func NewSpy(client driver.Client) *Spy { return &Spy{client: client} }

// Before sets what is called ahead of each request with its operation, such as "PutObject", and its input, such as
// *s3.PutObjectInput. An error takes the place of an answer. Nil ends that.
func (s *Spy) Before(f func(ctx context.Context, operation string, in any) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks.before = f
}

// Answered sets what is called when a request that was sent has ended, be it with an answer or an error. Nil ends that.
func (s *Spy) Answered(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks.answered = f
}

// After sets what is called with the answer to each request, such as *s3.GetObjectOutput, which it may change. An error takes
// the place of the answer. Nil ends that.
func (s *Spy) After(f func(operation string, out any) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks.after = f
}

// Reset forgets the requests so far.
func (s *Spy) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts = nil
}

// Counts returns how many requests there were for each operation.
func (s *Spy) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}

// Total returns how many requests there were.
func (s *Spy) Total() int {
	total := 0
	for _, n := range s.Counts() {
		total += n
	}
	return total
}

// begin counts a request and returns what interferes with it.
func (s *Spy) begin(operation string) hooks {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[string]int{}
	}
	s.counts[operation]++
	return s.hooks
}

// request is what all operations have in common.
func request[In, Out any](
	ctx context.Context, s *Spy, in *In, send func(context.Context, *In, ...func(*s3.Options)) (*Out, error), opts []func(*s3.Options),
) (*Out, error) {
	operation := strings.TrimSuffix(reflect.TypeFor[In]().Name(), "Input")
	hooks := s.begin(operation)
	if hooks.before != nil {
		if err := hooks.before(ctx, operation, in); err != nil {
			return nil, err
		}
	}
	out, err := send(ctx, in, opts...)
	if hooks.answered != nil {
		hooks.answered()
	}
	if err != nil {
		return nil, err
	}
	if hooks.after != nil {
		if err := hooks.after(operation, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// HeadObject implements driver.Client.
func (s *Spy) HeadObject(ctx context.Context, in *s3.HeadObjectInput, opts ...func(*s3.Options)) (*s3.HeadObjectOutput, error) {
	return request(ctx, s, in, s.client.HeadObject, opts)
}

// GetObject implements driver.Client.
func (s *Spy) GetObject(ctx context.Context, in *s3.GetObjectInput, opts ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	return request(ctx, s, in, s.client.GetObject, opts)
}

// PutObject implements driver.Client.
func (s *Spy) PutObject(ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	return request(ctx, s, in, s.client.PutObject, opts)
}

// GetObjectTagging implements driver.Client.
func (s *Spy) GetObjectTagging(ctx context.Context, in *s3.GetObjectTaggingInput, opts ...func(*s3.Options)) (*s3.GetObjectTaggingOutput, error) {
	return request(ctx, s, in, s.client.GetObjectTagging, opts)
}

// DeleteObject implements driver.Client.
func (s *Spy) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput, opts ...func(*s3.Options)) (*s3.DeleteObjectOutput, error) {
	return request(ctx, s, in, s.client.DeleteObject, opts)
}

// DeleteObjects implements driver.Client.
func (s *Spy) DeleteObjects(ctx context.Context, in *s3.DeleteObjectsInput, opts ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error) {
	return request(ctx, s, in, s.client.DeleteObjects, opts)
}

// CopyObject implements driver.Client.
func (s *Spy) CopyObject(ctx context.Context, in *s3.CopyObjectInput, opts ...func(*s3.Options)) (*s3.CopyObjectOutput, error) {
	return request(ctx, s, in, s.client.CopyObject, opts)
}

// ListObjectVersions implements driver.Client.
func (s *Spy) ListObjectVersions(ctx context.Context, in *s3.ListObjectVersionsInput, opts ...func(*s3.Options)) (*s3.ListObjectVersionsOutput, error) {
	return request(ctx, s, in, s.client.ListObjectVersions, opts)
}

// ListObjectsV2 implements driver.Client.
func (s *Spy) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, opts ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	return request(ctx, s, in, s.client.ListObjectsV2, opts)
}

// CreateMultipartUpload implements driver.Client.
func (s *Spy) CreateMultipartUpload(ctx context.Context, in *s3.CreateMultipartUploadInput, opts ...func(*s3.Options)) (*s3.CreateMultipartUploadOutput, error) {
	return request(ctx, s, in, s.client.CreateMultipartUpload, opts)
}

// UploadPart implements driver.Client.
func (s *Spy) UploadPart(ctx context.Context, in *s3.UploadPartInput, opts ...func(*s3.Options)) (*s3.UploadPartOutput, error) {
	return request(ctx, s, in, s.client.UploadPart, opts)
}

// ListParts implements driver.Client.
func (s *Spy) ListParts(ctx context.Context, in *s3.ListPartsInput, opts ...func(*s3.Options)) (*s3.ListPartsOutput, error) {
	return request(ctx, s, in, s.client.ListParts, opts)
}

// UploadPartCopy implements driver.Client.
func (s *Spy) UploadPartCopy(ctx context.Context, in *s3.UploadPartCopyInput, opts ...func(*s3.Options)) (*s3.UploadPartCopyOutput, error) {
	return request(ctx, s, in, s.client.UploadPartCopy, opts)
}

// CompleteMultipartUpload implements driver.Client.
func (s *Spy) CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput, opts ...func(*s3.Options)) (*s3.CompleteMultipartUploadOutput, error) {
	return request(ctx, s, in, s.client.CompleteMultipartUpload, opts)
}

// AbortMultipartUpload implements driver.Client.
func (s *Spy) AbortMultipartUpload(ctx context.Context, in *s3.AbortMultipartUploadInput, opts ...func(*s3.Options)) (*s3.AbortMultipartUploadOutput, error) {
	return request(ctx, s, in, s.client.AbortMultipartUpload, opts)
}

// ListMultipartUploads implements driver.Client.
func (s *Spy) ListMultipartUploads(ctx context.Context, in *s3.ListMultipartUploadsInput, opts ...func(*s3.Options)) (*s3.ListMultipartUploadsOutput, error) {
	return request(ctx, s, in, s.client.ListMultipartUploads, opts)
}

// A Broken body ends early, after some bytes, with an error.
type Broken struct {
	io.ReadCloser
	Left int64
	Err  error
}

// Read reads what is left, then fails.
func (b *Broken) Read(p []byte) (int, error) {
	if b.Left <= 0 {
		return 0, b.Err
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.Left)])
	b.Left -= int64(n)
	return n, err
}
