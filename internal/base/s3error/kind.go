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

// ErrInvalid matches both fs.ErrInvalid and EINVAL, neither of which matches the other.
var ErrInvalid = fmt.Errorf("%w (%w)", fs.ErrInvalid, syscall.EINVAL)

// ErrIntoItself is returned if a directory would become a part of itself. It matches ErrInvalid and ELOOP.
var ErrIntoItself = fmt.Errorf("%w: a directory into itself (%w)", ErrInvalid, syscall.ELOOP)

// ErrParentIsFile and ErrIsDirectory are returned by S3 servers on top of a file system, which cannot store a file and
// a directory with the same name. They match EILSEQ, because no object can have this name, and ENOTDIR or EISDIR.
var (
	ErrParentIsFile = fmt.Errorf("%w: a parent directory is a file (%w)", syscall.EILSEQ, syscall.ENOTDIR)
	ErrIsDirectory  = fmt.Errorf("%w: the name belongs to a directory (%w)", syscall.EILSEQ, syscall.EISDIR)
)

// ErrHashMismatch is returned for an upload whose bytes do not have the hash that the client has promised.
var ErrHashMismatch = errors.New("the file does not have the promised SHA-256")

// A ReservedError is returned for a pathname with a segment that is reserved for the server. It matches EILSEQ, because
// no file can have this name.
type ReservedError struct{ Segment string }

// Error returns the text for the log.
func (e *ReservedError) Error() string {
	return "invalid name: " + e.Segment + " is reserved for the server"
}

// Unwrap returns EILSEQ.
func (*ReservedError) Unwrap() error { return syscall.EILSEQ }

// An Error is an error of a request to S3 together with its kind, an error value of the standard library.
//
// errors.Is matches only the kind, because the cause may contain misleading values, such as the ENOENT of a missing
// Unix socket. errors.As also searches the cause, so that a log can show the S3 error code and the request ID.
type Error struct{ Kind, Cause error }

// Error returns the kind and the cause in one line. The cause is omitted if the file does not exist.
func (e *Error) Error() string {
	if errors.Is(e.Kind, fs.ErrNotExist) {
		return e.Kind.Error()
	}
	return e.Kind.Error() + ": " + brief(e.Cause)
}

// brief formats an error of the SDK without the names of its layers. If S3 has responded, the text contains the
// operation, the error code and message, the HTTP status, the request ID and, for a denied request, the IAM actions
// that it needs. Otherwise it contains the network error or the reason why there are no credentials.
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
	response, responded := errors.AsType[*awshttp.ResponseError](err)
	switch send, failed := errors.AsType[*smithyhttp.RequestSendError](err); {
	case refused && responded && response.HTTPStatusCode() != 0:
		return fmt.Sprintf("%s%s: %s (%s)", text, api.ErrorCode(), api.ErrorMessage(), describe(response))
	case failed:
		return text + send.Err.Error()
	case responded && response.HTTPStatusCode() != 0:
		return fmt.Sprintf("%s%v (%s)", text, response.Err, describe(response))
	}
	return text + operation.Err.Error()
}

