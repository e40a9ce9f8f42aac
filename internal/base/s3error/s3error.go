// Package s3error classifies errors of S3 and of the way to it: what the AWS SDK reports becomes an error of a kind
// that the standard library knows.
//
// [FromSDK] is the only place that knows S3's error codes; [New] makes an error of a kind for an answer that is no
// good. Package driver lists the kinds. [PathError] and [LinkError] wrap them for the caller.
package s3error

import (
	"errors"
	"slices"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Code is the error code of the answer, such as NoSuchKey. It is empty where err is nil, or where no answer came.
func Code(err error) string {
	if answer, ok := errors.AsType[smithy.APIError](err); ok {
		return answer.ErrorCode()
	}
	return ""
}

// HasCode tells whether the answer has one of these error codes.
func HasCode(err error, codes ...string) bool {
	code := Code(err)
	return code != "" && slices.Contains(codes, code)
}

// IsUnconditional tells whether a server has refused a request because it knows no If-Match or If-None-Match.
func IsUnconditional(err error) bool { return HasCode(err, "NotImplemented", "InvalidArgument") }

// IsConditionFailed tells whether the condition of a request (If-Match, If-None-Match) did not hold. So it is where
// the object of If-Match is gone, and where another request was about to change it.
func IsConditionFailed(err error) bool {
	return HasCode(err, "PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "NotFound")
}

// Status is the HTTP status of the answer, 0 if no answer came.
func Status(err error) int {
	if response, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return response.HTTPStatusCode()
	}
	return 0
}

// RequestID returns the ID that S3 gave the request. It is empty if no response came, or one without an ID.
func RequestID(err error) string {
	if response, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		return response.RequestID
	}
	return ""
}

// Operation is the name of the request, such as PutObject, for a text.
func Operation(err error) string {
	if operation, ok := errors.AsType[*smithy.OperationError](err); ok {
		return operation.Operation()
	}
	return "a request"
}
