// Package driver presents an S3 bucket, or the keys below a prefix, as a file system. It does not depend on FTP.
//
//	bucket, err := driver.New(s3.NewFromConfig(cfg), "acme-data", &driver.Options{Prefix: "inbox/"})
//	if err != nil {
//		return err
//	}
//	w, err := bucket.OpenWriter(ctx, "/2026/invoice.xml", os.O_CREATE|os.O_TRUNC, 0, nil)
//	if err != nil {
//		return err
//	}
//	if _, err := io.Copy(w, source); err != nil {
//		w.Abort(err)
//	}
//	return w.Close() // the object appears here, or the error says why it does not
//
// An [Fs] has a method for each operation: [Fs.OpenReader], [Fs.OpenWriter], [Fs.Stat], [Fs.List], [Fs.Mkdir],
// [Fs.RemoveFile], [Fs.RenameTo], [Fs.CopyTo], [Fs.Hash] and others. Each method takes a context; canceling it stops
// the requests. A call resolves the pathname to a key, checks in the [profile.Profile] which headers and conditions the
// S3 server supports, and sends as few requests as the operation allows. [Fs.Afero] binds a context and returns an
// [afero.Fs] for programs that only know that interface.
//
// [Options] configure everything else: quotas, what happens to existing files, the journal from which interrupted
// uploads are resumed, and the [Budget] of memory that file systems share. Package drivertest specifies the behavior
// and runs against every kind of S3 server.
//
// A file is an object. A directory is a prefix that at least one key has; an empty object at "directory/" may mark it.
// Its parents need not exist. A directory without a marker disappears with its last file. A file and a directory may
// have the same name. A name with a final slash means the directory, never the file. Pathnames are UTF-8 (RFC 3629
// section 4) and become keys unchanged.
//
// An object cannot be changed, only replaced. Written data becomes visible when the file is closed: either completely
// or not at all. It is sent to S3 from memory, which a [Budget] limits, and is never stored on disk.
//
// Errors are of type [*fs.PathError] or, for renames and copies, [*os.LinkError]. Use errors.Is to test for these
// kinds:
//
//	fs.ErrNotExist, ErrExist, ErrPermission, ErrClosed  as in package fs
//	fs.ErrInvalid, EINVAL  invalid argument, such as an offset beyond the end
//	ELOOP                  a directory cannot be renamed or copied into itself; also matches fs.ErrInvalid
//	EISDIR, ENOTDIR        a directory instead of a file, or the reverse
//	ENOTEMPTY              the directory is not empty; also matches fs.ErrExist, so test for ENOTEMPTY first
//	EILSEQ                 the name is not UTF-8, contains NUL, or cannot be stored on this S3 server
//	ENAMETOOLONG           the key is longer than S3, or this S3 server, allows
//	EFBIG                  larger than an object can be
//	EROFS                  the file system is the past of another one, see [Fs.At]
//	ENODATA                the object is archived, and S3 must restore it first (ENOATTR on FreeBSD)
//	ENOSPC, EDQUOT         the S3 server is full, or a quota is used up
//	EAGAIN                 may work later: S3 is overloaded or unreachable, or something changed at the same time
//	ESTALE                 the object was replaced while it was read or appended to
//	ENXIO                  the bucket does not exist
//	EBADF                  the file is not open for this operation
//	errors.ErrUnsupported  S3 cannot do this
//	context.Canceled       the session ended
//	EIO                    anything else
//
// Use errors.As to get the error of the SDK with S3's error code and request ID.
package driver

import (
	"context"
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/driver/internal/upload"
)

// Reserved is a key segment, below the prefix of a file system, that is reserved for the driver and the programs that
// use it, for example for a queue of events. Pathnames cannot contain it, and keys with it do not count in quotas.
const Reserved = s3object.Reserved

// A Budget limits the memory in which uploads collect their parts, downloads prefetch data and listings hold pages.
type Budget = membudget.Budget

// NewBudget returns a budget of this many bytes. [New] refuses a budget smaller than 5 MiB, the minimum part size of
// S3. A part cannot be larger than the budget, and an object has at most 10,000 parts. So 256 MiB are enough for
// objects of 1 TiB, and 4 GiB for S3's largest objects of 5 TiB.
func NewBudget(bytes int64) *Budget { return membudget.New(bytes) }

// An Fs is a file system in a bucket. It is safe for concurrent use. The files that it opens are not, except for their
// Abort method.
type Fs struct {
	opts    *Options // not changed after New
	bucket  *s3api.Bucket
	keys    s3object.KeySpace
	uploads *upload.Uploader
}

// New returns a file system for a bucket. It sends no request. opts may be nil. The error is the error of
// [Options.Validate].
func New(client Client, bucketName string, opts *Options) (*Fs, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.setDefaults()
	bucket := s3api.NewBucket(s3api.WithReasons(client), bucketName, o.Profile, o.Endpoint.stats, idleTimeout)
	if o.Endpoint.user != nil {
		bucket = bucket.InTurns(o.Endpoint.user)
	}
	f := &Fs{keys: s3object.KeySpace(o.Prefix), opts: &o}
	f.use(bucket)
	return f, nil
}

// use sets the bucket to which the file system sends its requests.
func (f *Fs) use(bucket *s3api.Bucket) {
	o := f.opts
	f.bucket = bucket
	f.uploads = upload.New(upload.Options{
		Bucket: f.bucket, Keys: f.keys, Memory: o.Memory, Log: o.Logger,
		Limiter:  o.Endpoint.uploads,
		PartSize: o.PartSize, SmallestPart: o.smallestPart, CopyLimit: o.CopyLimit,
		NoOverwrite: o.NoOverwrite, Truncate: o.Truncate, Quotas: o.Quotas, Objects: o.Objects,
		Rule:         func(ctx context.Context, name string) Rule { return o.Rule(ctx, name, Uploaded) },
		BeforeCommit: o.BeforeCommit, Inspect: o.Inspect, Quarantine: o.Quarantine,
		BeginOperation: o.BeginOperation, Journal: o.Journal, Owner: o.Owner,
	})
}

// Name returns the location of the file system as a URL: "s3://bucket/prefix".
func (f *Fs) Name() string { return "s3://" + f.bucket.Name + s3object.Separator + string(f.keys) }
