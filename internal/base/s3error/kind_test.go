package s3error

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// refusal returns the SDK's error for an error response of S3.
func refusal(status int, code string) error {
	return &smithy.OperationError{ServiceID: "S3", OperationName: "PutObject", Err: &awshttp.ResponseError{
		ResponseError: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
			Err:      &smithy.GenericAPIError{Code: code, Message: "in words"},
		},
		RequestID: "request-7",
	}}
}

// unfinished returns the SDK's error for a response that it cannot parse.
func unfinished(status int, err error) error {
	return &smithy.OperationError{ServiceID: "S3", OperationName: "ListObjectsV2", Err: &awshttp.ResponseError{
		ResponseError: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err,
		},
	}}
}

// sendError returns the SDK's error for a request without a response. It contains an empty response.
func sendError(err error) error {
	return &smithy.OperationError{ServiceID: "S3", OperationName: "PutObject", Err: &awshttp.ResponseError{
		ResponseError: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{}}, Err: &smithyhttp.RequestSendError{Err: err},
		},
	}}
}

// identity returns the SDK's error for an error of the credentials provider.
func identity(err error) error {
	return &smithy.OperationError{ServiceID: "S3", OperationName: "PutObject",
		Err: fmt.Errorf("get identity: get credentials: %w", err)}
}

