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

// Options configure an [Uploader]. Quotas, Inspect, Quarantine, Journal and Owner are optional; all other fields are
// required.
type Options struct {
	Bucket *s3api.Bucket
	Keys   s3object.KeySpace // maps the names of files to keys
	Memory *membudget.Budget
	Log    *slog.Logger

	Limiter *Limiter // limits the parts in flight; shared by all uploads to the S3 server

	PartSize     int64 // bytes of the first part, from SmallestPart to s3api.MaxPartSize
	SmallestPart int64 // minimum bytes of each part except the last
	CopyLimit    int64 // maximum bytes of an object that S3 copies with one request

	NoOverwrite bool // uploads must not replace a file
	Truncate    bool // an upload that begins at an offset discards the old bytes after the new ones

	Quotas       quota.Quotas                // quotas that the bytes of the files count against
	Objects      s3object.Objects            // attributes of new objects
	BeforeCommit func(context.Context) error // called before a file becomes visible; an error prevents that

	// Rule returns the attributes of the file that is written, in addition to Objects.
	Rule func(ctx context.Context, name string) s3object.Rule

	// Inspect starts the inspection of a file. If it is nil, files are not inspected.
	Inspect func(ctx context.Context, name string) Inspection
	// Quarantine is the key prefix under which rejected files are stored. If it is empty, they are discarded.
	Quarantine string

	// BeginOperation asks for permission to copy a large object. The caller calls end after the copy.
	BeginOperation func() (end func(), err error)

	Journal *journal.Journal // records of multipart uploads; nil disables them
	Owner   string           // the user that may resume uploads; empty without a Journal
}

// An Uploader writes files. It is safe for concurrent use. A [Writer] is not, except for its Abort method.
type Uploader struct {
	Options
	reported  *reported
	copySlots chan struct{} // limits the parts that S3 copies in parallel; if nil, each upload has its own limit
}

// New returns an Uploader. It makes no request.
func New(o Options) *Uploader {
	return &Uploader{Options: o, reported: &reported{}}
}

// WithCopySlots returns an Uploader for an operation that has already begun, such as the copy of a directory. S3 copies
// at most the given number of parts in parallel for the whole operation.
func (u *Uploader) WithCopySlots(slots int) *Uploader {
	limited := *u
	limited.copySlots = make(chan struct{}, slots)
	limited.BeginOperation = func() (end func(), err error) { return func() {}, nil }
	return &limited
}

// StoreTags adds the tags to an object that was just created, if the server has ignored them. The data is stored, so an
// error is only logged.
func (u *Uploader) StoreTags(ctx context.Context, key string, a *s3object.Attributes) {
	if err := u.Bucket.StoreTags(ctx, key, a); err != nil {
		u.Log.Warn("file stored without its tags", "bucket", u.Bucket.Name, "key", key, "err", err)
	}
}

// largeCopy is the number of bytes from which a copy counts as an operation. S3 copies smaller objects within seconds.
const largeCopy = minCopyPart

// BeginCopy asks for permission to copy the given number of bytes. The caller calls end after the copy.
func (u *Uploader) BeginCopy(bytes int64) (end func(), err error) {
	if bytes < largeCopy {
		return func() {}, nil
	}
	return u.BeginOperation()
}
