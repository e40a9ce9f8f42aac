// Package driver presents an S3 bucket, or the keys below a prefix, as a file system. It needs nothing of FTP.
//
//	bucket, err := driver.New(s3.NewFromConfig(cfg), "acme-data", &driver.Options{Prefix: "inbox/"})
//	if err != nil {
//		return err
//	}
//	w, err := bucket.OpenWriter(ctx, "/2026/invoice.xml", os.O_CREATE|os.O_TRUNC, 0)
//	if err != nil {
//		return err
//	}
//	if _, err := io.Copy(w, source); err != nil {
//		w.Abort(err)
//	}
//	return w.Close() // the object appears here, or the error says why it does not
//
// An [Fs] has a method for each operation: [Fs.OpenReader], [Fs.OpenWriter], [Fs.Stat], [Fs.List], [Fs.Mkdir],
// [Fs.RemoveFile], [Fs.RenameTo], [Fs.CopyTo], [Fs.Hash] and others. Each method takes a context, which ends its
// requests. A call resolves the pathname to a key, asks the [profile.Profile] of the S3 server which headers and
// conditions the server understands, and sends as few requests as the operation allows. [Fs.Afero] binds a context and
// returns an [afero.Fs] for programs that know only that interface.
//
// [Options] hold everything else: the quotas, what happens to existing files, the journal by which an interrupted
// upload can be resumed, and the [Budget] of memory that file systems share. Package drivertest specifies the behavior
// and runs against every kind of S3 server.
//
// A file is an object. A directory is a prefix that some key has; an empty object at "directory/" may mark it. It
// needs no parents. Without a marker it ends with its last file. A file and a directory of the same name may exist
// side by side. A name with a final slash means the directory, never the file. Pathnames are UTF-8 (RFC 3629 section 4)
// and become keys unchanged.
//
// An object cannot be changed, only replaced. What is written becomes visible when the file is closed: all at once,
// or not at all. It goes to S3 from memory, which a [Budget] bounds, and never over a disk.
//
// Errors are [*fs.PathError] and, of Rename, [*os.LinkError]. errors.Is tells the kind, by values of the standard
// library:
//
//	fs.ErrNotExist, ErrExist, ErrPermission, ErrClosed  as package fs has them
//	fs.ErrInvalid, EINVAL  an argument makes no sense: an offset beyond the end
//	ELOOP                  a directory cannot be renamed or copied into itself; this is an fs.ErrInvalid too
//	EISDIR, ENOTDIR        a directory where a file belongs, and the reverse
//	ENOTEMPTY              the directory is not empty; this is an fs.ErrExist too, so ask for it first
//	EILSEQ                 the name is no UTF-8, holds a NUL, or is one that the S3 server cannot store
//	ENAMETOOLONG           the key is longer than S3, or the S3 server, stores
//	EFBIG                  larger than an object can be
//	EROFS                  the file system is the past of another one, see [Fs.At]
//	ENODATA                the object is archived, and S3 must restore it first (ENOATTR on FreeBSD)
//	ENOSPC, EDQUOT         the S3 server is full, or a quota of it is used up
//	EAGAIN                 it may work later: S3 is overloaded or out of reach, or something changed meanwhile
//	ESTALE                 the object was replaced while it was read or appended to
//	ENXIO                  there is no such bucket
//	EBADF                  the file is open for something else
//	errors.ErrUnsupported  S3 has nothing like it
//	context.Canceled       the session ended
//	EIO                    anything else
//
// errors.As finds the SDK's error, with S3's code and the ID of the request.
package driver

import (
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/driver/internal/upload"
)

// Reserved is the segment of the keys, below the prefix of a file system, that are for the driver and for the programs
// that use it, such as a queue of events. No pathname has it, and no quota counts them.
const Reserved = s3object.Reserved

// A Budget bounds the memory in which uploads collect their parts, downloads prefetch and listings hold pages.
type Budget = membudget.Budget

// NewBudget returns a budget of so many bytes. [New] refuses one below 5 MiB, S3's smallest part. No part is larger
// than the budget, and an object has 10,000 parts at most. So 256 MiB are enough for objects of 1 TiB, and 4 GiB for
// S3's largest, 5 TiB.
func NewBudget(bytes int64) *Budget { return membudget.New(bytes) }

// An Fs is a file system in a bucket. It is safe for concurrent use; the files that it opens are not, but for their
// Abort.
type Fs struct {
	opts    *Options // never change
	bucket  *s3api.Bucket
	keys    s3object.KeySpace
	uploads *upload.Uploader
}

// New returns a file system over a bucket, without a request. The options may be nil. The error is that of
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

// use lets the file system make its requests by a bucket.
func (f *Fs) use(bucket *s3api.Bucket) {
	o := f.opts
	f.bucket = bucket
	f.uploads = upload.New(upload.Options{
		Bucket: f.bucket, Keys: f.keys, Memory: o.Memory, Log: o.Logger,
		Limiter:  o.Endpoint.uploads,
		PartSize: o.PartSize, SmallestPart: o.smallestPart, CopyLimit: o.CopyLimit,
		NoOverwrite: o.NoOverwrite, Truncate: o.Truncate, Quotas: o.Quotas, Objects: o.Objects,
		BeforeCommit: o.BeforeCommit, Inspect: o.Inspect, Quarantine: o.Quarantine,
		BeginOperation: o.BeginOperation, Journal: o.Journal, Owner: o.Owner,
	})
}

// Name returns where the file system is, as a URL: "s3://bucket/prefix".
func (f *Fs) Name() string { return "s3://" + f.bucket.Name + s3object.Separator + string(f.keys) }
