package sessionlog

import (
	"context"
	"io/fs"
	"log/slog"
	"strings"
	"time"
)

// A Transfer is what the log has of a transfer. Zero values are left out.
type Transfer struct {
	Command   string // its verb
	Direction string // upload, download, listing
	Path      string // as the user sees it
	URI       string // s3 URI: the bucket and the key
	Bytes     int64  // on the data connection
	Offset    int64  // of REST or RANG
	Announced int64  // bytes that ALLO has told
	Duration  time.Duration
	FirstByte time.Duration // until it moved
	Code      int           // of the reply
	TLS       bool          // on the data connection
	// Stat describes the file, nil where there is none.
	Stat func() (fs.FileInfo, error)
	// DataAddress is what the reply to PASV or EPSV has told the client, empty for an active transfer.
	DataAddress string
	// Connection and Storage are why the transfer failed. The log has both, because the one often follows from the
	// other.
	Connection, Storage error
}

// noDataConnection is the code of the reply to a transfer without a data connection (RFC 959 4.2.2).
const noDataConnection = 425

// firstFailure is the first code of a reply that tells a failure (RFC 959 4.2.1).
const firstFailure = 400

// Log writes the line of a transfer.
func (t *Transfer) Log(ctx context.Context, log *slog.Logger) {
	if !log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	about := []slog.Attr{
		slog.String("direction", t.Direction), slog.String("command", t.Command), slog.String("path", t.Path),
		slog.Int64("bytes", t.Bytes),
		slog.Int("code", t.Code), slog.Int64("duration_ms", t.Duration.Milliseconds()), slog.Bool("tls", t.TLS),
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
	text("s3_uri", t.URI)
	number("offset", t.Offset)
	number("announced", t.Announced)
	number("first_byte_ms", t.FirstByte.Milliseconds())
	if t.Code >= firstFailure {
		if t.Code == noDataConnection {
			text("data_address", t.DataAddress)
		}
		if t.Connection != nil {
			text("connection", t.Connection.Error())
		}
		if t.Storage != nil {
			text("storage", t.Storage.Error())
		}
	} else if t.Stat != nil {
		if info, err := t.Stat(); err == nil {
			if stored, ok := info.(interface{ ETag() string }); ok {
				text("etag", strings.Trim(stored.ETag(), `"`))
			}
			if stored, ok := info.(interface {
				Checksum() string
				RequestID() string
			}); ok {
				text("checksum", stored.Checksum())
				text("s3_request_id", stored.RequestID())
			}
		}
	}
	log.LogAttrs(ctx, slog.LevelInfo, "transfer", about...)
}
