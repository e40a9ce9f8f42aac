package driver

import (
	"context"
	"errors"
	"io"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

// A span reads the bytes [offset, end) of one version of an object, over as many connections as that takes.
type span struct {
	ctx         context.Context
	bucket      *s3api.Bucket
	version     s3api.Version
	offset, end int64
	body        io.ReadCloser // nil when the next byte must be asked for
	retries     s3api.Retries
	arrived     func(n int) // is told how many bytes have come; may be nil
}

// Read returns io.EOF at end only.
func (s *span) Read(p []byte) (int, error) {
	for {
		if err := context.Cause(s.ctx); err != nil {
			return 0, err // bytes may have come all the same
		}
		if s.body == nil {
			if s.offset >= s.end {
				return 0, io.EOF
			}
			var err error
			if s.body, err = s.bucket.GetRange(s.ctx, s.version, s.offset, s.end); err != nil {
				if err = s.retries.Pause(s.ctx, err); err != nil {
					return 0, s.cause(err)
				}
				continue
			}
		}
		n, err := s.body.Read(p)
		s.offset += int64(n)
		if n > 0 {
			s.retries.Progress(n)
			if s.arrived != nil {
				s.arrived(n)
			}
			return n, nil // an error comes again
		}
		if err == nil {
			return 0, nil
		}
		s.close()
		if s.offset >= s.end {
			if !errors.Is(err, io.EOF) {
				err = s.cause(s3errors.Truncated(err)) // the checksum of all bytes, which the SDK compares last
			}
			return 0, err
		}
		if err = s.retries.Pause(s.ctx, s3errors.Truncated(err)); err != nil {
			return 0, s.cause(err)
		}
	}
}

// cause prefers the reason why the span was ended to the error that shows it.
func (s *span) cause(err error) error {
	if cause := context.Cause(s.ctx); cause != nil {
		return cause
	}
	return err
}

func (s *span) close() {
	if s.body != nil {
		_ = s.body.Close() // nothing was written, so nothing is lost
		s.body = nil
	}
}
