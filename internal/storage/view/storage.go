package view

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"time"
)

// Rights are what a user may do with a file, or with a directory itself. Names in
// the directory have rights of their own.
type Rights struct{ List, Read, Write, Delete, Rename, Mkdir bool }

// A Reader is a file that is open for reading.
type Reader interface {
	io.ReadCloser
	io.WriterTo
	// Stat describes the file, without a request.
	Stat() (fs.FileInfo, error)
	// Abort ends the transfer for a reason, perhaps while another method runs.
	Abort(cause error)
}

// A Writer is a file that is open for writing. Close makes it visible.
type Writer interface {
	io.WriteCloser
	io.ReaderFrom
	// Stat describes the file as far as it is known, without a request. After Close it is what S3 has stored.
	Stat() (fs.FileInfo, error)
	// Abort ends the upload for a reason, perhaps while another method runs. Then Close publishes nothing.
	Abort(cause error)
	// Announce tells the size in bytes that the client has announced, before the first byte.
	Announce(size int64)
	// Memory is how many bytes of memory the part takes that the client is sending. Only the reader of
	// [io.ReaderFrom] may ask, while it is read.
	Memory() int64
	// Kept tells after Close whether the upload was interrupted and its user can resume it.
	Kept() bool
}

// A Store is the files and directories of one mount. The end of a context ends the operation, and the transfer of a
// file that it opens. Pathnames are absolute. Errors are [*fs.PathError], or [*os.LinkError] about two names, and wrap
// the values of io/fs, syscall and context. [Of] makes one of a bucket.
type Store interface {
	// Stat looks for a file and then for a directory, StatFile and StatDir look for one of them.
	Stat(ctx context.Context, name string) (fs.FileInfo, error)
	StatFile(ctx context.Context, name string) (fs.FileInfo, error)
	StatDir(ctx context.Context, name string) (fs.FileInfo, error)
	// List reads the first page of a directory, and the others while the caller ranges over the sequence. That is
	// possible once.
	List(ctx context.Context, name string) (iter.Seq2[fs.FileInfo, error], error)
	// PendingUpload describes the interrupted upload of a file that the user can resume, by its size as an offset or
	// by appending. The error is [fs.ErrNotExist] where there is none, or a file exists. To open a file at another
	// offset, or to append without having asked, is an error with a method ResumeOffset() int64. Its method
	// FileChanged() bool reports whether the file has changed since.
	PendingUpload(ctx context.Context, name string) (fs.FileInfo, error)

	// OpenReader opens a file for a transfer that starts at offset bytes.
	OpenReader(ctx context.Context, name string, offset int64) (Reader, error)
	// OpenWriter does so for an upload. The flag has os.O_CREATE, os.O_APPEND and os.O_TRUNC as the upload needs them.
	OpenWriter(ctx context.Context, name string, flag int, offset int64) (Writer, error)

	Mkdir(ctx context.Context, name string) error
	MkdirAll(ctx context.Context, name string) error
	// RemoveFile removes a file only, RemoveDir an empty directory only.
	RemoveFile(ctx context.Context, name string) error
	RemoveDir(ctx context.Context, name string) error
	RemoveAll(ctx context.Context, name string) error
	// RenameTo moves a file or a directory to a store of the same account, and CopyTo copies it. Neither puts a
	// directory into one that holds anything else.
	RenameTo(ctx context.Context, to Store, oldname, newname string) error
	CopyTo(ctx context.Context, to Store, oldname, newname string) error
	// SetTime sets the time of modification of a file.
	SetTime(ctx context.Context, name string, modified time.Time) error

	// Hash returns the hash of the bytes [from, to) of a file, and where they end. If to is negative or beyond the
	// end, that is the end of the file.
	Hash(ctx context.Context, name, algorithm string, from, to int64) (sum []byte, end int64, err error)
	// Presign makes an HTTPS link to a file that is valid for this time.
	Presign(ctx context.Context, name string, valid time.Duration) (string, error)
	// At is the same files as they were, where the bucket keeps versions. What changes them fails.
	At(m Moment) Store
	// URI is the s3 URI of the object, empty for a name that no object can have.
	URI(name string) string
}

// Directory describes a directory of which no more is known than its name.
func Directory(name string) fs.FileInfo { return directory(name) }

type directory string

func (d directory) Name() string     { return string(d) }
func (directory) Size() int64        { return 0 }
func (directory) Mode() fs.FileMode  { return fs.ModeDir | 0o755 } // the mode that the driver gives directories
func (directory) ModTime() time.Time { return time.Time{} }
func (directory) IsDir() bool        { return true }
func (directory) Sys() any           { return nil }
