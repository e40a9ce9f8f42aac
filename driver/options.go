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

// idleTimeout is how long S3 may send nothing of an object before the connection counts as broken.
const idleTimeout = 30 * time.Second

// maxCopyLimit is how many bytes CopyObject copies at most.
const maxCopyLimit = 5 << 30

// Options says how a file system works. The zero value of each field is its default.
type Options struct {
	// Prefix is what the keys start with, "inbox/" for example. The file system does not show other keys. The default
	// is "", the whole bucket. The maximum is 1,024 bytes, S3's longest key.
	Prefix string

	// PartSize is how many bytes one request sends: a smaller file takes one request, a larger one has parts. The
	// default, and the minimum, is 5 MiB, S3's own; the maximum is 5 GiB. The parts of a file beyond 1,280 of them
	// grow with it, so that 10,000 reach 5 TiB.
	PartSize int64

	// DownloadConcurrency is how many requests one download may make in parallel, where one is slower than its
	// client. The default is 16, the minimum 1, the maximum 10,000.
	DownloadConcurrency int

	// Memory bounds the bytes that uploads collect and downloads prefetch. All file systems of a process share one:
	// give each [Budget.For] the user that it belongs to. The default is a budget of 64 MiB for this file system
	// alone; the minimum is 5 MiB.
	Memory *Budget

	// Endpoint holds what requests have measured of the S3 server, and the renames that are running there. All
	// file systems of a server share one. The default is a new one.
	Endpoint *Endpoint

	// MaxAttempts is how often a request is sent at most while S3 does not perform it. The default is no limit but
	// time: 25 seconds, and five minutes for a request of an upload of several parts. The retries of the client do
	// not count, because the file system looks at the object before it sends a request again.
	MaxAttempts int

	// CopyLimit is the size in bytes above which an object is copied by parts. The default, and the maximum, is 5
	// GiB; the minimum is 1.
	CopyLimit int64

	// NoOverwrite keeps every file that exists: what is written or moved needs a new name, and fails with fs.ErrExist
	// otherwise. S3 decides where two clients do that at once (If-None-Match). It takes one request more to open a
	// file for writing. The default is false.
	NoOverwrite bool

	// Truncate ends a file with the last byte that is written after an offset ([Fs.OpenWriter]). The default keeps the
	// bytes of the object that follow. They take a request more, and another one for each GiB that S3 copies, or each
	// part where all parts must have one size.
	Truncate bool

	// Quotas count the bytes that are stored, and limit them. If a usage contains the key, to write or copy a file
	// takes one request more, for the size of the object that it replaces; a write does not wait for it. The default
	// counts nothing.
	Quotas Quotas

	// Objects is what the file system stores objects with, besides their bytes. The default leaves everything to the
	// bucket.
	Objects Objects

	// Restore says how an archived object is restored that is opened for reading. The error is a [RestoringError] then.
	// The default restores none, and the error is ENODATA.
	Restore Restore

	// BeforeCommit is called when all bytes of an upload have come, before its object becomes visible. After an error
	// it does not, and Close returns the error. After an fs.ErrInvalid the bytes are wrong, and no owner can resume
	// the upload. The default allows all.
	BeforeCommit func(context.Context) error

	// Inspect begins the judgement of a file that is written, by the name that it was opened with. Its object becomes
	// visible when Verdict accepts the whole file, also the bytes of an object or of an upload that it continues. After
	// a verdict that is an fs.ErrInvalid no owner can resume the upload. What S3 copies is not judged: it was when it
	// was stored. The default accepts all.
	//
	// The bytes of an upload that an owner can resume go to a key below ".babelftp/inspect/" first, if it has more than
	// one part. S3 copies the object after the verdict.
	Inspect func(ctx context.Context, name string) Inspection

	// Quarantine is what the keys of refused files begin with, in the whole bucket. It needs a Journal for files of
	// more than one part. The default is "": refused files are not stored.
	Quarantine string

	// BeginOperation is called before a whole directory is renamed, copied or removed, and before directories are
	// made many levels deep. It is also called before a large object is copied, as a rename, a set time or an append
	// needs. It can refuse that by an error. The file system calls end when that has ended. The default allows all.
	BeginOperation func() (end func(), err error)

	// BeginHash is called before the bytes of a file are read for a hash, which it can refuse by an error. The file
	// system calls wait for the bytes that it has read, and end when it has read all. The default allows all, without
	// a wait.
	BeginHash func() (wait func(ctx context.Context, bytes int) error, end func(), err error)

	// Journal records uploads of more than one part while they are open, so that its Sweep finds abandoned ones. The
	// default is none: such uploads stay in the bucket if this process dies.
	Journal *Journal

	// Owner is the user who may resume interrupted uploads ([Fs.PendingUpload]), in any file system of the same owner
	// and bucket. The default is "": an interrupted upload leaves nothing. So it does without a Journal. An owner has
	// 100 of them at most. They take at most half as many bytes as the smallest of the quotas. The file system
	// removes the oldest first.
	Owner string

	// Presigner signs the links of [Fs.Presign]. The default is none, and Presign fails with errors.ErrUnsupported.
	Presigner Presigner

	// Profile is what the S3 server can do, and its rules. The default is the strictest server.
	Profile Profile

	// Logger gets what no error says: keys that no name can show, uploads that could not be aborted. The default
	// discards it.
	Logger *slog.Logger

	// smallestPart is how many bytes each part but the last has at least: minPartSize, unless a test says less.
	smallestPart int64
}

// withRetries returns the context of requests that are repeated as the options say.
func (o *Options) withRetries(ctx context.Context) context.Context {
	if o.MaxAttempts == 0 {
		return ctx
	}
	return s3api.WithRetries(ctx, s3api.Retries{Attempts: o.MaxAttempts})
}

// setDefaults gives each option without a value its default.
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

// Validate returns an error that names each option out of range, with its range and the unit.
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

// checkRange returns an error for a value that is neither zero, the default, nor between both bounds.
func checkRange[N int | int64](option string, value, least, most N, unit string) error {
	if value == 0 || least <= value && value <= most {
		return nil
	}
	return fmt.Errorf(
		"driver: option %s: %d%s is out of range: want %d to %d%s", option, value, unit, least, most, unit)
}
