package s3client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// maxAttempts bounds how often a client sends a request that the server does not perform. Next to three clients that
// do nothing but store and delete in one directory, versitygw refuses one request in twenty.
const maxAttempts = 8

// S3 calls a conflict with another request OperationAborted.
var (
	errUnstored = &smithy.GenericAPIError{
		Code: "OperationAborted", Message: "the server answered 200 and did not store the object",
		Fault: smithy.FaultServer,
	}

	// errPartsDeleted reports that the server refused to complete an upload because its directory became empty.
	errPartsDeleted = &smithy.GenericAPIError{
		Code: "OperationAborted", Message: "the server refused to complete the upload and has deleted its parts",
		Fault: smithy.FaultServer,
	}
)

// RepeatUnstored makes a client send a request to store an object again, at once, if the server has not stored it.
// Either the server refused for a moment only ([driver.Profile.EmptyDirectoryCode]), or it responded with 200 all the
// same ([driver.Profile.FalseSuccess]). After some attempts the error is OperationAborted. For a request to complete
// an upload it is OperationAborted at once if the parts are gone, and the refusal itself if they are still there. For a
// copy that is not there, which another client may have deleted, it is OperationAborted too.
//
// The server has the profile with this name. If the name is empty, the headers of each response show the profile.
func RepeatUnstored(name string) func(*s3.Options) {
	return func(o *s3.Options) {
		r := repeater{name: name, client: sync.OnceValue(func() *s3.Client { return variant(o.Copy()) })}
		o.APIOptions = append(o.APIOptions, r.add)
	}
}

type repeater struct {
	name   string
	client func() *s3.Client // checks for objects
}

// A target is the object that a request stores.
type target struct {
	bucket, key *string
	name        string  // Of the request, in the metadata of the object. It is empty for the end of an upload.
	upload      *string // The ID of the upload that the request completes, nil for other requests.
}

type targetKey struct{}

func (r *repeater) add(stack *middleware.Stack) error {
	const retry = "Retry" // which presigning lacks: it sends no request
	if _, sends := stack.Finalize.Get(retry); !sends {
		return nil
	}
	err := stack.Initialize.Add(middleware.InitializeMiddlewareFunc("NoteTarget", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		switch in := in.Parameters.(type) {
		case *s3.PutObjectInput:
			ctx = middleware.WithStackValue(
				ctx, targetKey{}, target{bucket: in.Bucket, key: in.Key, name: in.Metadata[driver.WriteMetadata]})
		case *s3.CopyObjectInput:
			ctx = middleware.WithStackValue(
				ctx, targetKey{}, target{bucket: in.Bucket, key: in.Key, name: in.Metadata[driver.WriteMetadata]})
		case *s3.CompleteMultipartUploadInput:
			ctx = middleware.WithStackValue(
				ctx, targetKey{}, target{bucket: in.Bucket, key: in.Key, upload: in.UploadId})
		}
		return next.HandleInitialize(ctx, in)
	}), middleware.Before)
	if err != nil {
		return err
	}
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("RepeatUnstored", r.repeat), retry, middleware.After)
}

func (r *repeater) repeat(
	ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
) (out middleware.FinalizeOutput, metadata middleware.Metadata, err error) {
	request, sent := in.Request.(*smithyhttp.Request)
	object, stores := middleware.GetStackValue(ctx, targetKey{}).(target)
	if !sent || !stores {
		return next.HandleFinalize(ctx, in)
	}
	for attempt := 1; ; attempt++ {
		out, metadata, err = next.HandleFinalize(ctx, middleware.FinalizeInput{Request: request.Clone()})
		p := r.profile(metadata)
		if err == nil && p.FalseSuccess {
			if err = r.confirm(ctx, object, out.Result, conditional(request)); errors.Is(err, errUnstored) &&
				!hadChecksum(metadata) {
				return out, metadata, err
			}
		}
		refused := p.EmptyDirectoryCode != "" && s3error.HasCode(err, p.EmptyDirectoryCode)
		switch {
		case refused && object.upload != nil && r.isGone(ctx, object):
			return out, metadata, fmt.Errorf("%w: %w", errPartsDeleted, err)
		case !refused && !errors.Is(err, errUnstored), object.upload != nil, attempt == maxAttempts,
			request.RewindStream() != nil:
			return out, metadata, err
		}
	}
}

// isGone reports whether the server has deleted the parts of an upload. If the upload is still there, the refusal to
// complete it was none for a moment, for example because a policy denies the request.
func (r *repeater) isGone(ctx context.Context, object target) bool {
	_, err := r.client().ListParts(ctx, &s3.ListPartsInput{
		Bucket: object.bucket, Key: object.key, UploadId: object.upload, MaxParts: aws.Int32(1),
	})
	return s3error.IsNoSuchUpload(err)
}

// hadChecksum reports whether the request that got a response had a checksum. If the server has stored the object, its
// response has the type of the checksum. Without the type the server has stored nothing, and no other client can have
// seen the object and deleted it.
func hadChecksum(metadata middleware.Metadata) bool {
	response, ok := awsmiddleware.GetRawResponse(metadata).(*smithyhttp.Response)
	if !ok || response.Request == nil {
		return false
	}
	for name := range response.Request.Header {
		if strings.HasPrefix(name, "X-Amz-Checksum-") || name == "X-Amz-Trailer" {
			return true
		}
	}
	return false
}

// profile is that of the server that sent an answer.
func (r *repeater) profile(metadata middleware.Metadata) driver.Profile {
	name := r.name
	if name == "" {
		name = profileOfAnswer(responseHeader(metadata))
	}
	p, _ := driver.ProfileNamed(name)
	return p
}

// conditional reports whether the server is to store the object only on a condition.
func conditional(r *smithyhttp.Request) bool {
	return r.Header.Get("If-Match")+r.Header.Get("If-None-Match") != ""
}

// confirm looks for the object where the answer has no type of its checksum. The error is errUnstored if the object
// is not there, or if it is another one and the request has a condition, which S3 then judges again. Without a
// condition the other object may have come right after this one, and stays.
func (r *repeater) confirm(ctx context.Context, object target, result any, conditional bool) error {
	var checksum types.ChecksumType
	var etag *string
	switch out := result.(type) {
	case *s3.PutObjectOutput:
		checksum, etag = out.ChecksumType, out.ETag
	case *s3.CopyObjectOutput:
		if out.CopyObjectResult != nil {
			checksum, etag = out.CopyObjectResult.ChecksumType, out.CopyObjectResult.ETag
		}
	case *s3.CompleteMultipartUploadOutput:
		checksum, etag = out.ChecksumType, out.ETag
	}
	if checksum != "" || etag == nil {
		return nil
	}
	there, err := r.client().HeadObject(ctx, &s3.HeadObjectInput{Bucket: object.bucket, Key: object.key})
	switch {
	case s3error.Status(err) == http.StatusNotFound:
		return errUnstored
	case err == nil && !object.is(there, *etag) && (conditional || object.upload != nil):
		return errUnstored
	}
	return err
}

// is tells whether an object that is there is the one that a request with an ETag in its answer has stored. Another
// client may have stored the same bytes, and then only the name of the request tells.
func (t target) is(there *s3.HeadObjectOutput, etag string) bool {
	return strings.Trim(aws.ToString(there.ETag), `"`) == strings.Trim(etag, `"`) &&
		(t.name == "" || there.Metadata[driver.WriteMetadata] == t.name)
}
