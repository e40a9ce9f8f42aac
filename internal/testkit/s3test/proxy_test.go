package s3test_test

import (
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/babelftp/babelftp/internal/storage/s3client/transport"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

func newProxy(t *testing.T, s *s3test.Server) *s3test.Proxy {
	t.Helper()
	p, err := s3test.NewProxy(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// TestProxyPassesAll does through a proxy what a server can do, and counts it.
func TestProxyPassesAll(t *testing.T) {
	s3test.RunAll(t, func(t *testing.T, s *s3test.Server) {
		p := newProxy(t, s)
		b := newBucket(t, p.Server())
		p.Reset()
		if err := keeps("a b/ü?&+%41", "dir/c")(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		want := map[string]int{"PutObject": 2, "GetObject": 2, "ListObjectsV2": 2, "DeleteObject": 2}
		if got := p.Counts(); !maps.Equal(got, want) {
			t.Errorf("counts are %v, want %v", got, want)
		}
		p.Reset()
		if got := p.Operations(); len(got) > 0 {
			t.Errorf("after Reset there are %v", got)
		}
	})
}

// TestOperations sends each operation that the driver uses, and some more, and wants it called by its name.
func TestOperations(t *testing.T) {
	p := newProxy(t, s3test.Start(t, "minio"))
	b := newBucket(t, p.Server())
	if err := b.put(t.Context(), "a", "content"); err != nil {
		t.Fatal(err)
	}
	key, source := aws.String("b"), aws.String(b.name+"/a")
	var upload *string
	for _, tt := range []struct {
		name string
		send func() error
	}{
		{"HeadBucket", func() error {
			_, err := b.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: &b.name})
			return err
		}},
		{"HeadObject", func() error {
			_, err := b.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &b.name, Key: aws.String("a")})
			return err
		}},
		{"CopyObject", func() error {
			_, err := b.CopyObject(t.Context(), &s3.CopyObjectInput{Bucket: &b.name, Key: key, CopySource: source})
			return err
		}},
		{"CreateMultipartUpload", func() error {
			out, err := b.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: &b.name, Key: key})
			if err == nil {
				upload = out.UploadId
			}
			return err
		}},
		{"UploadPart", func() error {
			_, err := b.UploadPart(t.Context(), &s3.UploadPartInput{
				Bucket: &b.name, Key: key, UploadId: upload, PartNumber: aws.Int32(1), Body: strings.NewReader("part"),
			})
			return err
		}},
		{"UploadPartCopy", func() error {
			_, err := b.UploadPartCopy(t.Context(), &s3.UploadPartCopyInput{
				Bucket: &b.name, Key: key, UploadId: upload, PartNumber: aws.Int32(1), CopySource: source,
			})
			return err
		}},
		{"ListParts", func() error {
			_, err := b.ListParts(t.Context(), &s3.ListPartsInput{Bucket: &b.name, Key: key, UploadId: upload})
			return err
		}},
		{"ListMultipartUploads", func() error {
			_, err := b.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &b.name})
			return err
		}},
		{"AbortMultipartUpload", func() error {
			_, err := b.AbortMultipartUpload(
				t.Context(), &s3.AbortMultipartUploadInput{Bucket: &b.name, Key: key, UploadId: upload})
			return err
		}},
		{"DeleteObjects", func() error {
			_, err := b.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{
				Bucket: &b.name, Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: key}}},
			})
			return err
		}},
		{"GetObjectTagging", func() error {
			_, err := b.GetObjectTagging(t.Context(), &s3.GetObjectTaggingInput{Bucket: &b.name, Key: aws.String("a")})
			return err
		}},
		{"ListBuckets", func() error { _, err := b.ListBuckets(t.Context(), &s3.ListBucketsInput{}); return err }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p.Reset()
			if err := tt.send(); err != nil {
				t.Fatal(err)
			}
			if got := p.Counts(); !maps.Equal(got, map[string]int{tt.name: 1}) {
				t.Errorf("counted as %v", got)
			}
		})
	}
}

