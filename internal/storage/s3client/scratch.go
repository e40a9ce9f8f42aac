package s3client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// cleanTimeout limits the requests that delete the objects of a probe.
const cleanTimeout = 30 * time.Second

// A scratch is a client that records what its requests may have stored, so that clean can delete it.
type scratch struct {
	*s3.Client
	bucket string

	mu      sync.Mutex
	stored  []version
	uploads []upload
}

// A version is a version of an object or a delete marker. The ID is empty if the bucket keeps no versions or the
// response was lost.
type version struct {
	key, id string
	marker  bool
}

// An upload is a multipart upload. The ID is empty if the response was lost.
type upload struct{ key, id string }

func newScratch(client *s3.Client, bucket string) *scratch {
	s := &scratch{bucket: bucket}
	o := client.Options()
	// A checksum would bind a multipart upload to its algorithm, and not every server accepts one.
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	o.APIOptions = append(o.APIOptions, addContentMD5, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("NoteStored", func(
			ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
		) (middleware.InitializeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleInitialize(ctx, in)
			if err == nil {
				s.note(in.Parameters, out.Result)
			} else if _, answered := errors.AsType[smithy.APIError](err); !answered {
				s.note(in.Parameters, nil)
			}
			return out, metadata, err
		}), middleware.Before)
	})
	s.Client = variant(o)
	return s
}

// addContentMD5 adds a Content-MD5 header to each request that stores bytes or deletes several objects. S3 requires
// this header or a checksum for DeleteObjects, and in buckets with a default Object Lock retention:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock-managing.html
func addContentMD5(stack *middleware.Stack) error {
	switch stack.ID() {
	case "PutObject", "UploadPart", "DeleteObjects":
		return smithyhttp.AddContentChecksumMiddleware(stack)
	}
	return nil
}

// note records what S3 may have stored for a request. result is nil if the response was lost.
func (s *scratch) note(in, result any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var id *string
	switch out := result.(type) {
	case *s3.PutObjectOutput:
		id = out.VersionId
	case *s3.CopyObjectOutput:
		id = out.VersionId
	case *s3.CompleteMultipartUploadOutput:
		id = out.VersionId
	case *s3.CreateMultipartUploadOutput:
		id = out.UploadId
	case *s3.DeleteObjectOutput:
		id = out.VersionId
	case *s3.DeleteObjectsOutput:
		for _, o := range out.Deleted {
			s.noteMarker(o.Key, o.DeleteMarkerVersionId)
		}
	}
	switch in := in.(type) {
	case *s3.PutObjectInput:
		s.noteVersion(in.Key, id)
	case *s3.CopyObjectInput:
		s.noteVersion(in.Key, id)
	case *s3.CompleteMultipartUploadInput:
		s.noteVersion(in.Key, id)
	case *s3.CreateMultipartUploadInput:
		s.uploads = append(s.uploads, upload{*in.Key, aws.ToString(id)})
	case *s3.DeleteObjectInput:
		if in.VersionId == nil {
			s.noteMarker(in.Key, id)
		}
	}
}

func (s *scratch) noteVersion(key, id *string) {
	if v := (version{key: *key, id: aws.ToString(id)}); !slices.Contains(s.stored, v) {
		s.stored = append(s.stored, v)
	}
}

func (s *scratch) noteMarker(key, id *string) {
	if id != nil {
		s.stored = append(s.stored, version{*key, *id, true})
	}
}

// clean deletes everything that may have been stored, even after ctx ended. If it has no permission to delete
// versions, it hides them with a delete marker. It returns a line for each item that is left.
func (s *scratch) clean(ctx context.Context) (left []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	leave := func(format, key string) {
		if what := fmt.Sprintf(format, key); !slices.Contains(left, what) {
			left = append(left, what)
		}
	}
	for _, u := range s.uploads { // completed ones too, because a server may still have them
		if u.id == "" {
			leave("a multipart upload of this check may stay at %q: abort it", u.key)
			continue
		}
		_, err := s.AbortMultipartUpload(
			ctx, &s3.AbortMultipartUploadInput{Bucket: &s.bucket, Key: &u.key, UploadId: &u.id})
		if err != nil && !s3error.HasCode(err, "NoSuchUpload", "NoSuchKey") {
			leave("the multipart upload of this check stays at %q: abort it", u.key)
		}
	}
	hidden := map[string]bool{}
	for _, v := range s.stored {
		if hidden[v.key] {
			continue
		}
		in := &s3.DeleteObjectInput{Bucket: &s.bucket, Key: &v.key}
		if v.id != "" {
			in.VersionId = &v.id
		}
		_, err := s.DeleteObject(ctx, in)
		if err != nil && v.id != "" {
			if v.marker {
				continue
			}
			hidden[v.key] = true
			_, err = s.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: &v.key})
		}
		if err != nil {
			leave("the object %q of this check stays: delete it", v.key)
		}
	}
	return left
}
