package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// Defaults of Options.
const (
	defaultPartSize            = s3api.MinPartSize
	defaultMemory              = 64 << 20
	defaultDownloadConcurrency = 16
	defaultCopyLimit           = maxCopyLimit
)

// idleTimeout limits how long S3 may send no byte of an object before the connection counts as broken.
const idleTimeout = 30 * time.Second

// maxCopyLimit is the maximum size that CopyObject can copy, in bytes.
const maxCopyLimit = 5 << 30

// Options configures a file system. The zero value of each field means its default.
type Options struct {
	// Prefix is the common prefix of all keys, for example "inbox/". Other keys are not visible in the file system. The
	// default is "", the whole bucket. The maximum length is 1,024 bytes, as for keys in S3.
	Prefix string

	// PartSize is the number of bytes that one request sends. A file up to this size is stored with one request, and a
	// larger file is uploaded in parts. The default, which is also the minimum, is 5 MiB; the maximum is 5 GiB. After
	// 1,280 parts of a file, the part size grows, so that 10,000 parts are enough for 5 TiB.
	PartSize int64

	// DownloadConcurrency is the maximum number of parallel requests of a download, which are used if one request is
	// slower than the client. The default is 16, the minimum 1, the maximum 10,000.
	DownloadConcurrency int

	// Memory limits the memory for the parts of uploads and the prefetched data of downloads. All file systems of a
	// process should share one budget; use [Budget.For] to give each of them the share of its user. The default is a
	// separate budget of 64 MiB; the minimum is 5 MiB.
	Memory *Budget

	// Endpoint holds measurements of the S3 server and the renames that are in progress there. All file systems on the
	// same server should share one. The default is a new one.
	Endpoint *Endpoint

	// MaxAttempts limits how many times a request is sent if S3 does not perform it. The default has no limit except
	// time: 25 seconds, and five minutes for a request of an upload with several parts. The retries of the client do
	// not count and are switched off, because the file system checks the object before it repeats a request.
	MaxAttempts int

	// CopyLimit is the size in bytes above which an object is copied in parts. The default, which is also the maximum,
	// is 5 GiB; the minimum is 1.
	CopyLimit int64

	// NoOverwrite protects existing files: writing or moving to the name of an existing file fails with fs.ErrExist. If
	// two clients create the same file at the same time, S3 decides (If-None-Match). Opening a file for writing takes
	// one more request. The default is false.
	NoOverwrite bool

	// Truncate removes the bytes of the existing file that follow the written ones if a file is written from an offset
	// ([Fs.OpenWriter]). By default they are kept, which takes one more request, and another one for each GiB that S3
	// copies, or for each part if all parts must have the same size.
	Truncate bool

	// Quotas count and limit the stored bytes. If a usage contains the key, writing or copying a file takes one more
	// request to get the size of the object that it replaces; a write does not wait for it. The default counts nothing.
	Quotas Quotas

	// Objects configures the attributes of new objects. The default leaves everything to the bucket.
	Objects Objects

	// Rule returns the attributes of the file with this name, in addition to Objects: when it is uploaded, and when it
	// gets the name by a copy or a rename. Values of a renamed file that the rule does not give stay. A rule is not
	// applied to directories. The default gives nothing.
	Rule func(ctx context.Context, name string, origin Origin) Rule

	// Restore configures how an archived object is restored when it is opened for reading. The error is then a
	// [RestoringError]. By default, nothing is restored, and the error is ENODATA.
	Restore Restore

	// BeforeCommit is called when all bytes of an upload have arrived, before its object becomes visible. If it returns
	// an error, the object does not become visible, and Close returns the error. If the error is fs.ErrInvalid, the
	// bytes are wrong, and the upload cannot be resumed. The default allows everything.
	BeforeCommit func(context.Context) error

	// Inspect begins the inspection of a file that is written. name is the name with which it was opened. The object
	// becomes visible only if Verdict accepts the whole file, including the bytes of an object or an upload that it
	// continues. If the verdict is fs.ErrInvalid, the upload cannot be resumed. Copies within S3 are not inspected,
	// because the source was inspected when it was stored. The default accepts everything.
	//
	// If an upload has an owner who can resume it, and more than one part, its bytes are first stored at a key below
	// ".babelftp/inspect/". S3 copies the object after the verdict.
	Inspect func(ctx context.Context, name string) Inspection

	// Quarantine is the prefix, relative to the bucket, of the keys of refused files. It needs a Journal for files of
	// more than one part. The default is "": refused files are not stored.
	Quarantine string

	// BeginOperation is called before a whole directory is renamed, copied or removed, before many levels of
	// directories are made, and before a large object is copied, as renames, changes of modification times and appends
	// may need. It can refuse the operation by returning an error. The file system calls end when the operation has
	// ended. The default allows everything.
	BeginOperation func() (end func(), err error)

	// BeginHash is called before a file is read to compute a hash. It can refuse by returning an error. The file system
	// calls wait with the number of bytes that it has read, and end when it has read everything. The default allows
	// everything without waiting.
	BeginHash func() (wait func(ctx context.Context, bytes int) error, end func(), err error)

	// Journal records uploads of more than one part while they are open, so that its Sweep method finds abandoned ones.
	// Without a journal, such uploads remain in the bucket if this process dies.
	Journal *Journal

	// Owner is the user who may resume interrupted uploads ([Fs.PendingUpload]), in any file system with the same owner
	// and bucket. With the default "", or without a Journal, an interrupted upload leaves nothing. An owner may have up
	// to 100 interrupted uploads, which take at most half of the smallest quota. The file system removes the oldest
	// ones first.
	Owner string

	// Presigner signs the links of [Fs.Presign]. Without it, Presign fails with errors.ErrUnsupported.
	Presigner Presigner

	// Profile describes the features and the rules of the S3 server. The default is the strictest server.
	Profile Profile

	// Logger logs events that are not part of an error, such as keys that have no pathname and uploads that could not
	// be aborted. The default discards them.
	Logger *slog.Logger

	// smallestPart is the minimum size of all parts except the last. It is s3api.MinPartSize unless a test changes it.
	smallestPart int64
}

