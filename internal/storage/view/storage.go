package view

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"time"

	"github.com/spf13/afero"
)

// Rights are what a user may do with a file, or with a directory itself. Names in
// the directory have rights of their own.
type Rights struct{ List, Read, Write, Delete, Rename, Mkdir bool }

// Storage is what a session asks of a tenant's bucket: an afero file system, and
// operations for one FTP command each, which save S3 requests. Errors wrap the values
// of io/fs, syscall and context, for errors.Is.
type Storage interface {
	afero.Fs
	// OpenAt opens a file for one transfer that starts at offset bytes. Each file is an
	// [Aborter], and one that is open for writing an [Upload].
	OpenAt(name string, flag int, offset int64) (afero.File, error)
	// StatFile looks for a file only.
	StatFile(name string) (fs.FileInfo, error)
	// StatDir looks for a directory only.
	StatDir(name string) (fs.FileInfo, error)
	// ReadDirSeq reads the first page of a directory, and the others while the
	// caller ranges over the sequence. That is possible once.
	ReadDirSeq(name string) (iter.Seq2[fs.FileInfo, error], error)
	// RemoveFile removes a file only.
	RemoveFile(name string) error
	// RemoveDir removes an empty directory only.
	RemoveDir(name string) error
	// Copy copies a file or a directory within the storage. It copies no directory
	// into one that holds anything else.
	Copy(ctx context.Context, oldname, newname string) error
	// Hash returns the hash of the bytes [from, to) of a file, and where they end.
	// If to is negative or beyond the end, that is the end of the file.
	Hash(ctx context.Context, name, algorithm string, from, to int64) (sum []byte, end int64, err error)
}

// ObjectStorage is a storage whose files are objects of S3.
type ObjectStorage interface {
	Storage
	// URI is the s3 URI of the object, empty where the name is too long for one.
	URI(name string) string
	// Presign makes an HTTPS link to a file that is valid for this time.
	Presign(ctx context.Context, name string, valid time.Duration) (string, error)
	// PendingUpload describes the interrupted upload of a file that the user can
	// resume, by its size as an offset or by appending. The error is
	// [fs.ErrNotExist] where there is none, or a file exists. To open a file at another
	// offset, or to append without having asked, is an error with a method
	// ResumeOffset() int64. Its method FileStored() bool says that another session
	// has stored the file.
	PendingUpload(name string) (fs.FileInfo, error)
}

// An Aborter is a file whose transfer can be aborted.
type Aborter interface {
	afero.File
	// Abort ends the transfer for a reason, perhaps while another method runs. Then Close
	// publishes nothing.
	Abort(cause error)
}

// An Upload is a file that is open for writing. A layer that does something at one of its
// methods embeds the whole interface, so that it passes on all others.
type Upload interface {
	Aborter
	io.ReaderFrom
	// Announce tells the size in bytes that the client has announced, before the first byte.
	Announce(size int64)
	// Memory is how many bytes of memory the part takes that the client is sending. Only the reader of
	// [io.ReaderFrom] may ask, while it is read.
	Memory() int64
	// Kept tells after Close whether the upload was interrupted and its user can resume it.
	Kept() bool
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
