// Package sessionlog writes what the log has of sessions: a line for each transfer and, on demand, one for each
// command, reply and request to S3.
//
// A [Switch] says for which sessions the log has more than its level, while the server runs. [Switch.Logger] makes
// the logger of a session.
//
// No password reaches the log, and nothing that a user may have typed in place of one. No link of SITE PRESIGN does,
// because who has it may download the file.
package sessionlog

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"strings"
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

// masked stands for what must not be in the log.
const masked = "***"

// A Command is a command line, of which the log has a part.
type Command struct {
	Verb, Argument string
	// Known says that the server knows the verb, and for SITE the service.
	Known bool
}

// String is what the log has of a command line. PASS and ACCT have a secret. USER may have one by mistake, and so may
// a line that is no command: clients wait for no prompt, and people do not look.
func (c Command) String() string {
	verb, argument := c.Verb, c.Argument
	switch {
	case verb == "SITE" && !c.Known:
		service, _, more := strings.Cut(argument, " ")
		if argument = service; more {
			argument += " " + masked
		}
	case !c.Known && !isVerb(verb):
		return masked
	case !c.Known || verb == "PASS" || verb == "ACCT" || verb == "USER":
		if argument != "" {
			argument = masked
		}
	}
	if argument == "" {
		return verb
	}
	return verb + " " + argument
}

// longestVerb is how many letters a command has at most (RFC 959 5.3).
const longestVerb = 4

// isVerb says whether a word looks like a command, and not like a password.
func isVerb(word string) bool {
	return len(word) <= longestVerb && !strings.ContainsFunc(word, func(r rune) bool { return r < 'A' || r > 'Z' })
}

// private says whether the text of the reply repeats what the log must not have: the name of USER, or a link.
func (c Command) private() bool {
	service, _, _ := strings.Cut(c.Argument, " ")
	return c.Verb == "USER" || c.Verb == "SITE" && strings.EqualFold(service, "PRESIGN")
}

// LogCommand writes a command, where the log has commands.
func LogCommand(ctx context.Context, log *slog.Logger, c Command) {
	if log.Enabled(ctx, slog.LevelDebug) {
		log.DebugContext(ctx, "command", "line", c.String())
	}
}

// LogReply writes a reply to a command, preliminary or not, where the log has replies.
func LogReply(ctx context.Context, log *slog.Logger, c Command, code int, lines []string) {
	if !log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	text := masked
	if !c.private() {
		text = strings.Join(lines, "\n")
	}
	log.DebugContext(ctx, "reply", "code", code, "text", text)
}

type contextKey struct{}

// WithRequests returns a context whose requests to S3 are in the log, where the log has debug lines.
func WithRequests(ctx context.Context, log *slog.Logger) context.Context {
	if !log.Enabled(ctx, slog.LevelDebug) {
		return ctx
	}
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

// LogRequest writes a request to S3, if [WithRequests] made the context.
func LogRequest(ctx context.Context, r *Request) {
	if log, ok := ctx.Value(contextKey{}).(*slog.Logger); ok {
		log.DebugContext(
			ctx, "S3 request", "operation", r.Operation, "status", r.Status, "duration_ms", r.Duration.Milliseconds(),
			"s3_request_id", r.ID)
	}
}