// withRetries returns a context with the configured retries.
func (o *Options) withRetries(ctx context.Context) context.Context {
	if o.MaxAttempts == 0 {
		return ctx
	}
	return s3api.WithRetries(ctx, s3api.Retries{Attempts: o.MaxAttempts})
}

// setDefaults sets the default of each option without a value.
func (o *Options) setDefaults() {
	o.PartSize = cmp.Or(o.PartSize, defaultPartSize)
	o.smallestPart = cmp.Or(o.smallestPart, s3api.MinPartSize)
	o.DownloadConcurrency = cmp.Or(o.DownloadConcurrency, defaultDownloadConcurrency)
	o.CopyLimit = cmp.Or(o.CopyLimit, defaultCopyLimit)
	if o.Memory == nil {
		o.Memory = NewBudget(defaultMemory)
	}
	if o.Endpoint == nil {
		o.Endpoint = NewEndpoint()
	}
	if o.Rule == nil {
		o.Rule = func(context.Context, string, Origin) Rule { return Rule{} }
	}
	if o.BeforeCommit == nil {
		o.BeforeCommit = func(context.Context) error { return nil }
	}
	if o.BeginOperation == nil {
		o.BeginOperation = func() (func(), error) { return func() {}, nil }
	}
	if o.BeginHash == nil {
		o.BeginHash = func() (func(context.Context, int) error, func(), error) {
			return func(context.Context, int) error { return nil }, func() {}, nil
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Journal == nil || !o.Profile.Resumes() {
		o.Owner = ""
	}
}

// Validate returns an error that names each option that is out of range, with the range and the unit.
func (o *Options) Validate() error {
	errs := []error{
		checkRange("Prefix", len(o.Prefix), 0, s3object.MaxKeyBytes, " bytes"),
		checkRange("PartSize", o.PartSize, cmp.Or(o.smallestPart, s3api.MinPartSize), s3api.MaxPartSize, " bytes"),
		checkRange("DownloadConcurrency", o.DownloadConcurrency, 1, s3api.MaxParts, " requests"),
		checkRange("CopyLimit", o.CopyLimit, 1, maxCopyLimit, " bytes"),
	}
	if o.Memory != nil && o.Memory.Limit() < membudget.MinLimit {
		errs = append(
			errs, fmt.Errorf(
				"driver: option Memory: %d bytes is out of range: want at least %d bytes", o.Memory.Limit(),
				membudget.MinLimit))
	}
	return errors.Join(errs...)
}

// checkRange returns an error for a value that is out of range, unless it is zero, which means the default.
func checkRange[N int | int64](option string, value, least, most N, unit string) error {
	if value == 0 || least <= value && value <= most {
		return nil
	}
	return fmt.Errorf(
		"driver: option %s: %d%s is out of range: want %d to %d%s", option, value, unit, least, most, unit)
}
