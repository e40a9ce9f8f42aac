package audit

import (
	"context"
	"errors"
	"time"

	"github.com/babelftp/babelftp/internal/base/inspect"
	"github.com/babelftp/babelftp/internal/report"
)

// CommandEnded writes the line of a command that has a kind.
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

// aboutFile is what the storage knows of the command.
func aboutFile(o *report.Outcome) []any {
	if o.Path == "" { // refused before the storage was asked
		return []any{"argument", o.Argument}
	}
	about := []any{"path", o.Path, "s3_uri", o.URI}
	if o.To != "" {
		about = append(about, "to_path", o.To, "to_s3_uri", o.ToURI)
	}
	if o.Charset != "" {
		about = append(about, "name_charset", o.Charset)
	}
	if o.Transfer != nil && o.Transfer.Offset > 0 {
		about = append(about, "offset", o.Transfer.Offset)
	}
	switch stored := o.Stored; {
	case o.Failed() && o.Err != nil:
		about = append(about, "error", o.Err.Error())
		if answer, ok := errors.AsType[interface {
			error
			ServiceRequestID() string
		}](o.Err); ok {
			about = append(about, "s3_request_id", answer.ServiceRequestID())
		}
	case stored != nil:
		about = append(about, "size", stored.Size)
		for _, of := range []struct{ key, value string }{
			{"etag", stored.ETag}, {"checksum", stored.Checksum}, {"s3_request_id", stored.RequestID},
		} {
			if of.value != "" {
				about = append(about, of.key, of.value)
			}
		}
	}
	return about
}
