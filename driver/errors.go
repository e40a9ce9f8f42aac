package driver

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
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// errInvalid is an fs.ErrInvalid that is the errno of it as well: by itself neither matches the other.
var errInvalid = fmt.Errorf("%w (%w)", fs.ErrInvalid, syscall.EINVAL)

// An s3Error is an error of S3, or on the way to it, and the kind it counts as.
//
// errors.Is sees the kind alone: the cause may hold values that would mislead, such as the ENOENT of a Unix socket that nobody
// serves. errors.As reaches the cause as well, so that a log can show its S3 code and request ID.
type s3Error struct{ kind, cause error }

func (e *s3Error) Error() string { return e.kind.Error() + ": " + e.cause.Error() }
func (e *s3Error) Unwrap() error { return e.kind }
func (e *s3Error) As(p any) bool { return errors.As(e.kind, p) || errors.As(e.cause, p) }

// fault is an s3Error about an answer that is none of S3's errors and yet no good.
func fault(kind error, text string) error { return &s3Error{kind: kind, cause: errors.New(text)} }

// fromS3 gives an error of the SDK its kind. It is the only function that knows S3's error codes.
func fromS3(err error) error {
	if err == nil {
		return nil
	}
	return &s3Error{kind: kindOf(err), cause: err}
}

func kindOf(err error) error {
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		if kind := kindOfCode(api.ErrorCode()); kind != nil {
			return kind
		}
	}
	if _, ok := errors.AsType[*v4.SigningError](err); ok {
		return fs.ErrPermission // there are no credentials to sign with
	}
	if unreachable(err) || unreadable(err) {
		return syscall.EAGAIN
	}
	if response, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && response.HTTPStatusCode() != 0 { // 0 where no answer came
		return kindOfStatus(response.HTTPStatusCode())
	}
	return syscall.EIO
}

// kindOfCode maps the error codes that say more than the HTTP status they come with, and returns nil for others. The codes are
// those of https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html, of MinIO (XMinio...) and of versitygw.
func kindOfCode(code string) error {
	switch code {
	case "NoSuchBucket":
		return syscall.ENXIO
	case "KeyTooLongError", "KeyTooLong":
		return syscall.ENAMETOOLONG
	case "InvalidURI", "XMinioInvalidObjectName", "XMinioInvalidResourceName",
		"ObjectParentIsFile", "ExistingObjectIsDirectory", "XMinioParentIsObject", "XMinioObjectExistsAsDirectory":
		// The last four are a file where a directory is, or the reverse: S3 allows it, a file system underneath does not.
		return syscall.EILSEQ
	case "ErrDirectoryNotEmpty":
		return syscall.ENOTEMPTY
	case "EntityTooLarge":
		return syscall.EFBIG
	case "QuotaExceeded", "XMinioAdminBucketQuotaExceeded":
		return syscall.EDQUOT
	case "InsufficientStorage", "XMinioStorageFull":
		return syscall.ENOSPC
	case "InvalidObjectState": // of a storage class such as Glacier, and not restored
		return syscall.ENODATA
	case "ExpiredToken", "InvalidToken", "TokenRefreshRequired":
		return fs.ErrPermission
	case "NoSuchUpload", "OperationAborted", "RequestTimeout", "BadDigest", "IncompleteBody", "XAmzContentSHA256Mismatch",
		"XAmzContentChecksumMismatch":
		// An upload that someone aborted, a conflict with another request, or bytes hurt on the way: all pass when done anew.
		return syscall.EAGAIN
	case "ConditionalRequestConflict":
		return syscall.ESTALE
	}
	return nil
}

// isNoSuchUpload tells whether S3 does not know of a multipart upload, because it was completed or aborted.
func isNoSuchUpload(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == "NoSuchUpload"
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
		return errInvalid
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

// unreadable tells whether an answer is none that S3 has written to its end: it breaks off, or something else answered. What its status
// says does not count then, a 200 for one, which S3 sends before it is done.
func unreadable(err error) bool {
	if _, ok := errors.AsType[*smithy.DeserializationError](err); ok || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	_, ok := errors.AsType[*xml.SyntaxError](err)
	return ok
}

// errNoResult is an answer without a body where there must be one. The SDK takes it for whole.
var errNoResult = fmt.Errorf("S3 answered without a result: %w", io.ErrUnexpectedEOF)

// pathError and linkError say what was attempted on which name. Their err is of a kind already, or comes from outside.
func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func linkError(op, oldname, newname string, err error) error {
	if err == nil {
		return nil
	}
	return &os.LinkError{Op: op, Old: oldname, New: newname, Err: err}
}