// describe returns the HTTP status of a response and its request ID, if any.
func describe(r *awshttp.ResponseError) string {
	if r.RequestID == "" {
		return fmt.Sprintf("HTTP %d", r.HTTPStatusCode())
	}
	return fmt.Sprintf("HTTP %d, request %s", r.HTTPStatusCode(), r.RequestID)
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// As implements the interface used by errors.As. It searches the kind and the cause.
func (e *Error) As(p any) bool { return errors.As(e.Kind, p) || errors.As(e.Cause, p) }

// New returns an error of the given kind for a problem that S3 itself did not report as an error.
func New(kind error, text string) error { return &Error{Kind: kind, Cause: errors.New(text)} }

// FromSDK wraps an error of the SDK into an [Error] with its kind. It returns nil and errors that already have a kind
// unchanged.
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
		return syscall.EAGAIN // for example, there are no credentials at the moment
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

// unsent reports whether a request was not sent, usually because there were no credentials to sign it. A response in
// such an error comes from STS or from the metadata service of the machine, so its 403 or 404 says nothing about the
// object.
func unsent(err error) bool {
	if _, ok := errors.AsType[*v4.SigningError](err); ok {
		return true
	}
	operation, ok := errors.AsType[*smithy.OperationError](err)
	if !ok {
		return false
	}
	if inner, ok := errors.AsType[*smithy.OperationError](operation.Err); ok {
		return inner.Service() != operation.Service() // S3 directory buckets issue credentials themselves
	}
	_, sent := errors.AsType[*smithyhttp.ResponseError](operation.Err)
	_, serialization := errors.AsType[*smithy.SerializationError](operation.Err)
	_, parameters := errors.AsType[smithy.InvalidParamsError](operation.Err)
	return !sent && !serialization && !parameters
}

// HasNoReason reports whether S3 has rejected a HEAD request with a status that is ambiguous without an error code. A
// response to a HEAD request has no body and therefore no code.
func HasNoReason(err error) bool {
	return Status(err) == http.StatusForbidden || IsBadRequest(err)
}

// IsBadRequest reports whether the HTTP status of the response is 400.
func IsBadRequest(err error) bool { return Status(err) == http.StatusBadRequest }

// kindOfCode maps error codes that are more specific than their HTTP status to kinds, and returns nil for all others.
// See https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html. Codes that begin with XMinio come from
// MinIO, and some others from versitygw.
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
	case "InvalidObjectState": // archived in a storage class such as Glacier and not restored
		return Archived
	case "ExpiredToken", "InvalidToken", "InvalidTokenId", "TokenRefreshRequired", "InvalidAccessKeyId",
		"XAdminUserNotFound", "SignatureDoesNotMatch",
		"RequestTimeTooSkewed":
		// The credentials of this server or its clock are wrong. That says nothing about the object, and requests
		// succeed again once an operator has fixed it.
		return syscall.EAGAIN
	case "NoSuchUpload", "OperationAborted", "ConditionalRequestConflict", "RequestTimeout", "BadDigest",
		"IncompleteBody", "XAmzContentSHA256Mismatch",
		"XAmzContentChecksumMismatch", brokenMPU:
		// The upload was aborted, the request conflicted with another one, or bytes were corrupted in transit. The
		// client can repeat the command.
		return syscall.EAGAIN
	}
	return nil
}

// brokenMPU is the error code of OpenStack Swift for every conflict with another request, even without a multipart
// upload: a later write was performed first, or an object consisting of parts was replaced while it was read.
const brokenMPU = "BrokenMPU"

// IsNoSuchUpload reports whether a multipart upload is unknown to S3, because it was completed or aborted. Ceph returns
// NoSuchKey instead for ListParts, and Swift for AbortMultipartUpload.
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

// unreachable reports whether an error comes from the network and not from S3.
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

// Unreadable reports whether a response is not a complete response of S3, because it ends early or does not come from
// S3. The status of such a response does not count, because S3 may send 200 before it has performed the request.
func Unreadable(err error) bool {
	if _, ok := errors.AsType[*smithy.DeserializationError](err); ok || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	_, ok := errors.AsType[*xml.SyntaxError](err)
	return ok
}

// ErrNoResult is returned for a response without the required body, which the SDK accepts.
var ErrNoResult = fmt.Errorf("S3 response has no result: %w", io.ErrUnexpectedEOF)

// ErrNoETag is returned for a response to a write without an ETag.
var ErrNoETag = fmt.Errorf("S3 response has no ETag, which a proxy may have removed: %w", io.ErrUnexpectedEOF)

// ErrOvertaken is returned if Swift responds with 200 but without an ETag. It has then not performed the request,
// because it had already performed another request to the same key that is later by the clocks of its machines.
var ErrOvertaken = New(syscall.EAGAIN, "S3 has performed a later request to the same key first")

// PathError wraps err into an fs.PathError. It returns nil if err is nil.
func PathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// LinkError wraps err into an os.LinkError. It returns nil if err is nil.
func LinkError(op, oldname, newname string, err error) error {
	if err == nil {
		return nil
	}
	return &os.LinkError{Op: op, Old: oldname, New: newname, Err: err}
}

// Truncated wraps the error that ended the body of a response too early. Unless the request was canceled, the kind is
// EAGAIN, because the next attempt may succeed.
func Truncated(err error) error {
	if errors.Is(FromSDK(err), context.Canceled) {
		return FromSDK(err)
	}
	return &Error{Kind: syscall.EAGAIN, Cause: err}
}
