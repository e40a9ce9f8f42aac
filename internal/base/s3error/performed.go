package s3error

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
)

// Throttled reports whether S3 has rejected a request because it receives too many. S3 has not begun to perform it, and
// the same request may succeed a moment later.
func Throttled(err error) bool {
	return Status(err) == http.StatusTooManyRequests ||
		HasCode(err, "SlowDown", "TooManyRequests", "RequestLimitExceeded", "Throttling", "ThrottlingException")
}

// NotPerformed reports whether S3 has certainly not performed a failed request, because it rejected or never received
// it. After any other error, such as a broken connection, a timeout, an internal error or a truncated response, S3 may
// have performed the request or may still do so.
//
// The result says nothing about earlier attempts of the same request.
func NotPerformed(err error) bool {
	if Throttled(err) || unsent(err) || notConnected(err) || errors.Is(err, ErrOvertaken) {
		return true
	}
	if foreign, ok := errors.AsType[*ForeignError](err); ok {
		return !foreign.repeatable()
	}
	status := Status(err)
	refused := status >= http.StatusBadRequest && status < http.StatusInternalServerError ||
		status == http.StatusNotImplemented || status == http.StatusInsufficientStorage
	return refused && !Unreadable(err)
}

// doubtful is an error after which S3 may have performed the request or may still perform it.
type doubtful struct{ error }

// Unwrap returns the marked error.
func (d doubtful) Unwrap() error { return d.error }

// Doubtful marks the error of a write if at least one of its attempts had no definite result. S3 may still perform such
// an attempt, whatever its responses to the other attempts or to a later HEAD request were.
func Doubtful(err error) error { return doubtful{err} }

// IsDoubtful reports whether an error was marked by [Doubtful].
func IsDoubtful(err error) bool {
	_, marked := errors.AsType[doubtful](err)
	return marked
}

// notConnected reports whether no connection to S3 could be established.
func notConnected(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return true
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	_, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok
}

// Repeatable reports whether the same request may succeed a moment later: S3 is overloaded, failing or unreachable, or
// works on another request to the same key, or bytes were corrupted in transit. Rejected credentials are not
// repeatable, because it takes longer to fix them.
func Repeatable(err error) bool {
	if Throttled(err) || errors.Is(err, ErrOvertaken) {
		return true
	}
	if unsent(err) || errors.Is(err, context.Canceled) {
		return false
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	if foreign, ok := errors.AsType[*ForeignError](err); ok {
		return foreign.repeatable()
	}
	if HasCode(err, "OperationAborted", "ConditionalRequestConflict", brokenMPU, "RequestTimeout", "BadDigest",
		"IncompleteBody", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch", "InternalError",
		"RequestTimeTooSkewed") { // the SDK has corrected its clock with the response
		return true
	}
	if unreachable(err) || Unreadable(err) {
		return true
	}
	switch Status(err) {
	case http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