func TestKindOf(t *testing.T) {
	dial := func(errno syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errno)}
	}
	for _, test := range []struct {
		label string
		err   error
		kind  error
	}{
		{"no-such-key", refusal(404, "NoSuchKey"), fs.ErrNotExist},
		{"head-not-found", refusal(404, "NotFound"), fs.ErrNotExist},
		{"modeled-not-found", &smithy.OperationError{Err: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: 404}}, Err: &types.NotFound{},
		}}, fs.ErrNotExist},
		{"no-such-bucket", refusal(404, "NoSuchBucket"), syscall.ENXIO},
		{"no-such-upload", refusal(404, "NoSuchUpload"), syscall.EAGAIN},
		{"access-denied", refusal(403, "AccessDenied"), fs.ErrPermission},
		{"wrong-key", refusal(403, "InvalidAccessKeyId"), syscall.EAGAIN},
		{"versitygw-wrong-key", refusal(404, "XAdminUserNotFound"), syscall.EAGAIN},
		{"wrong-secret", refusal(403, "SignatureDoesNotMatch"), syscall.EAGAIN},
		{"minio-wrong-token", refusal(403, "InvalidTokenId"), syscall.EAGAIN},
		{"wrong-clock", refusal(403, "RequestTimeTooSkewed"), syscall.EAGAIN},
		{"unauthorized", refusal(401, "Unauthorized"), fs.ErrPermission},
		{"expired-token", refusal(400, "ExpiredToken"), syscall.EAGAIN},
		{"no-credentials", &v4.SigningError{Err: errors.New("no EC2 IMDS role found")}, syscall.EAGAIN},
		{"sts-refuses", identity(&smithy.OperationError{ServiceID: "STS", Err: refusal(403, "AccessDenied")}),
			syscall.EAGAIN},
		{"imds-has-no-role", identity(&smithy.OperationError{ServiceID: "ec2imds", Err: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: 404}},
			Err:      errors.New("request to EC2 IMDS failed"),
		}}), syscall.EAGAIN},
		{"no-token-file", identity(&fs.PathError{Op: "open", Path: "token", Err: syscall.ENOENT}), syscall.EAGAIN},
		{"directory-bucket-is-missing", identity(refusal(404, "NoSuchBucket")), syscall.ENXIO},
		{"agent-refuses", identity(&smithy.GenericAPIError{Code: "AccessDeniedException"}), syscall.EAGAIN},
		{"not-serialized", &smithy.OperationError{ServiceID: "S3",
			Err: &smithy.SerializationError{Err: errors.New("no key")}}, syscall.EIO},
		{"no-parameter", &smithy.OperationError{ServiceID: "S3",
			Err: smithy.InvalidParamsError{Context: "PutObjectInput"}}, syscall.EIO},
		{"archived", refusal(403, "InvalidObjectState"), Archived},
		{"key-too-long", refusal(400, "KeyTooLongError"), syscall.ENAMETOOLONG},
		{"invalid-uri", refusal(400, "InvalidURI"), syscall.EILSEQ},
		{"minio-object-name", refusal(400, "XMinioInvalidObjectName"), syscall.EILSEQ},
		{"minio-resource-name", refusal(400, "XMinioInvalidResourceName"), syscall.EILSEQ},
		{"below-a-file", refusal(409, "ObjectParentIsFile"), ErrParentIsFile},
		{"on-a-directory", refusal(409, "ExistingObjectIsDirectory"), ErrIsDirectory},
		{"minio-below-a-file", refusal(400, "XMinioParentIsObject"), ErrParentIsFile},
		{"minio-on-a-directory", refusal(409, "XMinioObjectExistsAsDirectory"), ErrIsDirectory},
		{"directory-not-empty", refusal(409, "ErrDirectoryNotEmpty"), syscall.ENOTEMPTY},
		{"entity-too-large", refusal(400, "EntityTooLarge"), syscall.EFBIG},
		{"quota", refusal(403, "QuotaExceeded"), syscall.EDQUOT},
		{"minio-quota", refusal(400, "XMinioAdminBucketQuotaExceeded"), syscall.EDQUOT},
		{"full-in-other-words", refusal(507, "Whatever"), syscall.ENOSPC},
		{"changed", refusal(412, "PreconditionFailed"), syscall.ESTALE},
		{"changed-at-the-same-time", refusal(409, "ConditionalRequestConflict"), syscall.EAGAIN},
		{"conflict", refusal(409, "OperationAborted"), syscall.EAGAIN},
		{"conflict-on-swift", refusal(409, "BrokenMPU"), syscall.EAGAIN},
		{"range", refusal(416, "InvalidRange"), fs.ErrInvalid},
		{"range-as-errno", refusal(416, "InvalidRange"), syscall.EINVAL},
		{"not-implemented", refusal(501, "NotImplemented"), errors.ErrUnsupported},
		{"method-not-allowed", refusal(405, "MethodNotAllowed"), errors.ErrUnsupported},
		{"slow-down", refusal(503, "SlowDown"), syscall.EAGAIN},
		{"unavailable", refusal(503, "ServiceUnavailable"), syscall.EAGAIN},
		{"internal-error", refusal(500, "InternalError"), syscall.EAGAIN},
		{"bad-gateway", refusal(502, "BadGateway"), syscall.EAGAIN},
		{"gateway-timeout", refusal(504, "GatewayTimeout"), syscall.EAGAIN},
		{"too-many-requests", refusal(429, "TooManyRequests"), syscall.EAGAIN},
		{"request-timeout", refusal(400, "RequestTimeout"), syscall.EAGAIN},
		{"corrupted-in-transit", refusal(400, "BadDigest"), syscall.EAGAIN},
		{"truncated-in-transit", refusal(400, "IncompleteBody"), syscall.EAGAIN},
		{"refused", sendError(dial(syscall.ECONNREFUSED)), syscall.EAGAIN},
		{"no-socket", sendError(dial(syscall.ENOENT)), syscall.EAGAIN},
		{"timeout", fmt.Errorf("wrapped: %w", context.DeadlineExceeded), syscall.EAGAIN},
		{"body-cut", io.ErrUnexpectedEOF, syscall.EAGAIN},
		{"response-reset", unfinished(200, &net.OpError{Op: "read", Err: syscall.ECONNRESET}), syscall.EAGAIN},
		{"response-cut", unfinished(200, &smithy.DeserializationError{Err: &xml.SyntaxError{Msg: "unexpected EOF"}}),
			syscall.EAGAIN},
		{"not-from-s3", unfinished(200, &xml.SyntaxError{Msg: "element <br> closed by </body>"}), syscall.EAGAIN},
		{"refusal-cut", unfinished(404, &smithy.DeserializationError{Err: io.ErrUnexpectedEOF}), syscall.EAGAIN},
		{"canceled-during-response", unfinished(200, &smithy.DeserializationError{Err: context.Canceled}),
			context.Canceled},
		{"canceled", &smithy.CanceledError{Err: context.Canceled}, context.Canceled},
		{"canceled-in-transit", sendError(context.Canceled), context.Canceled},
		{"invalid-request", refusal(400, "InvalidRequest"), syscall.EIO},
		{"anything-else", errors.New("anything else"), syscall.EIO},
	} {
		t.Run(test.label, func(t *testing.T) {
			err := PathError("test", "name", FromSDK(test.err))
			if !errors.Is(err, test.kind) {
				t.Errorf("%v is not %v", err, test.kind)
			}
			for _, kind := range []error{fs.ErrNotExist, fs.ErrPermission, syscall.EAGAIN, syscall.EIO,
				context.Canceled} {
				if !errors.Is(test.kind, kind) && errors.Is(err, kind) {
					t.Errorf("%v also matches %v", err, kind)
				}
			}
		})
	}
	if FromSDK(nil) != nil || PathError("test", "name", nil) != nil || LinkError("test", "old", "new", nil) != nil {
		t.Error("got an error for nil")
	}
}

