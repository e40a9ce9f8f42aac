package s3error

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// TestNotPerformed checks for each error whether S3 has certainly not performed the request, whether it was throttled,
// and whether it can be repeated.
func TestNotPerformed(t *testing.T) {
	operation := func(op string, errno syscall.Errno) error {
		return sendError(&net.OpError{Op: op, Net: "tcp", Err: os.NewSyscallError(op, errno)})
	}
	for _, test := range []struct {
		label                               string
		err                                 error
		notPerformed, throttled, repeatable bool
	}{
		{"slow-down", refusal(503, "SlowDown"), true, true, true},
		{"too-many-requests", refusal(429, "ServiceUnavailable"), true, true, true},
		{"slow-down-after-200", refusal(200, "SlowDown"), true, true, true},
		{"precondition", refusal(412, "PreconditionFailed"), true, false, false},
		{"conflict", refusal(409, "ConditionalRequestConflict"), true, false, true},
		{"no-credentials", &v4.SigningError{Err: errors.New("no EC2 IMDS role found")}, true, false, false},
		{"not-connected", operation("dial", syscall.ECONNREFUSED), true, false, true},
		{"unknown-host", sendError(&net.DNSError{Err: "no such host", Name: "s3.invalid"}), true, false, true},
		{"expired-credentials", refusal(400, "ExpiredToken"), true, false, false},
		{"canceled", sendError(context.Canceled), false, false, false},
		{"corrupted-in-transit", refusal(400, "BadDigest"), true, false, true},
		{"internal-error", refusal(500, "InternalError"), false, false, true},
		{"internal-error-after-200", refusal(200, "InternalError"), false, false, true},
		{"minio-without-quorum", refusal(503, "SlowDownWrite"), false, false, true},
		{"unavailable", refusal(503, "ServiceUnavailable"), false, false, true},
		{"not-implemented", refusal(501, "NotImplemented"), true, false, false},
		{"minio-full", refusal(507, "XMinioStorageFull"), true, false, false},
		{"versitygw-full", refusal(507, "InsufficientStorage"), true, false, false},
		{"reset", operation("read", syscall.ECONNRESET), false, false, true},
		{"broken-pipe", operation("write", syscall.EPIPE), false, false, true},
		{"timed-out", sendError(context.DeadlineExceeded), false, false, true},
		{"ends-early", unfinished(404, fmt.Errorf("body: %w", io.ErrUnexpectedEOF)), false, false, true},
	} {
		t.Run(test.label, func(t *testing.T) {
			if got := NotPerformed(test.err); got != test.notPerformed {
				t.Errorf("not performed: got %v, want %v", got, test.notPerformed)
			}
			if got := Throttled(test.err); got != test.throttled {
				t.Errorf("throttled: got %v, want %v", got, test.throttled)
			}
			if got := Repeatable(test.err); got != test.repeatable {
				t.Errorf("repeatable: got %v, want %v", got, test.repeatable)
			}
		})
	}
}
