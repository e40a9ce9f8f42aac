package s3errors

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

// TestNotPerformed tells the errors after which S3 may yet have performed a request from those after which it certainly has not.
func TestNotPerformed(t *testing.T) {
	operation := func(op string, errno syscall.Errno) error {
		return sendError(&net.OpError{Op: op, Net: "tcp", Err: os.NewSyscallError(op, errno)})
	}
	for _, test := range []struct {
		label                   string
		err                     error
		notPerformed, throttled bool
	}{
		{"slow-down", refusal(503, "SlowDown"), true, true},
		{"too-many-requests", refusal(429, "ServiceUnavailable"), true, true},
		{"slow-down-after-200", refusal(200, "SlowDown"), true, true},
		{"precondition", refusal(412, "PreconditionFailed"), true, false},
		{"conflict", refusal(409, "ConditionalRequestConflict"), true, false},
		{"no-such-upload", refusal(404, "NoSuchUpload"), true, false},
		{"denied", refusal(403, "AccessDenied"), true, false},
		{"no-credentials", &v4.SigningError{Err: errors.New("no EC2 IMDS role found")}, true, false},
		{"not-connected", operation("dial", syscall.ECONNREFUSED), true, false},
		{"unknown-host", sendError(&net.DNSError{Err: "no such host", Name: "s3.invalid"}), true, false},
		{"internal-error", refusal(500, "InternalError"), false, false},
		{"internal-error-after-200", refusal(200, "InternalError"), false, false},
		{"minio-without-quorum", refusal(503, "SlowDownWrite"), false, false},
		{"bad-gateway", refusal(502, "BadGateway"), false, false},
		{"unavailable", refusal(503, "ServiceUnavailable"), false, false},
		{"reset", operation("read", syscall.ECONNRESET), false, false},
		{"broken-pipe", operation("write", syscall.EPIPE), false, false},
		{"no-answer", sendError(io.EOF), false, false},
		{"timed-out", sendError(context.DeadlineExceeded), false, false},
		{"ends-early", unfinished(404, fmt.Errorf("body: %w", io.ErrUnexpectedEOF)), false, false},
	} {
		t.Run(test.label, func(t *testing.T) {
			if got := NotPerformed(test.err); got != test.notPerformed {
				t.Errorf("not performed: %v, want %v", got, test.notPerformed)
			}
			if got := Throttled(test.err); got != test.throttled {
				t.Errorf("throttled: %v, want %v", got, test.throttled)
			}
		})
	}
}
