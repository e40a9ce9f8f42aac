package s3error

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
)

// Throttled reports whether S3 has refused a request only because it gets too many. It has not begun to perform it,
// and the same request may succeed a moment later.
func Throttled(err error) bool {
	return Status(err) == http.StatusTooManyRequests ||
		HasCode(err, "SlowDown", "TooManyRequests", "RequestLimitExceeded", "Throttling", "ThrottlingException")
}

// NotPerformed reports whether it is certain that S3 has not performed the request that failed: S3 refused it, or
// never got it. Any other error leaves the doubt that S3 has performed the request, or will: a connection that broke,
// a time-out, an internal error, an answer that ends early.
//
// It says nothing of an earlier attempt of the same request.
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

// doubtful is an error after which S3 may have performed the request, or may yet perform it.
type doubtful struct{ error }

// Unwrap returns the error itself.
func (d doubtful) Unwrap() error { return d.error }

// Doubtful marks the error of a change that had several attempts: at least one of them got no definite answer. What S3
// has said of the others, and what a look has shown, says nothing of an attempt that S3 performs late.
func Doubtful(err error) error { return doubtful{err} }

// IsDoubtful tells whether [Doubtful] has marked an error.
func IsDoubtful(err error) bool {
	_, marked := errors.AsType[doubtful](err)
	return marked
}

// notConnected reports whether there was no connection to send the request on.
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

// Repeatable reports whether the same request may succeed a moment later. S3 is then overloaded, in trouble or out of
// reach, or works on another request to the same key. Or it has got bytes that were hurt on the way. Refused
// credentials take longer than a moment.
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
		"RequestTimeTooSkewed") { // the SDK has set its clock by the answer
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