// TestEffects applies each effect to an upload and to a download, by a client that asks once: the client gets an
// error, and the server has what it should.
func TestEffects(t *testing.T) {
	const size = 100_000
	old, fresh := strings.Repeat("old ", size/4), strings.Repeat("new ", size/4)
	status := func(code string) func(error) bool {
		return func(err error) bool {
			api, ok := errors.AsType[smithy.APIError](err)
			return ok && api.ErrorCode() == code
		}
	}
	broken := func(err error) bool { return err != nil && !status("")(err) }
	isReset := func(err error) bool { // or the client has closed the connection because of it, while it still wrote
		return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
	}
	short := func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }
	none := func(err error) bool { return err == nil }
	for _, tt := range []struct {
		name     string
		effect   s3test.Effect
		put, get func(error) bool
		stored   bool // the upload has been done
	}{
		{"refuse", s3test.Refuse(http.StatusServiceUnavailable, "SlowDown"), status("SlowDown"), status("SlowDown"),
			false},
		{"delay", s3test.Delay(time.Millisecond), none, none, true},
		{"reset-request", s3test.ResetRequest(), isReset, isReset, false},
		{"lose-answer", s3test.LoseAnswer(), isReset, isReset, true},
		{"reset-response", s3test.ResetResponse(), isReset, isReset, true},
		{"short-response", s3test.ShortResponse(), broken, short, true},
		{"half-close", s3test.HalfClose(), broken, broken, false},
		{"corrupt-request", s3test.CorruptRequest(), status("XAmzContentSHA256Mismatch"), none, false},
		{"corrupt-response", s3test.CorruptResponse(), none, func(err error) bool {
			return strings.Contains(err.Error(), "checksum")
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := s3test.Start(t, "minio")
			p := newProxy(t, server)
			b := newBucket(t, p.Server())
			direct := bucket{server.Client(), b.name}
			if err := direct.put(t.Context(), "dir/file", old); err != nil {
				t.Fatal(err)
			}
			get := p.Inject(s3test.Fault{Operation: "GetObject", KeyPrefix: "dir/", Effect: tt.effect})
			if got, err := b.get(t.Context(), "dir/file"); !tt.get(err) || err == nil && got != old {
				t.Errorf("download: %d bytes, %v", len(got), err)
			}
			put := p.Inject(s3test.Fault{Operation: "PutObject", KeyPrefix: "dir/", Effect: tt.effect})
			if err := b.put(t.Context(), "dir/file", fresh); !tt.put(err) {
				t.Errorf("upload: %v", err)
			}
			// Go's HTTP client asks again for itself when a used connection breaks before the answer.
			if get.Applied() == 0 || get.Applied() > 2 || put.Applied() != 1 {
				t.Errorf("%d downloads and %d uploads met the fault", get.Applied(), put.Applied())
			}
			want := old
			if tt.stored {
				want = fresh
			}
			if got, err := direct.get(t.Context(), "dir/file"); err != nil || got != want {
				t.Errorf("the server has %.8q, %v, want %.8q", got, err, want)
			}
			put.End()
			if err := b.put(t.Context(), "dir/file", fresh); err != nil {
				t.Errorf("after the fault: %v", err)
			}
		})
	}
}

// TestFaultsCount lets a fault meet the third and the fourth request of one directory.
func TestFaultsCount(t *testing.T) {
	p := newProxy(t, s3test.Start(t, "minio"))
	b := newBucket(t, p.Server())
	fault := p.Inject(
		s3test.Fault{Operation: "PutObject", KeyPrefix: "x/", After: 2, Times: 2,
			Effect: s3test.Refuse(http.StatusForbidden, "ExpiredToken")})
	var got []bool
	for _, key := range []string{"x/1", "y/1", "x/2", "x/3", "y/2", "x/4", "x/5"} {
		got = append(got, b.put(t.Context(), key, key) == nil)
	}
	if want := []bool{true, true, true, false, true, false, true}; !slices.Equal(got, want) {
		t.Errorf("successes are %v, want %v", got, want)
	}
	if fault.Applied() != 2 {
		t.Errorf("%d met the fault", fault.Applied())
	}
}

// TestRefuseWithOK wants the SDK to find the error in an answer that says 200.
func TestRefuseWithOK(t *testing.T) {
	p := newProxy(t, s3test.Start(t, "minio"))
	b := newBucket(t, p.Server())
	if err := b.put(t.Context(), "a", "content"); err != nil {
		t.Fatal(err)
	}
	p.Inject(s3test.Fault{Operation: "CopyObject", Effect: s3test.RefuseWithOK("InternalError")})
	_, err := b.CopyObject(
		t.Context(), &s3.CopyObjectInput{Bucket: &b.name, Key: aws.String("b"), CopySource: aws.String(b.name + "/a")})
	if api, ok := errors.AsType[smithy.APIError](err); !ok || api.ErrorCode() != "InternalError" {
		t.Errorf("error is %v", err)
	}
}

// TestStall answers nothing until the client gives up.
func TestStall(t *testing.T) {
	p := newProxy(t, s3test.Start(t, "minio"))
	b := newBucket(t, p.Server())
	p.Inject(s3test.Fault{Effect: s3test.Stall()})
	impatient := bucket{transport.Variant(b.Options(), func(o *s3.Options) {
		o.HTTPClient = &http.Client{Timeout: 50 * time.Millisecond}
	}), b.name}
	if err := impatient.put(t.Context(), "a", "content"); err == nil {
		t.Error("an answer came")
	}
}
