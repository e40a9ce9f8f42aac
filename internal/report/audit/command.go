package audit

import (
	"context"
	"errors"
	"time"

	"github.com/babelftp/babelftp/internal/base/inspect"
	"github.com/babelftp/babelftp/internal/base/s3error"
	"github.com/babelftp/babelftp/internal/report"
)

// CommandEnded writes the line of a command with a kind.
func (s *Session) CommandEnded(_ context.Context, o *report.Outcome) {
	if o.Kind == "" || o.Pending || s.login == nil {
		return
	}
	outcome := outcomeOK
	if o.Failed() {
		outcome = outcomeFailed
	}
	if errors.Is(o.Err, inspect.ErrRefused) {
		outcome = outcomeRefused
	}
	if outcome == outcomeFailed && o.Transfer == nil && !s.strangers.first(s.failureOf(o), failuresWritten) {
		return
	}
	about := []any{"command", o.Name, "code", o.Code, "duration_ms", time.Since(o.Began).Milliseconds()}
	if o.Kind == report.Upload || o.Kind == report.Download {
		var bytes int64
		if o.Transfer != nil {
			bytes = o.Transfer.Bytes()
		}
		about = append(about, "bytes", bytes)
		if o.Transfer != nil {
			about = append(about, "data_tls", o.Transfer.TLS)
		}
		s.bytes[o.Kind] += bytes
		if outcome == outcomeOK {
			s.files[o.Kind]++
		}
	}
	s.write(string(o.Kind), outcome, append(about, aboutFile(o)...)...)
}

// failuresWritten limits the lines per minute for failed commands of the same kind and user. Further failures are
// counted in one line.
const failuresWritten = 20

// failureOf returns the kind for counting failed commands of the user.
func (s *Session) failureOf(o *report.Outcome) kind {
	k := s.kind(string(o.Kind), "")
	k.code, k.tenant, k.user = o.Code, s.login.Tenant.Name, s.login.Name
	return k
}

// aboutFile returns the keys and values about the file of a command.
func aboutFile(o *report.Outcome) []any {
	if o.Kind == report.SetPassword {
		return nil // the argument is a secret
	}
	if o.Path == "" { // refused before the storage was called
		return []any{"argument", report.Clip(o.Argument)}
	}
	whole := func(text string) string { return text }
	if o.Failed() && o.Transfer == nil {
		whole = report.Clip // nothing was stored under this name
	}
	about := []any{"path", whole(o.Path), "s3_uri", whole(o.URI)}
	if o.To != "" {
		about = append(about, "to_path", whole(o.To), "to_s3_uri", whole(o.ToURI))
	}
	if o.Charset != "" {
		about = append(about, "name_charset", o.Charset)
	}
	if o.Transfer != nil && o.Transfer.Offset > 0 {
		about = append(about, "offset", o.Transfer.Offset)
	}
	switch stored := o.Stored; {
	case o.Failed() && o.Err != nil:
		about = append(about, "error", report.Clip(o.Err.Error()))
		if id := s3error.RequestID(o.Err); id != "" {
			about = append(about, "s3_request_id", id)
		}
	case stored != nil:
		about = append(about, "size", stored.Size)
		for _, of := range []struct{ key, value string }{
			{"etag", stored.ETag}, {"checksum", stored.Checksum}, {"verified", stored.Verified},
			{"s3_request_id", stored.RequestID},
		} {
			if of.value != "" {
				about = append(about, of.key, of.value)
			}
		}
	}
	return about
}
