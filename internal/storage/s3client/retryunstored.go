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

// maxAttempts limits how often a client sends a request that the server does not perform. If three clients constantly
// store and delete files in one directory, versitygw refuses one request in twenty.
const maxAttempts = 8

// OperationAborted is the S3 error code for a conflict with another request.
var (
	errNotStored = &smithy.GenericAPIError{
		Code: "OperationAborted", Message: "the server responded 200 and did not store the object",
		Fault: smithy.FaultServer,
	}

	// errPartsDeleted reports that the server refused to complete an upload because its directory became empty.
	errPartsDeleted = &smithy.GenericAPIError{
		Code: "OperationAborted", Message: "the server refused to complete the upload and has deleted its parts",
		Fault: smithy.FaultServer,
	}
)

// RetryUnstored makes a client retry a request at once if the server did not store the object. Either the server
// refused although the next attempt will succeed ([driver.Profile.EmptyDirectoryCode]), or it responded with 200
// without storing anything ([driver.Profile.FalseSuccess]). After maxAttempts the error is OperationAborted.
//
// A request that completes an upload is not retried. Its error is OperationAborted if the parts are gone, and the
// refusal if they still exist. If a copy does not exist, the error is OperationAborted too, because another client may
// have deleted it.
//
// The server has the profile with this name. If name is empty, the headers of each response identify the profile.
func RetryUnstored(name string) func(*s3.Options) {
	return func(o *s3.Options) {
		r := repeater{name: name, client: sync.OnceValue(func() *s3.Client { return variant(o.Copy()) })}
		o.APIOptions = append(o.APIOptions, r.add)
	}
}

type repeater struct {
	name   string            // profile; empty to identify it by each response
	client func() *s3.Client // for requests that check objects
}

// A target is the object that a request stores.
type target struct {
	bucket, key *string
	name        string  // write ID in the metadata of the object; empty for CompleteMultipartUpload
	upload      *string // ID of the upload to complete; nil for other requests
}

type targetKey struct{}

func (r *repeater) add(stack *middleware.Stack) error {
	const retry = "Retry" // presigning has no such step, because it sends no request
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
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("RetryUnstored", r.repeat), retry, middleware.After)
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
			if err = r.confirm(ctx, object, out.Result, conditional(request)); errors.Is(err, errNotStored) &&
				!hadChecksum(metadata) {
				return out, metadata, err
			}
		}
		refused := p.EmptyDirectoryCode != "" && s3error.HasCode(err, p.EmptyDirectoryCode)
		switch {
		case refused && object.upload != nil && r.isGone(ctx, object):
			return out, metadata, fmt.Errorf("%w: %w", errPartsDeleted, err)
		case !refused && !errors.Is(err, errNotStored), object.upload != nil, attempt == maxAttempts,
			request.RewindStream() != nil:
			return out, metadata, err
		}
	}
}

// isGone reports whether the server deleted the parts of an upload. If they still exist, the refusal is permanent, for
// example because a policy denies the request.
func (r *repeater) isGone(ctx context.Context, object target) bool {
	_, err := r.client().ListParts(ctx, &s3.ListPartsInput{
		Bucket: object.bucket, Key: object.key, UploadId: object.upload, MaxParts: aws.Int32(1),
	})
	return s3error.IsNoSuchUpload(err)
}

// hadChecksum reports whether the request had a checksum. If the server stored the object, its response contains the
// checksum type. If the type is missing, the server stored nothing, and no other client can have seen and deleted the
// object.
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

// profile returns the profile of the server that sent a response.
func (r *repeater) profile(metadata middleware.Metadata) driver.Profile {
	name := r.name
	if name == "" {
		name = profileOfResponse(responseHeader(metadata))
	}
	p, _ := driver.ProfileNamed(name)
	return p
}

// conditional reports whether the request has a condition.
func conditional(r *smithyhttp.Request) bool {
	return r.Header.Get("If-Match")+r.Header.Get("If-None-Match") != ""
}

// confirm checks that the object exists if the response does not contain its checksum type. It returns errNotStored if
// the object does not exist, or if it is a different one and the request has a condition, which S3 checks again when
// the request is repeated. Without a condition, the other object may have overwritten this one and stays.
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
		return errNotStored
	case err == nil && !object.matches(there, *etag) && (conditional || object.upload != nil):
		return errNotStored
	}
	return err
}

// matches reports whether an object was stored by the request whose response has this ETag. Another client may have
// stored the same bytes, so matches also compares the write ID.
func (t target) matches(there *s3.HeadObjectOutput, etag string) bool {
	return strings.Trim(aws.ToString(there.ETag), `"`) == strings.Trim(etag, `"`) &&
		(t.name == "" || there.Metadata[driver.WriteMetadata] == t.name)
}
