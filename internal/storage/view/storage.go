package view

import (
	"context"
	"crypto/sha256"
	"io"
	"io/fs"
	"iter"
	"time"
)

// Rights are what a user may do with a file or directory. Names in the directory have their own rights.
type Rights struct{ List, Read, Write, Delete, Rename, Mkdir bool }

// A Reader is a file opened for reading.
type Reader interface {
	io.ReadCloser
	io.WriterTo
	// Stat returns information about the file. It sends no request.
	Stat() (fs.FileInfo, error)
	// Abort ends the transfer with a cause. It is safe to call while another method runs.
	Abort(cause error)
}

// A Writer is a file opened for writing. Close makes it visible.
type Writer interface {
	io.WriteCloser
	io.ReaderFrom
	// Stat returns the known information about the file. It sends no request. After Close, it is the information that
	// S3 returned.
	Stat() (fs.FileInfo, error)
	// Abort ends the upload with a cause, so that Close publishes nothing. It is safe to call while another method
	// runs.
	Abort(cause error)
	// Announce sets the size in bytes that the client announced. Call it before the first byte.
	Announce(size int64)
	// Memory returns the memory, in bytes, of the part that the client is sending. Only the reader passed to ReadFrom
	// may call it, during a Read.
	Memory() int64
	// Kept reports after Close whether the upload was interrupted and the user can resume it.
	Kept() bool
}

// A Store has the files and directories of one mount. When a context ends, so does the operation, or the transfer of
// an opened file. Pathnames are absolute. Errors are of type [*fs.PathError], or [*os.LinkError] for two names, and
// wrap errors of io/fs, syscall and context. [NewStore] returns the Store of a bucket.
type Store interface {
	// Stat checks for a file and then for a directory; StatFile and StatDir check for one of them.
	Stat(ctx context.Context, name string) (fs.FileInfo, error)
	StatFile(ctx context.Context, name string) (fs.FileInfo, error)
	StatDir(ctx context.Context, name string) (fs.FileInfo, error)
	// List reads the first page of a directory, and further pages while the caller ranges over the sequence, which is
	// possible only once.
	List(ctx context.Context, name string) (iter.Seq2[fs.FileInfo, error], error)
	// PendingUpload describes the interrupted upload of a file, which the user can resume at an offset equal to its
	// size, or by appending. The error is [fs.ErrNotExist] if there is no such upload or a file exists. Opening a file
	// at another offset, or appending without calling PendingUpload first, returns an error with a method
	// ResumeOffset() int64. Its method FileChanged() bool reports whether the file has changed since.
	PendingUpload(ctx context.Context, name string) (fs.FileInfo, error)

	// OpenReader opens a file for a transfer that starts at offset.
	OpenReader(ctx context.Context, name string, offset int64) (Reader, error)
	// OpenWriter opens a file for an upload that starts at offset. flag contains os.O_CREATE, os.O_APPEND and
	// os.O_TRUNC as needed. If sum is not nil, the file becomes visible only if this is its SHA-256.
	OpenWriter(
		ctx context.Context, name string, flag int, offset int64, sum *[sha256.Size]byte,
	) (Writer, error)
	// Create opens a new file for an upload that nobody can resume. The file gets another name, object. Its attributes
	// and its inspection depend on name.
	Create(ctx context.Context, name, object string, sum *[sha256.Size]byte) (Writer, error)

	Mkdir(ctx context.Context, name string) error
	MkdirAll(ctx context.Context, name string) error
	// RemoveFile only removes a file, and RemoveDir only an empty directory.
	RemoveFile(ctx context.Context, name string) error
	RemoveDir(ctx context.Context, name string) error
	RemoveAll(ctx context.Context, name string) error
	// RenameTo moves a file or directory to a store of the same account, and CopyTo copies it. They never merge a
	// directory into one that contains anything else.
	RenameTo(ctx context.Context, to Store, oldname, newname string) error
	CopyTo(ctx context.Context, to Store, oldname, newname string) error
	// SetTime sets the modification time of a file.
	SetTime(ctx context.Context, name string, modified time.Time) error

	// Hash returns the hash of the bytes [from, to) of a file, and the end of the range. If to is negative or beyond
	// the end, the range ends with the file.
	Hash(ctx context.Context, name, algorithm string, from, to int64) (sum []byte, end int64, err error)
	// Presign returns an HTTPS link to a file, which is valid for this time.
	Presign(ctx context.Context, name string, valid time.Duration) (string, error)
	// At returns a store with the files at a moment, if the bucket keeps versions. Changes fail.
	At(m Moment) Store
	// URI returns the s3 URI of the object, or "" for a name that no object can have.
	URI(name string) string
}

// Directory returns information about a directory of which only the name is known.
func Directory(name string) fs.FileInfo { return directory(name) }

type directory string

func (d directory) Name() string     { return string(d) }
func (directory) Size() int64        { return 0 }
func (directory) Mode() fs.FileMode  { return fs.ModeDir | 0o755 } // same mode as in the driver
func (directory) ModTime() time.Time { return time.Time{} }
func (directory) IsDir() bool        { return true }
func (directory) Sys() any           { return nil }
