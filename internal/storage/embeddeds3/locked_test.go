package embeddeds3_test

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Several clients delete an object with a condition on its old ETag, while another client replaces it. The new object
// must stay.
func TestDeleteNextToPut(t *testing.T) {
	const keys, rounds, deleters = 4, 25, 6
	b := newBucket(t)
	var all sync.WaitGroup
	for n := range keys {
		all.Go(func() {
			key := fmt.Sprint("file", n)
			for range rounds {
				old, err := b.PutObject(
					t.Context(), &s3.PutObjectInput{Bucket: &b.name, Key: &key, Body: strings.NewReader("old")})
				if err != nil {
					t.Error(err)
					return
				}
				var clients sync.WaitGroup
				for range deleters {
					clients.Go(func() {
						_, _ = b.DeleteObject(
							t.Context(), &s3.DeleteObjectInput{Bucket: &b.name, Key: &key, IfMatch: old.ETag})
					})
				}
				_, err = b.PutObject(
					t.Context(), &s3.PutObjectInput{Bucket: &b.name, Key: &key, Body: strings.NewReader("new")})
				clients.Wait()
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := b.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &b.name, Key: &key}); err != nil {
					t.Errorf("%s is missing after it was replaced", key)
				}
			}
		})
	}
	all.Wait()
}

// A flipping object is replaced again and again by one of two objects with different sizes, ETags and metadata.
type flipping struct {
	bucket
	key string
}

func (f *flipping) body(n int) string { return strings.Repeat("x", n+1) }

func (f *flipping) metadata(n int) map[string]string { return map[string]string{"n": strconv.Itoa(n)} }

// etag returns the ETag of object n after PutObject or CopyObject, or after a multipart upload of one part.
func (f *flipping) etag(n int, uploaded bool) string {
	sum := md5.Sum([]byte(f.body(n)))
	if uploaded {
		sum = md5.Sum(sum[:])
		return fmt.Sprintf(`"%x-1"`, sum)
	}
	return fmt.Sprintf(`"%x"`, sum)
}

// isWhole reports whether a response describes one of the two objects. metadata is nil if the response has no metadata.
func (f *flipping) isWhole(etag *string, size *int64, metadata map[string]string) bool {
	for n := range 2 {
		if aws.ToInt64(size) == int64(len(f.body(n))) && (metadata == nil || maps.Equal(metadata, f.metadata(n))) {
			return aws.ToString(etag) == f.etag(n, false) || aws.ToString(etag) == f.etag(n, true)
		}
	}
	return false
}

// publishers returns the requests that store object n.
func (f *flipping) publishers() map[string]func(ctx context.Context, n int) error {
	return map[string]func(ctx context.Context, n int) error{
		"put": func(ctx context.Context, n int) error {
			_, err := f.PutObject(
				ctx, &s3.PutObjectInput{Bucket: &f.name, Key: &f.key, Body: strings.NewReader(f.body(n)),
					Metadata: f.metadata(n)})
			return err
		},
		"upload": func(ctx context.Context, n int) error {
			created, err := f.CreateMultipartUpload(
				ctx, &s3.CreateMultipartUploadInput{Bucket: &f.name, Key: &f.key, Metadata: f.metadata(n)})
			if err != nil {
				return err
			}
			part, err := f.UploadPart(ctx, &s3.UploadPartInput{
				Bucket: &f.name, Key: &f.key, UploadId: created.UploadId, PartNumber: aws.Int32(1),
				Body: strings.NewReader(f.body(n)),
			})
			if err != nil {
				return err
			}
			_, err = f.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
				Bucket: &f.name, Key: &f.key, UploadId: created.UploadId,
				MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{ETag: part.ETag,
					PartNumber: aws.Int32(1)}}},
			})
			return err
		},
		"delete-and-put": func(ctx context.Context, n int) error {
			_, err := f.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &f.name, Key: &f.key})
			if err == nil {
				_, err = f.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &f.name, Delete: &types.Delete{
					Objects: []types.ObjectIdentifier{{Key: &f.key}},
				}})
			}
			if err != nil {
				return err
			}
			return f.publishers()["put"](ctx, n)
		},
	}
}

// readers returns the requests that describe the object. Each reports whether the response describes exactly one
// content.
func (f *flipping) readers() map[string]func(ctx context.Context) (whole bool, err error) {
	head := func(ctx context.Context, key *string) (bool, error) {
		out, err := f.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &f.name, Key: key})
		if err != nil {
			return false, err
		}
		return f.isWhole(out.ETag, out.ContentLength, out.Metadata), nil
	}
	return map[string]func(ctx context.Context) (bool, error){
		"head": func(ctx context.Context) (bool, error) { return head(ctx, &f.key) },
		"get": func(ctx context.Context) (bool, error) {
			out, err := f.GetObject(ctx, &s3.GetObjectInput{Bucket: &f.name, Key: &f.key})
			if err != nil {
				return false, err
			}
			defer out.Body.Close()
			body, err := io.ReadAll(out.Body)
			return f.isWhole(out.ETag, aws.Int64(int64(len(body))), out.Metadata), err
		},
		"list": func(ctx context.Context) (bool, error) {
			out, err := f.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &f.name, Prefix: &f.key})
			if err != nil || len(out.Contents) == 0 {
				return true, err
			}
			return f.isWhole(out.Contents[0].ETag, out.Contents[0].Size, nil), nil
		},
		"copy": func(ctx context.Context) (bool, error) {
			key := "copy-of-" + f.key
			if _, err := f.CopyObject(
				ctx, &s3.CopyObjectInput{Bucket: &f.name, Key: &key,
					CopySource: aws.String(f.name + "/" + f.key)}); err != nil {
				return false, err
			}
			return head(ctx, &key)
		},
	}
}

// Clients read an object while others replace it. Each response must describe one of the two contents, never a mixture.
func TestReadNextToReplace(t *testing.T) {
	const rounds = 25
	b := newBucket(t)
	f := flipping{bucket: b}
	var publishing, reading sync.WaitGroup
	done := make(chan struct{})
	for name := range f.publishers() {
		f := &flipping{bucket: b, key: name}
		publish := f.publishers()[name]
		publishing.Go(func() {
			for n := range rounds {
				if err := publish(t.Context(), n%2); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
		})
		for reader, read := range f.readers() {
			reading.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					if whole, err := read(t.Context()); err == nil && !whole {
						t.Errorf("%s during %s: got parts of two objects", reader, name)
					} else if err != nil && !isMissing(err) {
						t.Errorf("%s during %s: %v", reader, name, err)
					}
				}
			})
		}
	}
	publishing.Wait()
	close(done)
	reading.Wait()
}

// isMissing reports whether S3 responded that the object does not exist.
func isMissing(err error) bool {
	response, ok := errors.AsType[*smithyhttp.ResponseError](err)
	return ok && response.HTTPStatusCode() == http.StatusNotFound
}
