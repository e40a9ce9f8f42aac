package upload

import (
	"context"
	"log/slog"

	"github.com/babelftp/babelftp/driver/internal/journal"
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/quota"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// Options is what an [Uploader] needs. Only Quotas, Inspect, Quarantine, Journal and Owner may have
// their zero values.
type Options struct {
	Bucket *s3api.Bucket
	Keys   s3object.KeySpace // of the files
	Memory *membudget.Budget
	Log    *slog.Logger

	Limiter *Limiter // of the parts of all uploads to the S3 server

	PartSize     int64 // bytes of the first part, from SmallestPart to s3api.MaxPartSize
	SmallestPart int64 // bytes that each part but the last has at least
	CopyLimit    int64 // bytes of an object that S3 copies by one request

	NoOverwrite bool // no upload may replace a file
	Truncate    bool // an upload that begins at an offset ends the file

	Quotas       quota.Quotas                // in which the bytes of the files count
	Objects      s3object.Objects            // attributes of new objects
	BeforeCommit func(context.Context) error // is called before a file becomes visible; an error prevents that

	// Inspect begins the judgement of a file, nil for none. Quarantine is what the keys of refused files begin with,
	// empty where they are not stored.
	Inspect    func(ctx context.Context, name string) Inspection
	Quarantine string

	// BeginOperation allows the copy of a large object; end is called when it has ended.
	BeginOperation func() (end func(), err error)

	Journal *journal.Journal // nil: no upload has a record
	Owner   string           // the user that may resume uploads; empty without a Journal
}

// An Uploader writes files. It is safe for concurrent use; the files that it opens are not, but for their Abort.
type Uploader struct {
	Options
	reported  *reported
	copySlots chan struct{} // bounds the parts that S3 copies in parallel; nil: each object has slots of its own
}

// New returns an Uploader, without a request.
func New(o Options) *Uploader {
	return &Uploader{Options: o, reported: &reported{}}
}

// WithCopySlots returns an Uploader for an operation that has begun. S3 copies at most this many parts in parallel for
// it, however many files have these parts.
func (u *Uploader) WithCopySlots(slots int) *Uploader {
	limited := *u
	limited.copySlots = make(chan struct{}, slots)
	limited.BeginOperation = func() (end func(), err error) { return func() {}, nil }
	return &limited
}

// largeCopy is how many bytes of an object make its copy an operation of its own. S3 copies fewer within seconds.
const largeCopy = minCopyPart

// BeginCopy allows a copy of so many bytes; end is called when it has ended.
func (u *Uploader) BeginCopy(bytes int64) (end func(), err error) {
	if bytes < largeCopy {
		return func() {}, nil
	}
	return u.BeginOperation()
}
