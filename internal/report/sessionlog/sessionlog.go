// Package sessionlog writes what the log has of sessions: a line for each transfer and, on demand, one for each
// command, reply and request to S3.
//
// A [Session] observes a session, and is its logger. A [Switch] says for which sessions the log has more than its
// level, while the server runs.
//
// No password reaches the log, and nothing that a user may have typed in place of one. No link of SITE PRESIGN does,
// because anyone who has it may download the file.
package sessionlog

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"time"
)

// idBytes make the names of sessions different from each other.
const idBytes = 8

// NewID returns the name of a session, the same in the log and in the audit log.
func NewID() string {
	id := make([]byte, idBytes)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

type contextKey struct{}

// withRequests returns a context whose requests to S3 are in a log.
func withRequests(ctx context.Context, log *slog.Logger) context.Context {
	return context.WithValue(ctx, contextKey{}, log)
}

// NoAnswer is the status of a request that S3 has not answered.
const NoAnswer = "error"

// A Request is an attempt of a request to S3.
type Request struct {
	Service, Operation string // of AWS: S3 and PutObject
	Status             string // of HTTP, or why there is none
	ID                 string // x-amz-request-id
	Retry              int    // 0 for the first attempt
	Begin              time.Time
	Duration           time.Duration // until S3 began to answer
}

// LogRequest writes a request to S3, if the context is that of a command of which the log has debug lines.
func LogRequest(ctx context.Context, r *Request) {
	if log, ok := ctx.Value(contextKey{}).(*slog.Logger); ok {
		log.DebugContext(
			ctx, "S3 request", "operation", r.Operation, "status", r.Status, "duration_ms", r.Duration.Milliseconds(),
			"s3_request_id", r.ID)
	}
}
