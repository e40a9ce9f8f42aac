// Package driver shows a part of an S3 bucket as a file system: an [afero.Fs], and operations that need fewer
// requests.
//
//	fs, err := driver.New(ctx, s3.NewFromConfig(cfg), "acme-data", &driver.Options{Prefix: "inbox/"})
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
//	EROFS                  the file system is the past of another one, see [Fs.AsOf]
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
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/driver/internal/tree"
	"github.com/babelftp/babelftp/driver/internal/upload"
	"github.com/babelftp/babelftp/internal/base/s3error"
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

// An Inspection judges the bytes of one file that is written. It is for one goroutine.
type Inspection = upload.Inspection

// An Fs is a file system in a bucket. It is safe for concurrent use; the files that it opens are not, but for their
// Abort.
type Fs struct {
	ctx     context.Context // of the session: afero has no other place for one
	opts    *Options        // those of all copies by WithContext: they never change
	bucket  *s3api.Bucket
	keys    s3object.KeySpace
	find    file.Finder
	uploads *upload.Uploader
	tree    *tree.Tree
}

var _ afero.Fs = (*Fs)(nil)

// New returns a file system over a bucket, without a request. The end of ctx, the session's, ends every operation and
// every transfer. The options may be nil. The error is that of [Options.Validate].
func New(ctx context.Context, client Client, bucketName string, opts *Options) (*Fs, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.setDefaults()
	client = s3api.WithReasons(client)
	if o.Endpoint.user != nil {
		client = s3api.Shared(client, o.Endpoint.user)
	}
	f := &Fs{ctx: o.withRetries(ctx), keys: s3object.KeySpace(o.Prefix), opts: &o}
	f.use(s3api.NewBucket(client, bucketName, o.Profile, o.Endpoint.stats, idleTimeout))
	return f, nil
}

// use lets the file system make its requests by a bucket.
func (f *Fs) use(bucket *s3api.Bucket) {
	o := f.opts
	f.bucket = bucket
	f.find = file.Finder{Bucket: f.bucket, Keys: f.keys}
	f.uploads = upload.New(upload.Options{
		Bucket: f.bucket, Keys: f.keys, Memory: o.Memory, Log: o.Logger,
		Limiter: o.Endpoint.uploads, Concurrency: uploadConcurrency,
		PartSize: o.PartSize, SmallestPart: o.smallestPart, CopyLimit: o.CopyLimit,
		NoOverwrite: o.NoOverwrite, Truncate: o.Truncate, Quotas: o.Quotas, Objects: o.Objects,
		BeforeCommit: o.BeforeCommit, Inspect: o.Inspect, Quarantine: o.Quarantine,
		BeginOperation: o.BeginOperation, Journal: o.Journal, Owner: o.Owner,
	})
	f.tree = tree.New(tree.Options{
		Finder: f.find, Memory: o.Memory, Uploads: f.uploads, CopyLimit: o.CopyLimit, NoOverwrite: o.NoOverwrite,
		Quotas: o.Quotas, Objects: o.Objects,
		BeginOperation: o.BeginOperation, Moves: o.Endpoint.moves,
	})
}

// WithContext is the same file system for the time of ctx, whose end ends its operations and transfers.
func (f *Fs) WithContext(ctx context.Context) *Fs {
	g := *f
	g.ctx = f.opts.withRetries(ctx)
	return &g
}

// Name says where the file system is, as a URL: "s3://bucket/prefix".
func (f *Fs) Name() string { return "s3://" + f.bucket.Name + s3object.Separator + string(f.keys) }

// Create opens a file for writing that replaces an object of the name when it is closed.
func (f *Fs) Create(name string) (afero.File, error) {
	return f.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0)
}

// Open opens a file for reading or a directory for listing. A directory takes a second request.
func (f *Fs) Open(name string) (afero.File, error) { return f.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile is [Fs.OpenAt] with offset 0 for files and opens directories for listing as well. The mode is not kept.
func (f *Fs) OpenFile(name string, flag int, _ fs.FileMode) (afero.File, error) {
	file, err := f.OpenAt(name, flag, 0)
	if flag&accessMode != os.O_RDONLY || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EISDIR) {
		return file, err
	}
	d, err := f.openDirectory(name)
	if err != nil {
		return nil, s3error.PathError("open", name, err)
	}
	return d, nil
}

// accessMode is the bits of a flag that tell reading from writing.
const accessMode = os.O_RDONLY | os.O_WRONLY | os.O_RDWR

// OpenAt opens a file for a transfer that starts offset bytes after its beginning. Besides the methods of afero.File
// the file has ReadFrom or WriteTo, and Abort(error). Abort may be called while another method runs. It ends the
// transfer: the file system stays as it was, and Close returns the error.
//
// For reading (os.O_RDONLY) one request asks for the object at once. The file reads the same version of the object to
// its end, also over another connection. When something replaces the object meanwhile, the error is ESTALE.
//
// For writing (os.O_WRONLY) with an offset the object will hold its first offset bytes, and then what is written. The
// bytes that it has after these stay, unless [Options.Truncate] is set. With os.O_APPEND it will hold all of its
// bytes before what is written. With os.O_TRUNC, and with offset 0, it will hold only what is written. An object
// cannot be overwritten in place, so os.O_RDWR needs os.O_TRUNC or os.O_EXCL. It is then the same as os.O_WRONLY.
//
// One request looks at the object where bytes of it stay, where it must exist (without os.O_CREATE), and where it
// must not (os.O_EXCL). Otherwise the first request sends a part, or comes with Close.
//
// Where an upload of the owner is pending, OpenAt resumes it, and offset must be its size. Otherwise the error is a
// [ResumeError]. Where the file does not exist, os.O_APPEND resumes an upload too. [Fs.PendingUpload] must have
// reported it since this file system last opened the file for writing. OpenAt appends to a file that exists, whatever
// is pending. os.O_TRUNC starts again.
//
// An offset beyond the end is an fs.ErrInvalid. OpenAt does not look for a directory of the name.
func (f *Fs) OpenAt(name string, flag int, offset int64) (afero.File, error) {
	key, err := f.keys.Key(name)
	switch {
	case err != nil:
	case f.keys.IsRoot(key):
		err = syscall.EISDIR
	case offset < 0:
		err = s3error.ErrInvalid
	case flag&os.O_RDWR != 0 && flag&(os.O_TRUNC|os.O_EXCL) == 0:
		err = errors.ErrUnsupported
	default:
		err = f.refuseDirectory(f.ctx, name, key)
		if errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0 {
			err = syscall.EISDIR
		}
	}
	if err != nil {
		return nil, s3error.PathError("open", name, err)
	}
	var file afero.File
	if flag&accessMode == os.O_RDONLY {
		file, err = f.openReader(name, key, offset)
	} else if err = f.changeable(); err == nil {
		file, err = f.uploads.Open(f.ctx, name, key, flag, offset)
	}
	if err != nil {
		return nil, s3error.PathError("open", name, err)
	}
	return file, nil
}

// Chmod fails with errors.ErrUnsupported: S3 keeps no permission bits.
func (f *Fs) Chmod(name string, _ fs.FileMode) error {
	return s3error.PathError("chmod", name, errors.ErrUnsupported)
}

// Chown fails with errors.ErrUnsupported: the owner of an object is an account of S3.
func (f *Fs) Chown(name string, _, _ int) error {
	return s3error.PathError("chown", name, errors.ErrUnsupported)
}
