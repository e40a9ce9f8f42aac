// Package s3error classifies the errors of requests to S3. An error of the AWS SDK becomes an [Error] whose kind is an
// error value of the standard library, so callers use errors.Is:
//
//	_, err := client.PutObject(ctx, input)
//	if errors.Is(s3error.FromSDK(err), fs.ErrPermission) {
//		...
//	}
//
// [FromSDK] maps S3 error codes, HTTP statuses and network errors to kinds; package driver lists the kinds. [New]
// creates errors for responses that are unusable although the SDK reports no error. [DetectForeign] recognizes
// responses that come from a proxy and not from S3. [PathError] and [LinkError] add the operation and the name for the
// caller.
//
// [Repeatable], [Throttled] and [NotPerformed] tell the retry logic of the driver what S3 has done with a failed
// request.
package s3error

import (
	"errors"
	"slices"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Code returns the error code of the response, such as NoSuchKey. It is empty if err is nil or without a response.
func Code(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

// HasCode reports whether the response has one of these error codes.
func HasCode(err error, codes ...string) bool {
	code := Code(err)
	return code != "" && slices.Contains(codes, code)
}

// IsUnconditional reports whether a server has rejected a request because it does not support If-Match or
// If-None-Match.
func IsUnconditional(err error) bool { return HasCode(err, "NotImplemented", "InvalidArgument") }

// IsConditionFailed reports whether the condition of a request (If-Match, If-None-Match) did not hold. It returns true
// also if the object for If-Match does not exist, and if the request conflicted with another one.
func IsConditionFailed(err error) bool {
	return HasCode(err, "PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "NotFound")
}

// Status returns the HTTP status of the response, or 0 without a response.
func Status(err error) int {
	if response, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return response.HTTPStatusCode()
	}
	return 0
}

// RequestID returns the request ID in the response, if any.
func RequestID(err error) string {
	if response, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		return response.RequestID
	}
	return ""
}

// Operation returns the name of the operation, such as PutObject, or "a request" if it is unknown. It is for messages.
func Operation(err error) string {
	if operation, ok := errors.AsType[*smithy.OperationError](err); ok {
		return operation.Operation()
	}
	return "a request"
}
