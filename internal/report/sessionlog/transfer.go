package sessionlog

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/babelftp/babelftp/internal/report"
)

// noDataConnection is the reply code if the data connection could not be opened (RFC 959 section 4.2.2).
const noDataConnection = 425

// transferEnded logs a transfer. Zero values are omitted.
func (s *Session) transferEnded(ctx context.Context, o *report.Outcome) {
	if !s.Enabled(ctx, slog.LevelInfo) {
		return
	}
	t := o.Transfer
	about := []slog.Attr{
		slog.String("direction", t.Direction()), slog.String("command", t.Verb),
		slog.String("path", cmp.Or(o.Path, t.Path)), slog.Int64("bytes", t.Bytes()), slog.Int("code", o.Code),
		slog.Int64("duration_ms", t.Elapsed().Milliseconds()), slog.Bool("tls", t.TLS),
	}
	text := func(key, value string) {
		if value != "" {
			about = append(about, slog.String(key, value))
		}
	}
	number := func(key string, value int64) {
		if value != 0 {
			about = append(about, slog.Int64(key, value))
		}
	}
	text("s3_uri", cmp.Or(o.URI, t.URI))
	number("offset", t.Offset)
	number("announced", t.Announced)
	number("first_byte_ms", t.FirstByte().Milliseconds())
	switch {
	case o.Failed():
		if o.Code == noDataConnection {
			text("data_address", t.DataAddress)
			text("reached_address", t.ReachedAddress.String())
		}
		if t.Connection != nil {
			text("connection", t.Connection.Error())
		}
		if t.Storage != nil {
			text("storage", t.Storage.Error())
		}
	case o.Stored != nil:
		text("etag", o.Stored.ETag)
		text("checksum", o.Stored.Checksum)
		text("verified", o.Stored.Verified)
		text("s3_request_id", o.Stored.RequestID)
	}
	s.LogAttrs(ctx, slog.LevelInfo, "transfer", about...)
}
