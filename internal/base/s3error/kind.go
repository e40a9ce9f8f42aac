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
	"syscall"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/internal/base/contract"
)

// ErrInvalid is an fs.ErrInvalid that is the errno of it as well: by itself neither matches the other.
var ErrInvalid = fmt.Errorf("%w (%w)", fs.ErrInvalid, syscall.EINVAL)

// ErrIntoItself is ErrInvalid, and ELOOP: a directory would become a part of itself.
var ErrIntoItself = fmt.Errorf("%w: a directory into itself (%w)", ErrInvalid, syscall.ELOOP)

// ErrParentIsFile and ErrIsDirectory report a file where a directory is, or the reverse: S3 allows it, a file system
// underneath does not. They are EILSEQ, because no object can have the name, and ENOTDIR or EISDIR.
var (
	ErrParentIsFile = fmt.Errorf("%w: a part of the name is a file (%w)", syscall.EILSEQ, syscall.ENOTDIR)
	ErrIsDirectory  = fmt.Errorf("%w: the name is that of a directory (%w)", syscall.EILSEQ, syscall.EISDIR)
)

// An Error is an error of S3, or on the way to it, and the kind it counts as.
//
// errors.Is sees the kind alone: the cause may hold values that would mislead, such as the ENOENT of a Unix socket
// without a server. errors.As reaches the cause as well, so that a log can show its S3 code and request ID.
type Error struct{ Kind, Cause error }

// Error is one line. That nothing is there says all; other errors tell S3's answer, or what has failed on the way.
func (e *Error) Error() string {
	if errors.Is(e.Kind, fs.ErrNotExist) {
		return e.Kind.Error()
	}
	return e.Kind.Error() + ": " + brief(e.Cause)
}

// brief is an error of the SDK without the names of its layers. It has the operation, the code and the message of S3,
// the HTTP status and the request's ID. Without an answer it is what has failed on the way, or why there are no
// credentials. What a middleware says of the needs of a request that was denied stays.
func brief(err error) string {
	operation, ok := errors.AsType[*smithy.OperationError](err)
	if !ok {
		return err.Error()
	}
	text := operation.OperationName + ": "
	if unsent(err) {
		return text + brief(operation.Err)
	}
	if denied, ok := errors.AsType[contract.DeniedError](err); ok {
		text += "the IAM policy must allow " + denied.Needed() + ": "
	}
	if foreign, ok := errors.AsType[*ForeignError](err); ok {
		return text + foreign.Error()
	}
	api, refused := errors.AsType[smithy.APIError](err)
	response, answered := errors.AsType[*awshttp.ResponseError](err)
	switch send, failed := errors.AsType[*smithyhttp.RequestSendError](err); {
	case refused && answered && response.HTTPStatusCode() != 0:
		return fmt.Sprintf("%s%s: %s (%s)", text, api.ErrorCode(), api.ErrorMessage(), answerOf(response))
	case failed:
		return text + send.Err.Error()
	case answered && response.HTTPStatusCode() != 0:
		return fmt.Sprintf("%s%v (%s)", text, response.Err, answerOf(response))
	}
	return text + operation.Err.Error()
}

