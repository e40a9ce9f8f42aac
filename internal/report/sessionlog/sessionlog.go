// Package sessionlog writes the log of sessions: a line for each transfer and, on demand, for each command, reply and
// request to S3.
//
// A [Session] observes a session and is its logger. A [Switch] enables debug lines for single sessions while the
// server runs.
//
// Passwords are never logged, and neither is text that a user may have typed instead of one. Links of SITE PRESIGN are
// not logged either, because anyone with a link may download the file.
package sessionlog

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"time"
)

// idBytes is the length of session IDs.
const idBytes = 8

// NewID returns a new session ID, which is used in the log and in the audit log.
func NewID() string {
	id := make([]byte, idBytes)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

type contextKey struct{}

// withRequests returns a context that logs its requests to S3.
func withRequests(ctx context.Context, log *slog.Logger) context.Context {
	return context.WithValue(ctx, contextKey{}, log)
}

// NoResponse is the status of a request without a response from S3.
const NoResponse = "error"

// A Request is an attempt to send a request to S3.
type Request struct {
	Service, Operation string // AWS names, such as S3 and PutObject
	Status             string // HTTP status, or NoResponse
	ID                 string // x-amz-request-id
	Retry              int    // 0 for the first attempt
	Begin              time.Time
	Duration           time.Duration // until S3 began its response
}

// LogRequest logs a request to S3, if its command is logged at debug level.
func LogRequest(ctx context.Context, r *Request) {
	if log, ok := ctx.Value(contextKey{}).(*slog.Logger); ok {
		log.DebugContext(
			ctx, "S3 request", "operation", r.Operation, "status", r.Status, "duration_ms", r.Duration.Milliseconds(),
			"s3_request_id", r.ID)
	}
}