// TestErrorDetails checks that errors.As still finds the details of an error, but no errno of the cause.
func TestErrorDetails(t *testing.T) {
	err := PathError("open", "name", FromSDK(refusal(403, "AccessDenied")))
	var pathErr *fs.PathError
	if !errors.As(err, &pathErr) || pathErr.Op != "open" || pathErr.Path != "name" {
		t.Errorf("%#v is not an *fs.PathError", err)
	}
	var response *awshttp.ResponseError
	if !errors.As(err, &response) || response.RequestID != "request-7" {
		t.Errorf("%#v does not contain the request ID", err)
	}
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != "AccessDenied" {
		t.Errorf("%#v does not contain the error code", err)
	}
	for _, part := range []string{"open name", "permission denied", "AccessDenied", "request-7", "in words"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not contain %q", err, part)
		}
	}
	var errno syscall.Errno
	if err := FromSDK(sendError(os.NewSyscallError("connect", syscall.ENOENT))); !errors.As(err, &errno) ||
		errno != syscall.EAGAIN {
		t.Errorf("errno of %v: got %v, want EAGAIN", err, errno)
	}
}

// denied is an error of a middleware that knows the IAM action of a denied request.
type denied struct{ error }

func (denied) Needed() string  { return "s3:PutObject" }
func (d denied) Unwrap() error { return d.error }

// TestErrorText checks that the text of an error is one short line without the names of the SDK's layers.
func TestErrorText(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, test := range []struct {
		err  error
		want string
	}{
		{refusal(404, "NoSuchKey"), "file does not exist"},
		{refusal(403, "AccessDenied"),
			"permission denied: PutObject: AccessDenied: in words (HTTP 403, request request-7)"},
		{sendError(dial), "resource temporarily unavailable: PutObject: dial tcp: connect: connection refused"},
		{unfinished(502, errors.New("no XML")), "resource temporarily unavailable: ListObjectsV2: no XML (HTTP 502)"},
		{&smithy.OperationError{OperationName: "PutObject", Err: errors.New("no region")},
			"resource temporarily unavailable: PutObject: no region"},
		{
			identity(
				&smithy.OperationError{ServiceID: "STS", OperationName: "AssumeRole",
					Err: errors.Unwrap(refusal(403, "AccessDenied"))}),
			"resource temporarily unavailable: PutObject: AssumeRole: AccessDenied: in words (HTTP 403, request " +
				"request-7)",
		},
		{
			identity(&fs.PathError{Op: "open", Path: "token", Err: syscall.ENOENT}),
			"resource temporarily unavailable: PutObject: get identity: get credentials: open token: no such file " +
				"or directory",
		},
		{
			&smithy.OperationError{OperationName: "PutObject",
				Err: denied{errors.Unwrap(refusal(403, "AccessDenied"))}},
			"permission denied: PutObject: the IAM policy must allow s3:PutObject: AccessDenied: in words (HTTP " +
				"403, request request-7)",
		},
		{io.ErrUnexpectedEOF, "resource temporarily unavailable: unexpected EOF"},
	} {
		if got := FromSDK(test.err).Error(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// TestNoSuchUpload checks that NoSuchKey means a missing upload only for the operations for which Ceph and Swift return
// it. For other operations the object is missing.
func TestNoSuchUpload(t *testing.T) {
	for operation, want := range map[string]bool{
		"ListParts": true, "AbortMultipartUpload": true, "CompleteMultipartUpload": false, "UploadPartCopy": false,
		"GetObject": false,
	} {
		err := FromSDK(&smithy.OperationError{
			ServiceID: "S3", OperationName: operation,
			Err: &smithy.GenericAPIError{Code: "NoSuchKey", Message: "no such key"},
		})
		if got := IsNoSuchUpload(err); got != want {
			t.Errorf("%s: got %t; want %t", operation, got, want)
		}
	}
}