// answerOf is the status of an answer, and the request's ID if it has one.
func answerOf(r *awshttp.ResponseError) string {
	if r.RequestID == "" {
		return fmt.Sprintf("HTTP %d", r.HTTPStatusCode())
	}
	return fmt.Sprintf("HTTP %d, request %s", r.HTTPStatusCode(), r.RequestID)
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// As finds a type in the kind or in the cause.
func (e *Error) As(p any) bool { return errors.As(e.Kind, p) || errors.As(e.Cause, p) }

// New is an error of a kind about an answer that is none of S3's errors and yet no good.
func New(kind error, text string) error { return &Error{Kind: kind, Cause: errors.New(text)} }

// FromSDK gives an error of the SDK its kind. It is the only function that knows S3's error codes. An error that has
// a kind stays as it is.
func FromSDK(err error) error {
	if _, known := errors.AsType[*Error](err); err == nil || known {
		return err
	}
	return &Error{Kind: kindOf(err), Cause: err}
}

func kindOf(err error) error {
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	if errors.Is(err, syscall.EAGAIN) || unsent(err) {
		return syscall.EAGAIN // the provider of credentials has none at the moment
	}
	if foreign, ok := errors.AsType[*ForeignError](err); ok {
		return foreign.kind()
	}
	if kind := kindOfCode(Code(err)); kind != nil {
		return kind
	}
	if unreachable(err) || Unreadable(err) {
		return syscall.EAGAIN
	}
	return kindOfStatus(Status(err))
}

// unsent tells whether a request was not sent, mostly because there were no credentials to sign it. An answer in the
// error is then one of STS or of the metadata of the machine. Its 403 or 404 says nothing of the object.
func unsent(err error) bool {
	if _, ok := errors.AsType[*v4.SigningError](err); ok {
		return true
	}
	operation, ok := errors.AsType[*smithy.OperationError](err)
	if !ok {
		return false
	}
	if inner, ok := errors.AsType[*smithy.OperationError](operation.Err); ok {
		return inner.Service() != operation.Service() // an S3 directory bucket gives credentials itself
	}
	_, sent := errors.AsType[*smithyhttp.ResponseError](operation.Err)
	_, serialization := errors.AsType[*smithy.SerializationError](operation.Err)
	_, parameters := errors.AsType[smithy.InvalidParamsError](operation.Err)
	return !sent && !serialization && !parameters
}

// HasNoReason tells whether S3 has refused a request and may not have said why: the answer to HeadObject has no body.
func HasNoReason(err error) bool {
	return Status(err) == http.StatusForbidden || IsBadRequest(err)
}

// IsBadRequest tells whether S3 has answered 400.
func IsBadRequest(err error) bool { return Status(err) == http.StatusBadRequest }

// kindOfCode maps the error codes that say more than the HTTP status they come with, and returns nil for others. The
// codes are those of https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html, of MinIO (XMinio...) and of
// versitygw.
func kindOfCode(code string) error {
	switch code {
	case "NoSuchBucket":
		return syscall.ENXIO
	case "KeyTooLongError", "KeyTooLong":
		return syscall.ENAMETOOLONG
	case "InvalidURI", "XMinioInvalidObjectName", "XMinioInvalidResourceName":
		return syscall.EILSEQ
	case "ObjectParentIsFile", "XMinioParentIsObject":
		return ErrParentIsFile
	case "ExistingObjectIsDirectory", "XMinioObjectExistsAsDirectory":
		return ErrIsDirectory
	case "ErrDirectoryNotEmpty":
		return syscall.ENOTEMPTY
	case "EntityTooLarge":
		return syscall.EFBIG
	case "QuotaExceeded", "XMinioAdminBucketQuotaExceeded":
		return syscall.EDQUOT
	case "InsufficientStorage", "XMinioStorageFull":
		return syscall.ENOSPC
	case "InvalidObjectState": // of a storage class such as Glacier, and not restored
		return Archived
	case "ExpiredToken", "InvalidToken", "InvalidTokenId", "TokenRefreshRequired", "InvalidAccessKeyId",
		"XAdminUserNotFound", "SignatureDoesNotMatch",
		"RequestTimeTooSkewed":
		// The credentials of the server, or its clock: these say nothing of the object, and pass when someone mends
		// them.
		return syscall.EAGAIN
	case "NoSuchUpload", "OperationAborted", "ConditionalRequestConflict", "RequestTimeout", "BadDigest",
		"IncompleteBody", "XAmzContentSHA256Mismatch",
		"XAmzContentChecksumMismatch", brokenMPU:
		// An upload that someone aborted, a conflict with another request, or bytes hurt on the way: all pass when
		// done again.
		return syscall.EAGAIN
	}
	return nil
}

// brokenMPU is Swift's code for every conflict with another request, whether there is a multipart upload or not. A
// write that came later was performed first, or an object that was stored by parts was replaced while its parts were
// read.
const brokenMPU = "BrokenMPU"

// IsNoSuchUpload tells whether S3 does not know of a multipart upload, because it was completed or aborted. Where a
// request can miss nothing else, Ceph (ListParts) and Swift (AbortMultipartUpload) say NoSuchKey.
func IsNoSuchUpload(err error) bool {
	switch Code(err) {
	case "NoSuchUpload":
		return true
	case "NoSuchKey":
		return Operation(err) == "ListParts" || Operation(err) == "AbortMultipartUpload"
	}
	return false
}

func kindOfStatus(status int) error {
	switch status {
	case http.StatusNotFound:
		return fs.ErrNotExist
	case http.StatusUnauthorized, http.StatusForbidden:
		return fs.ErrPermission
	case http.StatusPreconditionFailed:
		return syscall.ESTALE
	case http.StatusRequestedRangeNotSatisfiable:
		return ErrInvalid
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return errors.ErrUnsupported
	case http.StatusInsufficientStorage:
		return syscall.ENOSPC
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return syscall.EAGAIN
	}
	return syscall.EIO
}

// unreachable tells whether an error came from the network rather than from S3.
func unreachable(err error) bool {
	if errors.Is(err, io.EOF) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	if _, ok := errors.AsType[*smithyhttp.RequestSendError](err); ok {
		return true
	}
	_, ok := errors.AsType[net.Error](err)
	return ok
}

// Unreadable reports whether an answer is not a complete one of S3: it ends early, or something else answered. Its
// status does not count then, because S3 sends 200 before it is done.
func Unreadable(err error) bool {
	if _, ok := errors.AsType[*smithy.DeserializationError](err); ok || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	_, ok := errors.AsType[*xml.SyntaxError](err)
	return ok
}

// ErrNoResult is a response without the body that it must have. The SDK accepts such a response.
var ErrNoResult = fmt.Errorf("the S3 response has no result: %w", io.ErrUnexpectedEOF)

// ErrNoETag is a response to a write that has no ETag.
var ErrNoETag = fmt.Errorf(
	"the S3 response has no ETag, which a proxy may have removed: %w", io.ErrUnexpectedEOF)

// ErrOvertaken is Swift's answer 200 without an ETag. Another request to the same key came later and was performed
// first, so S3 has not performed this one. By the clocks of several machines it may have come earlier.
var ErrOvertaken = New(syscall.EAGAIN, "S3 has performed a later request to the same key first")

// PathError says what was attempted on which name. The err is of a kind already, or comes from outside.
func PathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// LinkError is PathError for two names.
func LinkError(op, oldname, newname string, err error) error {
	if err == nil {
		return nil
	}
	return &os.LinkError{Op: op, Old: oldname, New: newname, Err: err}
}

// Truncated is the error of bytes that end too early. Whatever ended them, they may come whole the next time.
func Truncated(err error) error {
	if errors.Is(FromSDK(err), context.Canceled) {
		return FromSDK(err)
	}
	return &Error{Kind: syscall.EAGAIN, Cause: err}
}
