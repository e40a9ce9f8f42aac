// Package upload writes files: a small one by one request (S3 operation PutObject), others by parts, several at once
// (CreateMultipartUpload, UploadPart, UploadPartCopy, CompleteMultipartUpload, AbortMultipartUpload).
//
// [Uploader.Open] opens a [Writer], whose Close makes the object visible. An interrupted upload stays for its owner where there is a journal:
// [Uploader.Pending] describes it, and Open with its size as the offset resumes it (ListParts). [Uploader.CopyByParts] copies an object
// that is too large for CopyObject.
package upload

import (
	"context"
	"log/slog"

	"github.com/babelftp/babelftp/driver/internal/attributes"
	"github.com/babelftp/babelftp/driver/internal/concurrency"
	"github.com/babelftp/babelftp/driver/internal/journal"
	"github.com/babelftp/babelftp/driver/internal/keys"
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/quota"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// Options is what an [Uploader] needs. Each field is set, but for Quotas, Journal and Owner.
type Options struct {
	Bucket *s3api.Bucket
	Keys   keys.Space // of the files
	Memory *membudget.Budget
	Log    *slog.Logger

	Limiter     *concurrency.Limiter // of the parts of all uploads to the S3 server
	Concurrency int                  // parts that an upload has on their way at once, at most

	PartSize     int64 // bytes of the first part, from SmallestPart to s3api.MaxPartSize
	SmallestPart int64 // bytes that each part but the last has at least
	CopyLimit    int64 // bytes of an object that S3 copies by one request

	NoOverwrite  bool                        // a file must be new
	Quotas       quota.Quotas                // in which files take room
	Objects      attributes.Objects          // what they are stored with
	BeforeCommit func(context.Context) error // may refuse a file that would now become visible

	Journal *journal.Journal // without one nothing is recorded
	Owner   string           // who may resume uploads; empty without a Journal
}

// An Uploader writes files. It is safe for concurrent use; the files that it opens are not, but for their Abort.
type Uploader struct {
	Options
	reported  *reported
	copySlots semaphore // of all parts that are copied at once, nil where each object has its own
}

// New returns an Uploader, without a request.
func New(o Options) *Uploader {
	return &Uploader{Options: o, reported: &reported{}}
}

// Limited returns an Uploader that makes its requests by another client of the bucket, and shares so many slots among all parts that it copies.
func (u *Uploader) Limited(bucket *s3api.Bucket, slots int) *Uploader {
	limited := *u
	limited.Bucket, limited.copySlots = bucket, make(semaphore, slots)
	return &limited
}
